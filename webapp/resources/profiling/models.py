"""The table of memory profiles. Written only by `services` and `tasks`, read by `queries`."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from cloud.accounts.profiling_runs import ProfilingPlan


class ProfileState(models.TextChoices):
    REQUESTED = "asked", "Waiting"
    RUNNING = "running", "Profiling"
    DONE = "done", "Done"


class MemoryProfile(models.Model):
    """One profile: its plan, its progress, and every call's measurement (cloud.accounts.profiling.ProfiledCall).

    Without a connection it is one of the simulated cloud. `made_mb` names the functions that were missing and made for
    it; it is written before they are made. It can cost `limit_picodollars` at most. `problem` says why it did not end.
    """

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="memory_profiles")
    connection = models.ForeignKey(
        "connections.Connection", on_delete=models.CASCADE, null=True, related_name="memory_profiles"
    )
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField()
    plan = models.JSONField()
    keep = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=ProfileState, default=ProfileState.REQUESTED)
    since = models.DateTimeField()
    set_up_number = models.IntegerField(null=True)
    made_mb = models.JSONField(default=list)
    steps = models.JSONField(default=list)
    runs = models.JSONField(default=list)
    limit_picodollars = models.BigIntegerField()
    spent_picodollars = models.BigIntegerField(default=0)
    problem = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ["-requested_at", "-pk"]
        indexes = [models.Index(fields=["project", "connection", "-requested_at"], name="profile_newest")]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=ProfileState.values), name="profile_state_known"),
            models.CheckConstraint(
                condition=Q(spent_picodollars__gte=0) & Q(limit_picodollars__gte=0),
                name="profile_money_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"profile {self.pk} of {self.connection_id or 'the simulated cloud'}"

    @property
    def parsed_plan(self) -> ProfilingPlan:
        return ProfilingPlan.model_validate(self.plan)
