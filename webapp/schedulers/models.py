"""Tables of schedulers. Written only by `services`, `leases`, `persist` and `training_run`.

A training makes a version of a scheduler. Its process holds a lease as a job's does: every write carries the epoch.
Episodes that really ran keep the reports of their rounds, which is what later trainings of that workload rehearse with.
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models import Q

from training.scheduling.agents import AnyAgent, read_agent_spec
from training.scheduling.judging import Agent
from webapp.database.leases import Leased

_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def new_scheduler_id() -> str:
    return "sch_" + "".join(secrets.choice(_ID_LETTERS) for _ in range(10))


class Scheduler(models.Model):
    """A name in a project, under which versions are kept."""

    id = models.CharField(primary_key=True, max_length=20, default=new_scheduler_id, editable=False)
    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="schedulers")
    name = models.CharField(max_length=60)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="scheduler_name_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class TrainingState(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Training"
    DONE = "done", "Trained"
    STOPPED = "stopped", "Stopped"
    FAILED = "failed", "Failed"


class SchedulerTraining(Leased):
    """One training: its settings, its progress, and its present agent.

    `recorded_until` is the last episode row that rehearsals draw from: a resumed training rehearses with the same ones.
    `learner` is the agent after episode `learned_number`, `best_learner` the one that played the real episode with the
    highest score, which was number `best_number`. `now` is what its process is at, `search` names the search
    that it is a row of, if it is one; such a training makes no version.
    """

    project = models.ForeignKey(
        "accounts.Project", on_delete=models.CASCADE, related_name="scheduler_trainings"
    )
    name = models.CharField(max_length=60)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField()
    spec = models.JSONField()
    platform = models.JSONField()
    workload = models.CharField(max_length=100)
    workload_key = models.CharField(max_length=32)
    budget_picodollars = models.BigIntegerField()
    begin_with = models.ForeignKey("Version", on_delete=models.SET_NULL, null=True, related_name="+")
    search = models.CharField(max_length=60, blank=True, default="")

    state = models.CharField(max_length=10, choices=TrainingState, default=TrainingState.QUEUED)
    stop_requested = models.BooleanField(default=False)
    reason = models.TextField(blank=True, default="")
    since = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    crashes = models.IntegerField(default=0)
    now = models.JSONField(default=dict, blank=True)

    recorded_until = models.BigIntegerField(null=True)
    learned_number = models.IntegerField(default=0)
    learner = models.BinaryField(null=True)
    best_number = models.IntegerField(default=0)
    best_score = models.FloatField(null=True)
    best_learner = models.BinaryField(null=True)

    class Meta:
        ordering = ["-requested_at", "-pk"]
        indexes = [models.Index(fields=["state", "lease_expires_at"], name="scheduling_to_look_after")]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=TrainingState.values), name="scheduling_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"training {self.pk} of {self.name}"

    @property
    def parsed_spec(self) -> AnyAgent:
        return read_agent_spec(self.spec)


class Version(models.Model):
    """A scheduler as one training left it: its weights as a spec holds them, and the learner to train on from."""

    scheduler = models.ForeignKey(Scheduler, on_delete=models.CASCADE, related_name="versions")
    number = models.IntegerField()
    training = models.OneToOneField(SchedulerTraining, on_delete=models.PROTECT, related_name="version")
    made_at = models.DateTimeField()
    weights = models.TextField()
    learner = models.BinaryField()
    facts = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scheduler", "number"], name="scheduler_version_once")]
        ordering = ["scheduler", "-number"]

    def __str__(self) -> str:
        return f"{self.scheduler.name}, version {self.number}"

    @property
    def key(self) -> str:
        """How a job's spec names it."""
        return f"{self.scheduler_id}.{self.number}"


class EpisodeKind(models.TextChoices):
    GRID = "grid", "Recorded beforehand"
    REHEARSAL = "rehearsal", "Rehearsal"
    REAL = "real", "Real"
    JUDGED = "judged", "Judged"


# Agents in the order in which they are judged, numbered from 1.
JUDGED: tuple[Agent, ...] = ("best", "last")


class Episode(models.Model):
    """One episode that counts. `number` goes on through rehearsals and real ones. Of the grid it is the actors, or its
    place where memory is decided as well; of those that judge an agent its place in `JUDGED`. `memory_mb` is empty for
    rehearsals, and where no memory is decided.
    """

    training = models.ForeignKey(SchedulerTraining, on_delete=models.CASCADE, related_name="episodes")
    kind = models.CharField(max_length=10, choices=EpisodeKind)
    number = models.IntegerField()
    at = models.DateTimeField()
    rounds = models.IntegerField()
    platform_s = models.FloatField()
    wall_s = models.FloatField()
    cost_picodollars = models.BigIntegerField()
    best_return = models.FloatField(null=True)
    reached = models.BooleanField()
    score = models.FloatField(null=True)
    actors = models.JSONField()
    memory_mb = models.JSONField(default=list)
    reports = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["training", "kind", "number"], name="scheduler_episode_once"),
            models.CheckConstraint(
                condition=Q(kind__in=EpisodeKind.values), name="scheduler_episode_kind_known"
            ),
        ]
        ordering = ["training", "pk"]

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"
