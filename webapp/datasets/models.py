"""The table of data sets. Written only by `services` and `reading`."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.background import BackgroundWork


class DataState(models.TextChoices):
    QUEUED = "queued", "Waiting"
    READING = "reading", "Reading"
    CHOOSING = "choosing", "Choose the target"
    READY = "ready", "Ready"
    FAILED = "failed", "Not read"
    DELETING = "deleting", "Being deleted"


class DataSet(BackgroundWork):
    """An uploaded table. `survey` says what is in it, once it is read; `choice` what is to be learned of it, once that
    was chosen; `manifest` names its shards, and `facts` describes them, once they are stored.
    """

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="data_sets")
    name = models.CharField(max_length=100)
    file_name = models.CharField(max_length=200)
    byte_count = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=DataState, default=DataState.QUEUED)
    survey = models.JSONField(null=True, blank=True)
    choice = models.JSONField(null=True, blank=True)
    manifest = models.CharField(max_length=64, blank=True, default="")
    facts = models.JSONField(default=dict, blank=True)
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    uploaded_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["state", "since"], name="data_set_to_look_after"),
            models.Index(fields=["manifest"], condition=~Q(manifest=""), name="data_set_of_manifest"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=DataState.values), name="data_set_state_known")
        ]

    def __str__(self) -> str:
        return self.name
