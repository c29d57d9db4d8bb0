"""Why a job is in its state: the one table of reasons, and how states and reasons look.

To add a reason: a row of `Reason`, with a code above it if none fits (`manage.py makemigrations`), and the call that
gives it. The rows that end with the engine's own words are found by their code, which is a `StopCode` of
`training/engine/messages.py`. Other reasons are given by

- `end_run` (`running/recovery.py`): the job has ended or is paused, and is not run again by itself;
- `run_ended` (there): this run has ended, the job continues with another one;
- `transition` (`events/event_log.py`): all else, without booking what calls in flight cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import TYPE_CHECKING, NamedTuple

from django.db import models
from django.db.models import Q

from webapp.formatting import Pill, Tone
from webapp.job_states import Observed

if TYPE_CHECKING:
    from webapp.jobs.models import Job


class ReasonCode(models.TextChoices):
    """The code in the database and in the API. Values never change: rows and programs hold them."""

    NONE = "", "Nothing special"
    TARGET = "target", "Target reached"
    ROUNDS = "rounds", "Rounds done"
    STEPS = "steps", "Steps done"
    MINUTES = "minutes", "Time over"
    NO_PROGRESS = "no_progress", "No progress"
    BUDGET = "budget", "Budget"
    PAUSED = "paused", "Paused on request"
    CANCELLED = "cancelled", "Stopped on request"
    FAILING = "failing", "Calls or updates failed"
    HANDOVER = "handover", "Worker stopped"
    LOST = "lost", "Lease lost"
    CRASHED = "crashed", "Process died"
    ERROR = "error", "Error in the run"
    CHECKPOINT_NOT_WRITTEN = "disk", "Checkpoint not written"
    CHECKPOINT_UNREADABLE = "unreadable", "Checkpoint unreadable"
    UNFIT = "unfit", "Cannot run here"


@dataclass(frozen=True)
class StateLook(Pill):
    """How a state looks: its pill, and the icon and tone of its events if those differ."""

    event_icon: str = ""
    event_tone: Tone = ""


class StateChange(NamedTuple):
    """A state with the reason for it, ready to be written."""

    state: Observed
    code: ReasonCode = ReasonCode.NONE
    sentence: str = ""


@unique
class Reason(Enum):
    """One row a reason: the stored code, its state, and its sentence with parameters.

    The job looks as its state does (`STATE_LOOKS`) unless the row ends with a look of its own.
    """

    # It waits or starts: given by `services.py`, and by `running/` as the run begins.
    SUBMITTED = ReasonCode.NONE, Observed.QUEUED, "Waiting for a worker."
    BUDGET_RAISED = ReasonCode.NONE, Observed.QUEUED, "Waiting for a worker, with a raised budget."
    ROOM_IN_BUDGETS = (
        ReasonCode.NONE,
        Observed.QUEUED,
        "Waiting for a worker, with room in the budgets again.",
    )
    GOES_ON = ReasonCode.NONE, Observed.QUEUED, "Waiting for a worker to resume from its checkpoint."
    BEGINS_AGAIN = (
        ReasonCode.NONE,
        Observed.QUEUED,
        "Waiting for a worker, to begin again: it has no checkpoint yet.",
    )
    STARTING = ReasonCode.NONE, Observed.STARTING, "Starting its workers."
    RUNNING = ReasonCode.NONE, Observed.RUNNING, ""

    # The run ended and another one follows: given by `running/recovery.py` and `running/runner.py`. After too many of
    # these the job fails: `fail_after_retries`.
    WORKER_STOPPED = (
        ReasonCode.HANDOVER,
        Observed.RECOVERING,
        "The worker was stopped. The job resumes from its last checkpoint once a worker runs.",
    )
    LEASE_EXPIRED = ReasonCode.LOST, Observed.RECOVERING, ""
    LEASE_LOST = ReasonCode.LOST, Observed.RECOVERING, "The job's process lost its lease."
    WORKER_KILLED = ReasonCode.LOST, Observed.RECOVERING, "The worker that ran the job was killed."
    MACHINE_BUSY = (
        ReasonCode.LOST,
        Observed.RECOVERING,
        "This machine was too busy to keep the job alive: its process did not respond for {seconds:.0f} s.",
    )
    MACHINE_GONE = (
        ReasonCode.LOST,
        Observed.RECOVERING,
        "The machine that ran the job is gone, or was too busy to keep the job alive:"
        " its process did not respond for {seconds:.0f} s.",
    )
    PROCESS_DIED = ReasonCode.CRASHED, Observed.RECOVERING, "The job's process ended unexpectedly ({how})."
    KILLED_FOR_MEMORY = (
        ReasonCode.CRASHED,
        Observed.RECOVERING,
        "The system ended the job's process because this machine's memory ran out. Run fewer jobs at once"
        " (STARLING_MAX_LOCAL_JOBS), or let each take less (STARLING_MAX_JOB_MEMORY_MB).",
    )
    RUN_FAILED = ReasonCode.ERROR, Observed.RECOVERING, "The run ended with an error: {error}"
    DATABASE_NOT_WRITTEN = (
        ReasonCode.CHECKPOINT_NOT_WRITTEN,
        Observed.RECOVERING,
        "The database could not be written: its disk was full or read-only. The job resumes from its last checkpoint.",
    )

    # It waits for its storage, and goes on by itself: given by `running/runner.py`, ended by `running/storage_wait.py`.
    CHECKPOINT_NOT_WRITTEN = (
        ReasonCode.CHECKPOINT_NOT_WRITTEN,
        Observed.PAUSED,
        "{error} The job goes on by itself then.",
        StateLook("Waits for the disk", "warning", "device-hdd", "device-hdd", "warning"),
    )
    CHECKPOINT_UNREADABLE = (
        ReasonCode.CHECKPOINT_UNREADABLE,
        Observed.PAUSED,
        "{error}",
        StateLook("Checkpoint unreadable", "warning", "hdd-stack", "hdd-stack", "warning"),
    )
    STORAGE_BACK = (
        ReasonCode.NONE,
        Observed.QUEUED,
        "Waiting for a worker: its checkpoints can be used again.",
    )
    STARTED_OVER = (
        ReasonCode.NONE,
        Observed.QUEUED,
        "Waiting for a worker, to begin again without its checkpoints.",
    )

    # Another run would meet the same problem, so the job fails at once: given by `running/runner.py`.
    CANNOT_RUN = ReasonCode.UNFIT, Observed.FAILED, "{error}"
    OUT_OF_MEMORY = ReasonCode.UNFIT, Observed.FAILED, "The job ran out of memory. {words}"

    # People want it: given by `services.py`.
    STOP_REQUESTED = ReasonCode.CANCELLED, Observed.DRAINING, "Stop requested by {user}."
    STOPPED = ReasonCode.CANCELLED, Observed.CANCELLED, "Stopped on request."
    PAUSED = ReasonCode.PAUSED, Observed.PAUSED, "Paused on request."

    # The engine ended the run: given by `training/engine/stopping.py`, and FAILING by the loops of `training/loops/`
    # too. `words` is its explanation.
    TARGET_REACHED = ReasonCode.TARGET, Observed.SUCCEEDED, "{words}"
    ROUNDS_DONE = ReasonCode.ROUNDS, Observed.SUCCEEDED, "{words}"
    STEPS_DONE = ReasonCode.STEPS, Observed.SUCCEEDED, "{words}"
    TIME_OVER = ReasonCode.MINUTES, Observed.SUCCEEDED, "{words}"
    NO_PROGRESS = ReasonCode.NO_PROGRESS, Observed.SUCCEEDED, "{words}"
    BUDGET_SPENT = (
        ReasonCode.BUDGET,
        Observed.PAUSED,
        "{words}",
        StateLook("Stopped by budget", "budget", "sign-stop-fill", "sign-stop-fill", "budget"),
    )
    ENGINE_PAUSED = ReasonCode.PAUSED, Observed.PAUSED, "{words}"
    ENGINE_STOPPED = ReasonCode.CANCELLED, Observed.CANCELLED, "{words}"
    FAILING = ReasonCode.FAILING, Observed.FAILED, "{words}"

    def __init__(
        self, code: ReasonCode, state: Observed, sentence: str, look: StateLook | None = None
    ) -> None:
        self.code = code
        self.state = state
        self.sentence = sentence
        self.look = look

    def change(self, **parameters: object) -> StateChange:
        """Return the state change, with the sentence filled in. KeyError for a missing parameter."""
        return StateChange(self.state, self.code, self.sentence.format_map(parameters))


OF_ENGINE: Mapping[str, Reason] = {one.code.value: one for one in Reason if one.sentence == "{words}"}
"""The engine's own reasons to stop, by its `StopCode`."""


def fail_after_retries(change: StateChange, times: int) -> StateChange:
    """Return the failure of a job whose runs ended `times` times without a checkpoint, at last for this reason."""
    sentence = f"{change.sentence} That was the {times}th time without a new checkpoint; the job is given up."
    if change.code == ReasonCode.LOST:
        sentence += " Run it again where it has more room."
    return StateChange(Observed.FAILED, change.code, sentence)


STATE_LOOKS: Mapping[Observed, StateLook] = {
    Observed.QUEUED: StateLook("Queued", "waiting", "hourglass-split"),
    Observed.STARTING: StateLook("Starting", "waiting", "three-dots"),
    Observed.RUNNING: StateLook("Running", "running", "play-fill"),
    Observed.RECOVERING: StateLook("Recovering", "warning", "arrow-repeat", "arrow-repeat", "warning"),
    Observed.DRAINING: StateLook("Stopping", "waiting", "chevron-double-down"),
    Observed.PAUSED: StateLook("Paused", "waiting", "pause-fill"),
    Observed.SUCCEEDED: StateLook("Succeeded", "ok", "check-lg", "check-circle", "ok"),
    Observed.FAILED: StateLook("Failed", "failed", "x-octagon-fill", "x-octagon-fill", "failed"),
    Observed.CANCELLED: StateLook("Stopped", "waiting", "slash-circle"),
}
LOOKS: Mapping[str, StateLook] = {
    **{state.value: look for state, look in STATE_LOOKS.items()},
    **{f"{reason.state}:{reason.code}": reason.look for reason in Reason if reason.look is not None},
}
"""By state; "state:reason code" where the reason has a look of its own."""

STOPPED_BY_BUDGET = Q(observed=Reason.BUDGET_SPENT.state, reason_code=Reason.BUDGET_SPENT.code)
"""Jobs that resume once their budget is raised."""


def checkpoint_unreadable(job: Job) -> bool:
    """Whether the job paused because none of its recorded checkpoints can be read; it may be started over."""
    reason = Reason.CHECKPOINT_UNREADABLE
    return (job.observed, job.reason_code) == (reason.state, reason.code)


def waits_for_storage(job: Job) -> bool:
    """Whether the job paused because its checkpoints could not be written or read."""
    codes = (ReasonCode.CHECKPOINT_NOT_WRITTEN, ReasonCode.CHECKPOINT_UNREADABLE)
    return job.observed == Observed.PAUSED and job.reason_code in codes


def stopped_by_budget(job: Job) -> bool:
    return (job.observed, job.reason_code) == (Reason.BUDGET_SPENT.state, Reason.BUDGET_SPENT.code)


def look_of(state: str, code: str = "") -> StateLook:
    """Return the look of a state and reason code. An unknown code looks like its state, an unknown state neutral."""
    return LOOKS.get(f"{state}:{code}") or LOOKS.get(state) or StateLook(state, "waiting", "question-lg")


def look_of_end(stop_code: str) -> StateLook:
    """Return the look of a run's end for the engine's reason."""
    reason = OF_ENGINE.get(stop_code)
    return look_of(reason.state, reason.code) if reason is not None else look_of(stop_code)


def look_of_job(job: Job) -> StateLook:
    return look_of(job.observed, job.reason_code)


def reason_in_words(job: Job) -> str:
    """Return why the job is in its state; states without a stored reason have a default text."""
    if job.reason:
        return job.reason
    if job.observed == Observed.RUNNING:
        return job.declaration.say(f"{{Round}} {job.round_no + 1:,} is under way.")
    return f"{look_of_job(job).word}."


def reason_beside_pill(job: Job) -> str:
    """Return why the job is in its state, for where its pill is shown: without what that says. It may be empty."""
    words = reason_in_words(job)
    how = _HOW.get(words.removeprefix(look_of_job(job).word))
    return words if how is None else how


_HOW = {".": "", " on request.": "On request.", " by hand.": "By hand."}


def looks_for_script() -> dict[str, dict[str, str]]:
    """Return the same table for the browser."""
    return {key: {"word": look.word, "tone": look.tone, "icon": look.icon} for key, look in LOOKS.items()}
