"""The table of what finished jobs took to reach their task's reference. Written only by `goal_results`."""

from __future__ import annotations

from django.db import models


class GoalResult(models.Model):
    """When a finished job first had the reference return, and what had been spent by then.

    `evaluated`: by its evaluations; a job that was never evaluated is judged by its smoothed training return.

    The columns repeat the job's, so that a board of many jobs is one query. `cost_picodollars` and `time_s` (the
    platform's time) are None for a job that did not get there. `money` is simulated, emulated, or empty for real money.
    """

    job = models.OneToOneField("jobs.Job", on_delete=models.CASCADE, related_name="goal_result")
    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="+")
    subject = models.CharField(max_length=100)
    algorithm = models.CharField(max_length=40)
    policy = models.CharField(max_length=40)
    cloud = models.CharField(max_length=80)
    money = models.CharField(max_length=10, blank=True, default="")
    goal = models.FloatField()
    evaluated = models.BooleanField(default=False)
    reached = models.BooleanField()
    cost_picodollars = models.BigIntegerField(null=True, blank=True)
    time_s = models.FloatField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["project", "subject"], name="goal_result_of_board")]

    def __str__(self) -> str:
        return f"{self.job_id} to {self.goal:g}"
