"""Tables of the mailboxes, one for each job whose actors fetch their calls.

Written by `coordinator` (the job's process), `store` (the gateway) and `services`. Times are seconds of the Unix
clock, as in the protocol. When the run closes, everything but the box and its tokens is deleted.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class Box(models.Model):
    """A job's mailbox. The holder of the job's lease writes under its epoch. `closed`: every puller must leave."""

    job = models.OneToOneField("jobs.Job", models.CASCADE, primary_key=True, related_name="box")
    epoch = models.BigIntegerField(default=0)
    closed = models.BooleanField(default=False)
    stay_until_unix_s = models.FloatField(default=0.0)

    def __str__(self) -> str:
        return f"box of {self.job_id}"


class BoxToken(models.Model):
    """The hash of a token that opens one box. The token was shown once. `queries.valid_tokens` says when it ends.

    Without a maker, it is a token of containers that Starling starts.
    """

    box = models.ForeignKey(Box, models.CASCADE, related_name="tokens")
    sha256 = models.CharField(max_length=64)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+"
    )
    access_epoch = models.PositiveIntegerField(default=0)
    """The maker's, when it was made."""

    def __str__(self) -> str:
        return f"token {self.pk}"


class HeldWeights(models.Model):
    box = models.ForeignKey(Box, models.CASCADE, related_name="weights")
    sha256 = models.CharField(max_length=64)
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["box", "sha256"], name="weights_once")]

    def __str__(self) -> str:
        return self.sha256


class CallState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    LEASED = "leased", "Leased"
    ANSWERED = "answered", "Answered"
    USED_UP = "used_up", "Used up"
    WITHDRAWN = "withdrawn", "Withdrawn"


class PulledCall(models.Model):
    """An offered call. `began`: the pullers that received it, in order. `taken`: the coordinator has read its end."""

    box = models.ForeignKey(Box, models.CASCADE, related_name="calls")
    call_id = models.CharField(max_length=300)
    state = models.CharField(max_length=10, choices=CallState, default=CallState.WAITING)
    taken = models.BooleanField(default=False)
    began = models.JSONField(default=list)
    puller = models.CharField(max_length=100, default="", blank=True)
    begin_by_unix_s = models.FloatField()
    lease_s = models.FloatField()
    most_s = models.FloatField()
    most_bytes = models.BigIntegerField()
    most_starts = models.IntegerField()
    offered_unix_s = models.FloatField()
    leased_unix_s = models.FloatField(default=0.0)
    lease_until_unix_s = models.FloatField(default=0.0)
    heard_unix_s = models.FloatField(default=0.0)

    class Meta:
        indexes = [models.Index(fields=["box", "state", "taken"], name="call_of_box")]
        constraints = [
            models.UniqueConstraint(fields=["box", "call_id"], name="call_offered_once"),
            models.CheckConstraint(condition=Q(state__in=CallState.values), name="pulled_call_state_known"),
        ]

    def __str__(self) -> str:
        return self.call_id


class Parcel(models.Model):
    """The bytes of a call: the request, then the answer. A table of its own, because the call's row changes often."""

    call = models.OneToOneField(PulledCall, models.CASCADE, primary_key=True, related_name="parcel")
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"parcel of call {self.pk}"


class SeenPuller(models.Model):
    """A puller that has called. `token` is a digest of its token; each token may name a limited number of pullers."""

    box = models.ForeignKey(Box, models.CASCADE, related_name="pullers")
    name = models.CharField(max_length=100)
    unit = models.CharField(max_length=100)
    token = models.CharField(max_length=16, default="", blank=True)
    first_seen_unix_s = models.FloatField()
    last_seen_unix_s = models.FloatField()
    leaving = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["box", "name"], name="puller_once")]

    def __str__(self) -> str:
        return self.name
