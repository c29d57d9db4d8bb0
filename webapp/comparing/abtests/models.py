"""The tables of A/B tests. Written only by `services` and `engine`."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class AbTestState(models.TextChoices):
    RUNNING = "running", "Running"
    BETTER = "better", "Better"
    WORSE = "worse", "Worse"
    NO_DIFFERENCE = "no_difference", "No difference found"
    OUT_OF_MONEY = "out_of_money", "Budget used up"
    FAILED = "failed", "Failed"
    STOPPED = "stopped", "Stopped"


class ABTest(models.Model):
    """The question whether a job with one change is better, and its answer.

    A is `job` as it ran, B the same with `change` (path=value), shown by the field's title and its two values. Both
    train with the seeds from `first_seed` on, at most `most_pairs` of them, as jobs of `group` below `budget`.
    `effect` is the difference that the test can find, in standard deviations over seeds. `evaluated`: runs are judged
    by their evaluated score, else by that of training. `pairs` and `difference` are those of the answer.
    """

    replayed = False
    """On what its start returns: an earlier request with the same key made it."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="ab_tests")
    job = models.ForeignKey("jobs.Job", on_delete=models.SET_NULL, null=True, related_name="+")
    group = models.OneToOneField("jobs.JobGroup", on_delete=models.CASCADE, related_name="ab_test")
    budget = models.ForeignKey("money.Budget", on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    change = models.CharField(max_length=300)
    field_title = models.CharField(max_length=100)
    old_value = models.CharField(max_length=100)
    new_value = models.CharField(max_length=100)
    effect = models.FloatField()
    most_pairs = models.IntegerField()
    first_seed = models.BigIntegerField()
    evaluated = models.BooleanField(default=False)
    state = models.CharField(max_length=20, choices=AbTestState, default=AbTestState.RUNNING)
    reason = models.TextField(blank=True, default="")
    pairs = models.IntegerField(default=0)
    difference = models.FloatField(null=True, blank=True)
    key = models.CharField(max_length=100, null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [models.Index(fields=["state"], name="ab_test_to_look_after")]
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="ab_test_asked_for_once"),
            models.CheckConstraint(condition=Q(state__in=AbTestState.values), name="ab_test_state_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Pair(models.Model):
    """Two runs with one seed: `a` as the job ran, `b` with the change. `number` counts from 1."""

    test = models.ForeignKey(ABTest, on_delete=models.CASCADE, related_name="runs")
    number = models.IntegerField()
    a = models.OneToOneField("jobs.Job", on_delete=models.CASCADE, related_name="+")
    b = models.OneToOneField("jobs.Job", on_delete=models.CASCADE, related_name="+")

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["test", "number"], name="ab_test_pair_once")]

    def __str__(self) -> str:
        return f"pair {self.number} of {self.test_id}"
