"""The table of predictions. Written only by `services`."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class PredictionState(models.TextChoices):
    OPEN = "open", "Open"
    JUDGED = "judged", "Judged"
    VOID = "void", "Not judged"


class Prediction(models.Model):
    """A job's predicted end, from its round `round_no` on, and what came of it.

    `actors` is the number that was set for every later round; None: the scaling policy's own. Bands are totals at the
    end, their score None where the curve was too short. `void` if something else changed the job, with the `reason`.
    """

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="predictions")
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    round_no = models.BigIntegerField()
    steps = models.BigIntegerField()
    actors = models.IntegerField(null=True, blank=True)
    limit_picodollars = models.BigIntegerField()
    ends_by = models.CharField(max_length=10)
    steps_p50 = models.FloatField()
    time_p10_s = models.FloatField()
    time_p50_s = models.FloatField()
    time_p90_s = models.FloatField()
    cost_p10_picodollars = models.BigIntegerField()
    cost_p50_picodollars = models.BigIntegerField()
    cost_p90_picodollars = models.BigIntegerField()
    score_p10 = models.FloatField(null=True, blank=True)
    score_p50 = models.FloatField(null=True, blank=True)
    score_p90 = models.FloatField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=PredictionState, default=PredictionState.OPEN)
    reason = models.TextField(blank=True, default="")
    judged_at = models.DateTimeField(null=True, blank=True)
    time_s = models.FloatField(null=True, blank=True)
    cost_picodollars = models.BigIntegerField(null=True, blank=True)
    score = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state"], name="prediction_to_judge")]
        constraints = [
            models.UniqueConstraint(fields=["job"], condition=Q(state="open"), name="prediction_open_once"),
            models.CheckConstraint(
                condition=Q(state__in=PredictionState.values), name="prediction_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"prediction of {self.job_id} after round {self.round_no}"
