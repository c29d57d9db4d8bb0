"""Tables of experiment trackers. Written by `services`, and `TrackedRun` by the job's process."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from webapp.connections.models import SealedRow
from webapp.connections.sealing import SealedPlace

TOKEN = "token"
"""The one sealed field of a tracker."""


class TrackerKind(models.TextChoices):
    MLFLOW = "mlflow", "MLflow"
    WANDB = "wandb", "W&B"


class Tracker(models.Model):
    """A tracker of a project. `place` is MLflow's experiment, or W&B's project, with its entity before a slash."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="trackers")
    kind = models.CharField(max_length=8, choices=TrackerKind)
    address = models.CharField(max_length=300, blank=True, default="")
    place = models.CharField(max_length=120)
    on = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["kind"]
        constraints = [
            models.UniqueConstraint(fields=["project", "kind"], name="tracker_kind_once"),
            models.CheckConstraint(condition=Q(kind__in=TrackerKind.values), name="tracker_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.project_id}"

    def sealed_place(self) -> SealedPlace:
        """The place that its token is sealed for."""
        return SealedPlace(self.project_id, f"tracker-{self.kind}", TOKEN)


class TrackerSecret(SealedRow):
    """The sealed token of a tracker."""

    tracker = models.ForeignKey(Tracker, on_delete=models.CASCADE, related_name="secrets")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tracker", "field"], name="tracker_secret_once")]

    def __str__(self) -> str:
        return f"{self.field} of {self.tracker_id}"

    def place(self) -> SealedPlace:
        return self.tracker.sealed_place()


class TrackedRun(models.Model):
    """A job in a tracker: the page of its run there, and why rounds are missing, if any are."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="tracked_runs")
    kind = models.CharField(max_length=8, choices=TrackerKind)
    url = models.CharField(max_length=600, blank=True, default="")
    problem = models.CharField(max_length=400, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        ordering = ["kind"]
        constraints = [models.UniqueConstraint(fields=["job", "kind"], name="tracked_run_once")]

    def __str__(self) -> str:
        return f"{self.job_id} in {self.get_kind_display()}"
