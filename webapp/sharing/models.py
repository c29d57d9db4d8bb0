"""The table of shared links. Written only by `services`."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class SharedKind(models.TextChoices):
    JOB = "job", "Job"
    COMPARISON = "comparison", "Comparison"
    REPORT = "report", "Report"


class SharedLink(models.Model):
    """A link to one object, read-only, until it is revoked or expires.

    Only the hash of its secret is stored; `hint` is the secret's end, for lists. `document` names what is compared
    (`of`) or which costs are reported (the query of the report's address). `sites` may embed it: origins, or `*`.
    It works only while the person who made it may make links in the project.
    """

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="shared_links")
    kind = models.CharField(max_length=12, choices=SharedKind)
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, null=True, related_name="+")
    document = models.JSONField(default=dict)
    title = models.CharField(max_length=200)
    with_money = models.BooleanField(default=False)
    sites = models.JSONField(default=list)
    secret_sha256 = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=4)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=SharedKind.values), name="shared_link_kind_known"),
            models.CheckConstraint(
                condition=Q(kind="job", job__isnull=False) | (~Q(kind="job") & Q(job__isnull=True)),
                name="shared_link_names_its_job",
            ),
            models.CheckConstraint(
                condition=~Q(kind="report") | Q(with_money=True), name="shared_report_shows_money"
            ),
        ]
        indexes = [models.Index(fields=["project", "-created_at"], name="shared_link_of_project")]

    def __str__(self) -> str:
        return f"{self.kind} “{self.title}”, shared"
