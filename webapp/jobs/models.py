"""Tables of jobs. Only services (`services`, `origins`, `drafts`, `films` and the like) and the `recorder` write them.

`desired` is what the user wants, `observed` what is. The process that runs a job holds its lease; every write
of a run carries the lease's epoch. `last_seq` numbers the job's events without a gap: it grows in the
transaction that writes the event rows.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.functional import cached_property

from training.tasks.kinds import declaration_of, facts_of, kind_of
from webapp.background import BackgroundWork
from webapp.database.leases import Leased
from webapp.job_states import Observed
from webapp.jobs.reasons import ReasonCode
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import Unreal, unreal_word

if TYPE_CHECKING:
    from training.tasks.score import Declaration
    from training.tasks.training import TrainingFacts
    from webapp.jobs.spec import JobSpec

_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def new_job_id() -> str:
    """Return 50 random bits, in letters that are hard to confuse."""
    return "job_" + "".join(secrets.choice(_ID_LETTERS) for _ in range(10))


class Desired(models.TextChoices):
    RUN = "run", "Run"
    PAUSED = "paused", "Pause"
    CANCELLED = "cancelled", "Stop"


class EventKind(models.TextChoices):
    STATE = "state", "State"
    STARTED = "started", "Started"
    ROUND = "round", "Round"
    EVALUATION = "evaluation", "Evaluation"
    CHECKPOINT = "checkpoint", "Checkpoint"
    CALL_FAILED = "call_failed", "Call failed"
    RESUMED = "resumed", "Resumed"
    BUDGET = "budget", "Budget"
    STOPPED = "stopped", "Stopped"
    NOTE = "note", "Note"


class Tag(models.Model):
    """A word on jobs of a project, for searches and for budgets."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=40)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="tag_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class JobGroup(models.Model):
    """Jobs that belong together: the seeds of one configuration, the points of a sweep.

    `of_seeds`: launched together as seeds, under one budget that grows with every later seed.
    """

    replayed = False
    """On what a launch returns: an earlier launch with the same key made it."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="job_groups")
    name = models.CharField(max_length=100)
    of_seeds = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="job_group_once")]

    def __str__(self) -> str:
        return self.name


class Job(Leased):
    """One training run: its spec, its desired and observed state, and its latest figures.

    `algorithm`, `subject` (an environment or a data set) and `cloud` repeat the spec, for queries. An archived job is
    left out of lists; nothing else changes. A deleted job keeps only what the ledger and reports need. Since the last
    checkpoint its process died `crashes` times by itself, and the job lost its lease `losses` times to a busy or
    vanished machine. `actors_least` and `actors_most` are bounds that a user set on its scaling policy after the
    launch; None: only the installation's limits.
    """

    replayed = False
    """On what a launch returns: an earlier launch with the same key made it."""

    id = models.CharField(primary_key=True, max_length=20, default=new_job_id, editable=False)
    project = models.ForeignKey("accounts.Project", on_delete=models.PROTECT, related_name="jobs")
    name = models.CharField(max_length=100)
    spec = models.JSONField()
    simulated = models.BooleanField(default=False)
    emulated = models.BooleanField(default=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    idempotency_key = models.CharField(max_length=100, null=True, blank=True)
    algorithm = models.CharField(max_length=40, blank=True, default="")
    subject = models.CharField(max_length=100, blank=True, default="")
    cloud = models.CharField(max_length=30, blank=True, default="")
    note = models.TextField(blank=True, default="")
    archived_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    tags = models.ManyToManyField(Tag, related_name="jobs")
    groups = models.ManyToManyField(JobGroup, related_name="jobs")

    desired = models.CharField(max_length=10, choices=Desired, default=Desired.RUN)
    actors_least = models.IntegerField(null=True, blank=True)
    actors_most = models.IntegerField(null=True, blank=True)
    observed = models.CharField(max_length=10, choices=Observed, default=Observed.QUEUED)
    reason_code = models.CharField(max_length=30, choices=ReasonCode, blank=True, default=ReasonCode.NONE)
    reason = models.TextField(blank=True, default="")
    since = models.DateTimeField()
    last_seq = models.BigIntegerField(default=0)

    crashes = models.IntegerField(default=0)
    losses = models.IntegerField(default=0)

    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    summary = models.JSONField(default=dict, blank=True)

    round_no = models.BigIntegerField(default=0)
    total_progress = models.BigIntegerField(default=0)
    actors = models.IntegerField(default=0)
    training_score = models.FloatField(null=True, blank=True)
    best_training_score = models.FloatField(null=True, blank=True)
    worst_training_score = models.FloatField(null=True, blank=True)
    evaluated_score = models.FloatField(null=True, blank=True)
    platform_s = models.FloatField(default=0.0)

    class Meta:
        indexes = [
            models.Index(fields=["project", "-created_at"], name="job_of_project"),
            # This index alone serves the list's count and its pages.
            models.Index(fields=["project", "archived_at", "-created_at", "id"], name="job_listed"),
            models.Index(fields=["observed", "lease_expires_at"], name="job_to_look_after"),
            # What runs, what ended last and what was launched on which cloud, on pages of a project with many jobs.
            models.Index(fields=["project", "observed"], name="job_by_state"),
            models.Index(fields=["project", "-since"], name="job_by_change"),
            models.Index(fields=["project", "cloud"], name="job_by_cloud"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["project", "idempotency_key"], name="job_asked_for_once"),
            models.CheckConstraint(condition=Q(last_seq__gte=0), name="job_last_seq_not_negative"),
            models.CheckConstraint(
                condition=Q(deleted_at=None) | Q(archived_at__isnull=False),
                name="job_archived_before_deleted",
            ),
            models.CheckConstraint(condition=Q(desired__in=Desired.values), name="job_desired_known"),
            models.CheckConstraint(condition=Q(observed__in=Observed.values), name="job_observed_known"),
            models.CheckConstraint(
                condition=Q(reason_code__in=ReasonCode.values), name="job_reason_code_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    @property
    def unreal(self) -> Literal["", Unreal]:
        """The word for money that is not charged: simulated or emulated; empty for a real job."""
        return unreal_word(self.simulated, self.emulated)

    @property
    def rounds(self) -> models.QuerySet[Round]:
        return Round.objects.filter(job=self)

    @property
    def has_checkpoint(self) -> bool:
        """Whether the job can resume from a checkpoint, or be forked."""
        return self.round_no > 0 and self.checkpoints.exists()

    @property
    def declaration(self) -> Declaration:
        """What its progress counts and what it is judged by. Lists that leave the spec out read `training_kind`."""
        listed = self.__dict__
        return declaration_of(
            listed["training_kind"]
            if "training_kind" in listed
            else kind_of((self.spec or {}).get("training", {}))
        )

    @cached_property
    def training_facts(self) -> TrainingFacts:
        """What is learned, how its progress counts and what it is judged by, whatever its kind."""
        return facts_of(self.spec["training"])

    def parsed_spec(self) -> JobSpec:
        """Return the spec, validated again. ValueError if this version cannot read it."""
        return JobSpec.model_validate(self.spec)

    def readable_spec(self) -> JobSpec | None:
        """Return the same; None if this version cannot read it, which knows other platforms or policies."""
        try:
            return self.parsed_spec()
        except ValueError:
            return None


class OriginKind(models.TextChoices):
    CLONE = "clone", "Cloned from"
    AGAIN = "again", "Runs again what ran as"
    FORK = "fork", "Forked from"


class Origin(models.Model):
    """The job that a job was made from.

    A fork starts from that job's checkpoint, which is copied to the fork: `sha256` is the copy's hash;
    `round_no` and `checkpoint` say which it was.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="origin")
    of = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="descendants")
    way = models.CharField(max_length=10, choices=OriginKind)
    checkpoint = models.CharField(max_length=200, blank=True, default="")
    round_no = models.BigIntegerField(null=True, blank=True)
    sha256 = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(way__in=OriginKind.values), name="origin_way_known"),
            models.CheckConstraint(
                condition=~Q(way=OriginKind.FORK) | Q(round_no__isnull=False), name="fork_knows_its_round"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_way_display()} {self.of_id}"


class Draft(models.Model):
    """A saved form of a job: the typed values, valid or not.

    `begun_with` is the part of the form's URL that names its starting point.
    """

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="drafts")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    title = models.CharField(max_length=100)
    begun_with = models.CharField(max_length=300, blank=True, default="")
    values = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    saved_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["project", "user", "-saved_at"], name="draft_of_person")]
        ordering = ["-saved_at", "-pk"]

    def __str__(self) -> str:
        return self.title


class SavedView(models.Model):
    """A saved query string of the list of jobs, shared in the project."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=60)
    address = models.CharField(max_length=1000)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="saved_view_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Event(models.Model):
    """Something that happened to a job. `payload` is the engine's event, or {"text": ...} of the dashboard's
    own.

    Of a round, `figures` repeats what charts show, packed (jobs/charts/figures.py); `packing` names the
    layout. `round_no` is empty of what a resume repeats, and of what is no round. `epoch` is the run's that wrote it.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=12, choices=EventKind)
    payload = models.JSONField(default=dict)
    figures = models.BinaryField(null=True)
    packing = models.IntegerField(null=True)
    round_no = models.BigIntegerField(null=True)
    epoch = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "seq"], name="event_number_once"),
            models.UniqueConstraint(fields=["job", "round_no"], name="event_of_round_once"),
            models.CheckConstraint(condition=Q(seq__gte=1), name="event_number_from_1"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"


class _RoundManager(models.Manager["Round"]):
    def get_queryset(self) -> models.QuerySet[Round]:
        return super().get_queryset().filter(round_no__isnull=False)


class Round(Event):
    """The event of a round that no resume has replaced."""

    objects: ClassVar[_RoundManager] = _RoundManager()

    class Meta:
        proxy = True

    @property
    def report(self) -> Any:
        return self.payload["report"]


class Checkpoint(models.Model):
    """A durable learner state after a round. A row exists only for a complete file."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="checkpoints")
    round_no = models.BigIntegerField()
    epoch = models.BigIntegerField()
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    byte_count = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "round_no", "epoch"], name="checkpoint_once"),
        ]
        ordering = [F("round_no").desc(), F("epoch").desc()]

    def __str__(self) -> str:
        return self.name


class FilmState(models.TextChoices):
    QUEUED = "queued", "Queued"
    FILMING = "filming", "Filming"
    READY = "ready", "Ready"
    FAILED = "failed", "Failed"


class Film(BackgroundWork):
    """A video of an episode of a checkpoint's policy; one for each checkpoint.

    `requested_by`: the user who requested it; None for a short one after an evaluation. `file` and `facts` (frames,
    seconds, return) are set when it is ready, `reason` when it failed.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="films")
    checkpoint = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    round_no = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=FilmState, default=FilmState.QUEUED)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    file = models.CharField(max_length=200, blank=True, default="")
    facts = models.JSONField(default=dict, blank=True)

    class Meta:
        indexes = [models.Index(fields=["state", "since"], name="film_to_look_after")]
        constraints = [
            models.UniqueConstraint(fields=["job", "sha256"], name="film_once"),
            models.CheckConstraint(condition=Q(state__in=FilmState.values), name="film_state_known"),
        ]

    def __str__(self) -> str:
        return f"film of {self.checkpoint}"

    @property
    def automatic(self) -> bool:
        """Whether it is a short film that no user requested."""
        return self.requested_by_id is None

    @property
    def returned(self) -> float | None:
        """The return of its episode, once it is ready."""
        value: float | None = self.facts.get("episode_return")
        return value


class PlatformNote(models.Model):
    """What a job's platform reports under `epoch`: why its calls wait (`held_back`, whole sentences), and its
    trajectory cache's totals over all runs of the job."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="platform_note")
    epoch = models.BigIntegerField(default=0)
    held_back = models.CharField(max_length=400, blank=True, default="")
    cache_hits = models.BigIntegerField(default=0)
    cache_misses = models.BigIntegerField(default=0)
    cache_bytes = models.BigIntegerField(default=0)
    at = models.DateTimeField()

    class Meta:
        db_table = "standing_platformnote"  # the rows of installations made when `resources` had this table

    def __str__(self) -> str:
        return f"note of {self.job_id}"
