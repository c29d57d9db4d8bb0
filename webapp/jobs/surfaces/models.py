"""The table of reward surfaces. Written only by `services` and `measuring`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.background import BackgroundWork


class SurfaceState(models.TextChoices):
    QUEUED = "queued", "Queued"
    SURVEYING = "surveying", "Measuring"
    READY = "ready", "Ready"
    FAILED = "failed", "Failed"


class Surface(BackgroundWork):
    """One grid around one checkpoint's policy: its settings, and each point once it is known.

    `eigenvalues` are those of the two directions, `offsets` where the grid's lines lie, `points` holds the return at
    each row and column, None for one that is not known yet.
    """

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="surfaces")
    checkpoint = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    round_no = models.BigIntegerField()
    grid = models.IntegerField()
    span = models.FloatField()
    episodes = models.IntegerField()
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=10, choices=SurfaceState, default=SurfaceState.QUEUED)
    eigenvalues = models.JSONField(default=list, blank=True)
    offsets = models.JSONField(default=list, blank=True)
    points = models.JSONField(default=list, blank=True)
    done = models.IntegerField(default=0)

    class Meta:
        db_table = "landscapes_surface"
        ordering = ["-round_no", "-pk"]
        indexes = [models.Index(fields=["state", "since"], name="surface_to_look_after")]
        constraints = [
            models.UniqueConstraint(fields=["job", "sha256"], name="surface_once"),
            models.CheckConstraint(condition=Q(state__in=SurfaceState.values), name="surface_state_known"),
        ]

    def __str__(self) -> str:
        return f"surface around {self.checkpoint}"


NOTHING_MEASURED: dict[str, Any] = {"reason": "", "eigenvalues": [], "offsets": [], "points": [], "done": 0}
"""The columns of a surface before its measurement."""
