"""Tables of resources in cloud accounts. Written only by `register`, `scanner`, `actions`, `late_reports` and
`rate_limit`."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class ResourceState(models.TextChoices):
    INTENDED = "intended", "Asked for"
    EXISTS = "standing", "Stands"
    ENDING = "ending", "Ending"
    GONE = "gone", "Gone"
    LOST = "lost", "Lost"


LIVE = (ResourceState.INTENDED, ResourceState.EXISTS, ResourceState.ENDING)
OVER = (ResourceState.GONE, ResourceState.LOST)


class HoldingKind(models.TextChoices):
    PROVISIONED = "provisioned", "Functions kept ready"
    CONTAINER_GROUP = "container_group", "Container group"


class Holding(models.Model):
    """One billable resource in an account, from the intent to create it until a scan found it gone.

    `job` and `epoch` name its run; a resource that was found without a row may have none. It may run until
    `expires_at`. `facts` describe it (cloud.accounts.register.Register.intend). `missing_since`: scans have not found
    it since.
    """

    connection = models.ForeignKey(
        "connections.Connection", on_delete=models.SET_NULL, null=True, related_name="holdings"
    )
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, null=True, related_name="holdings")
    epoch = models.BigIntegerField(default=0)
    kind = models.CharField(max_length=20, choices=HoldingKind)
    name = models.CharField(max_length=200)
    provider_id = models.CharField(max_length=600, blank=True, default="")
    state = models.CharField(max_length=10, choices=ResourceState)
    reason = models.CharField(max_length=300, blank=True, default="")
    facts = models.JSONField(default=dict, blank=True)
    intended_at = models.DateTimeField()
    since = models.DateTimeField()
    expires_at = models.DateTimeField()
    missing_since = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "standing_holding"
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "name"], condition=Q(state__in=LIVE), name="holding_of_a_name_once"
            ),
            models.CheckConstraint(condition=Q(state__in=ResourceState.values), name="holding_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=OVER, ended_at__isnull=False)
                | Q(state__in=LIVE, ended_at__isnull=True),
                name="holding_over_has_end",
            ),
        ]
        indexes = [
            models.Index(fields=["connection"], condition=Q(state__in=LIVE), name="holding_live"),
            models.Index(fields=["connection", "ended_at"], name="holding_ended"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"


class Look(models.Model):
    """The last scan of an account that succeeded (`at`), and the last try; `sentence` says why that failed, if it did.

    A scan claims the row until `claimed_until`, so that no two run at once. `others` names resources of the account
    that are not this connection's.
    """

    connection = models.OneToOneField("connections.Connection", on_delete=models.CASCADE, related_name="look")
    at = models.DateTimeField(null=True, blank=True)
    sentence = models.CharField(max_length=300, blank=True, default="")
    failures = models.IntegerField(default=0)
    tried_at = models.DateTimeField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    others = models.JSONField(default=list, blank=True)

    class Meta:
        db_table = "standing_look"

    def __str__(self) -> str:
        return f"look at {self.connection_id}"


class LogReading(models.Model):
    """How far a job's assumed charges have been looked up in its cloud's log. `again_at` None: never again."""

    job = models.OneToOneField("jobs.Job", on_delete=models.CASCADE, related_name="log_reading")
    at = models.DateTimeField(null=True, blank=True)
    again_at = models.DateTimeField(null=True, blank=True)
    reads = models.IntegerField(default=0)
    corrected = models.IntegerField(default=0)
    sentence = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        db_table = "standing_logreading"

    def __str__(self) -> str:
        return f"log reading of {self.job_id}"


class CreateTimes(models.Model):
    """When all jobs together last sent create requests to a place: seconds of Unix time, in order."""

    place = models.CharField(max_length=120, unique=True)
    moments = models.JSONField(default=list)

    class Meta:
        db_table = "standing_asked"

    def __str__(self) -> str:
        return f"{len(self.moments)} create requests to {self.place}"
