"""Recovery after a run that ended before its job: where to resume, what a crash means for the job, and the regular
check of all jobs (`check_jobs`), by which each job continues from its row after lost messages and dead processes.

Several processes may call these functions at once: each change applies only if the job's row, locked, has not
changed.
"""

import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, FloatField, Max, Min, Q
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from cloud.platforms.options import COMPUTE_HERE
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.leases import (
    CRASHED_EXIT,
    LEASE_LOST_EXIT,
    LEASE_TTL,
    NOT_HELD,
    LeaseLost,
    expire_dead,
    find_liveness,
    idle,
    is_idle,
)
from webapp.doorbell import ask_to_launch
from webapp.job_states import ACTIVE, TERMINAL, Observed
from webapp.jobs.charts.figures import SCORE
from webapp.jobs.events.event_log import append_events, note, transition
from webapp.jobs.models import Checkpoint, Desired, EventKind, Job, Round
from webapp.jobs.reasons import Reason, ReasonCode, StateChange, fail_after_retries
from webapp.jobs.running.checkpoint_files import CheckpointsUnreadable, checkpoint_folder
from webapp.jobs.services import stop_idle
from webapp.money.models import Charge, ChargeState
from webapp.money.services import close_books, settle_leftovers

ASK_AGAIN_AFTER = timedelta(seconds=4)
_JOBS_AT_ONCE = 100
_RENEWED_WITHIN_S = 3.0
"""A heartbeat that failed tries again every half second."""
CRASHES_ALLOWED = 5
"""A job fails after so many crashes without a new checkpoint: it would repeat them for ever."""
LOSSES_ALLOWED = 20
"""The same limit for lost leases, which are no fault of the job."""

_NO_CRASH = frozenset({ReasonCode.HANDOVER, ReasonCode.LOST, ReasonCode.CHECKPOINT_NOT_WRITTEN})
"""The process was stopped, its lease expired, its worker died or was killed, or the disk was full. None of these is a
fault of the job."""


class ResumePoint(NamedTuple):
    round_no: int
    data: bytes


@transaction.atomic
def begin_run(*, job_id: str, epoch: int, clock: Clock = SYSTEM_CLOCK) -> None:
    """Start the job under a new epoch: charges that earlier epochs left open are booked."""
    job = Job.objects.select_for_update().get(pk=job_id)
    if job.lease_epoch != epoch:
        raise LeaseLost(f"job {job_id} is run under epoch {job.lease_epoch} by now")
    settle_leftovers(job_id=job_id, before_epoch=epoch, clock=clock)
    if job.observed in (Observed.STARTING, Observed.RUNNING, Observed.DRAINING):
        # Its last run died and that has not been recorded yet.
        transition(job_id, Reason.LEASE_EXPIRED.change(), clock=clock, epoch=epoch)
    transition(job_id, Reason.STARTING.change(), clock=clock, epoch=epoch)


def resume_point(
    *, job_id: str, epoch: int, load: Callable[[Checkpoint], bytes | None], clock: Clock = SYSTEM_CLOCK
) -> ResumePoint | None:
    """Return the newest checkpoint that `load` can read, with later rounds dropped; None to start from the
    beginning, if no checkpoint is recorded. CheckpointsUnreadable if there are some and it can read none: nothing is
    dropped then.

    If anything was done before, an event says where the job resumes, which rounds it repeats, and that their
    cost stays on the bill.
    """
    rows = list(Checkpoint.objects.filter(job_id=job_id).order_by("-round_no"))
    loaded = ((row, load(row)) for row in rows)
    point = next((ResumePoint(row.round_no, data) for row, data in loaded if data is not None), None)
    if rows and point is None:
        raise CheckpointsUnreadable(
            f"The checkpoint of round {rows[0].round_no:,} is recorded, and its file cannot be read in"
            f" {checkpoint_folder(job_id)}. Bring that folder back and the job goes on by itself. If the files are gone"
            " for good, start the job over: it begins again and pays again."
        )
    skipped = bool(point and rows[0].round_no > point.round_no)
    _forget_later_rounds(job_id, epoch, point.round_no if point else 0, clock, skipped=skipped)
    return point


@transaction.atomic
def _forget_later_rounds(job_id: str, epoch: int, kept: int, clock: Clock, *, skipped: bool) -> None:
    job = Job.objects.select_for_update().get(pk=job_id)
    last = job.round_no
    if last == 0 and kept == 0:
        return
    report = (
        Round.objects.filter(job_id=job_id, round_no=kept).values_list("payload__report", flat=True).first()
        or {}
    )
    changes: dict[str, Any] = {
        "round_no": kept,
        "total_progress": report.get("total_env_steps", 0),
        "platform_s": report.get("started_s", 0.0) + report.get("total_s", 0.0),
        **_scores_until(job, kept),
    }
    unreadable = "Its newest checkpoint cannot be read. " if skipped else ""
    text = job.declaration.say(unreadable + _resumed_text(kept, last))
    entry = note(text, EventKind.RESUMED, from_round=kept, repeated_to=last)
    append_events(job_id, [entry], clock=clock, epoch=epoch, changes=changes)
    Round.objects.filter(job_id=job_id, round_no__gt=kept).update(round_no=None)
    Checkpoint.objects.filter(job_id=job_id, round_no__gt=kept).delete()


def _scores_until(job: Job, kept: int) -> dict[str, float | None]:
    """Return the job's scores as they were after round `kept`: later ones are repeated."""
    scored = Round.objects.filter(job=job, round_no__lte=kept).exclude(**{SCORE: None})
    scored = scored.annotate(score=Cast(KT(SCORE), FloatField()))
    ends = scored.aggregate(least=Min("score"), most=Max("score"))
    best, worst = ("most", "least") if job.declaration.score.higher_is_better else ("least", "most")
    judged = job.events.filter(kind=EventKind.EVALUATION, payload__round_no__lte=kept).order_by("-seq")
    return {
        "training_score": scored.order_by("-round_no").values_list("score", flat=True).first(),
        "best_training_score": ends[best],
        "worst_training_score": ends[worst],
        "evaluated_score": judged.values_list("payload__return_mean", flat=True).first(),
    }


def _resumed_text(kept: int, last: int) -> str:
    start = (
        f"Resumes from the checkpoint of {{round}} {kept:,}."
        if kept
        else "Starts again: there is no checkpoint yet."
    )
    if last <= kept:
        return start
    which = f"{{Round}} {last:,} is" if last == kept + 1 else f"{{Rounds}} {kept + 1:,} to {last:,} are"
    return f"{start} {which} repeated; what was paid for them stays on the bill."


@transaction.atomic
def run_ended(
    *,
    job_id: str,
    epoch: int | None,
    why: StateChange,
    only_if_idle: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> bool:
    """Record that a run ended without ending its job: the job restarts, or fails after too many such runs.
    False if it did not apply.

    `why` names the cause. `epoch` None means a process that died before it took the lease. `only_if_idle`
    leaves a valid lease alone.
    """
    job = Job.objects.select_for_update().get(pk=job_id)
    if job.observed in TERMINAL or job.observed not in ACTIVE:
        return False
    if (epoch is None or only_if_idle) and not is_idle(job.lease_expires_at, clock.shared_now()):
        return False
    if epoch is not None and job.lease_epoch != epoch:
        return False
    if epoch is not None and not job.lease_owner and job.observed in (Observed.QUEUED, Observed.RECOVERING):
        return False  # already recorded
    settle_leftovers(job_id=job_id, before_epoch=job.lease_epoch + 1, clock=clock)
    crashes = job.crashes + (why.code not in _NO_CRASH)
    losses = job.losses + (why.code == ReasonCode.LOST)
    changes: dict[str, Any] = {**NOT_HELD, "crashes": crashes, "losses": losses}
    if crashes > CRASHES_ALLOWED or losses > LOSSES_ALLOWED:
        close_books(job_id=job_id, before_epoch=job.lease_epoch + 1, clock=clock)
        times = losses if why.code == ReasonCode.LOST else crashes
        transition(job_id, fail_after_retries(why, times), clock=clock, changes=changes)
    elif job.observed in (Observed.QUEUED, Observed.RECOVERING):
        append_events(job_id, [note(why.sentence)], clock=clock, changes=changes)
    else:
        transition(job_id, why, clock=clock, changes=changes)
    return True


def hand_back(*, job_id: str, owner: str, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Release the lease that `owner` holds, because its process is being stopped; False if it holds none."""
    epoch = Job.objects.filter(pk=job_id, lease_owner=owner).values_list("lease_epoch", flat=True).first()
    if epoch is None:
        return False
    return run_ended(job_id=job_id, epoch=epoch, why=Reason.WORKER_STOPPED.change(), clock=clock)


def record_exit(*, job_id: str, owner: str, code: int, memory_ran_out: bool = False) -> None:
    """Record why the process of `owner` ended with `code`, if it could not do so itself. `memory_ran_out`: the system
    killed a process for its memory meanwhile.
    """
    job = Job.objects.get(pk=job_id)
    died = Reason.PROCESS_DIED.change(how=describe_exit(code))
    if memory_ran_out and code == -signal.SIGKILL:
        died = Reason.KILLED_FOR_MEMORY.change()
    if job.lease_owner == owner:
        why = Reason.LEASE_LOST.change() if code == LEASE_LOST_EXIT else died
        run_ended(job_id=job_id, epoch=job.lease_epoch, why=why)
    elif code not in (0, CRASHED_EXIT, LEASE_LOST_EXIT):
        # It died before it took the lease; otherwise the process has recorded the cause.
        run_ended(job_id=job_id, epoch=None, why=died)


def describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


@transaction.atomic
def end_run(*, job_id: str, epoch: int, why: StateChange, clock: Clock = SYSTEM_CLOCK) -> None:
    """End the job, or pause it, as `why` says: it is not run again by itself, and nothing more is paid."""
    job = Job.objects.select_for_update().get(pk=job_id)
    if job.lease_epoch != epoch or job.observed in TERMINAL:
        return
    close_books(job_id=job_id, before_epoch=epoch + 1, clock=clock)
    transition(job_id, why, clock=clock, epoch=epoch, changes=NOT_HELD)


def check_jobs(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Cancel, pause, restart and queue jobs that need it, and book what dead runs left open."""
    expire_dead(Job, clock=clock)
    now = clock.shared_now()
    for job in _to_stop(now):
        stop_idle(job.pk, clock=clock)
    deserted = _deserted(now)
    if any(find_liveness(job.lease_owner) == "alive" for job in deserted):
        # While the database could not be written no lease could be renewed either. Each is renewed at once after.
        time.sleep(_RENEWED_WITHIN_S)
        deserted = _deserted(clock.shared_now())
    for job in deserted:
        run_ended(
            job_id=job.pk,
            epoch=job.lease_epoch,
            why=_why_lost(job),
            only_if_idle=True,
            clock=clock,
        )
    # Jobs that were just found without a run start in this check; those that must not run are skipped there.
    for job_id in dict.fromkeys([*(job.pk for job in deserted), *_waiting(now)]):
        if not ask_to_launch(job_id):
            break  # no broker: the next check tries again
    for job in _owing(now):
        settle_leftovers(job_id=job.pk, before_epoch=job.lease_epoch + (not job.lease_owner), clock=clock)


def _why_lost(job: Job) -> StateChange:
    """Return why a run stopped renewing its lease, as far as this machine knows."""
    life = find_liveness(job.lease_owner)
    if life == "gone":
        return Reason.WORKER_KILLED.change()
    reason = Reason.MACHINE_BUSY if life == "alive" else Reason.MACHINE_GONE
    return reason.change(seconds=LEASE_TTL.total_seconds())


def _to_stop(now: datetime) -> list[Job]:
    ending = Q(desired=Desired.CANCELLED) & ~Q(observed__in=TERMINAL)
    pausing = Q(desired=Desired.PAUSED, observed__in=ACTIVE)
    return list(Job.objects.filter(idle(now), ending | pausing)[:_JOBS_AT_ONCE])


def _deserted(now: datetime) -> list[Job]:
    at_work = Q(observed__in=ACTIVE - {Observed.QUEUED, Observed.RECOVERING})
    died_early = Q(observed=Observed.RECOVERING, lease_expires_at__isnull=False)
    return list(Job.objects.filter(idle(now), at_work | died_early)[:_JOBS_AT_ONCE])


def _waiting(now: datetime) -> list[str]:
    """Return the jobs that need a start. Jobs that wait for a core do not delay jobs that need none."""
    waiting = Job.objects.filter(
        idle(now),
        desired=Desired.RUN,
        observed__in=(Observed.QUEUED, Observed.RECOVERING),
        since__lte=now - ASK_AGAIN_AFTER,
    ).order_by("since", "pk")
    here = Q(cloud__in=COMPUTE_HERE)
    jobs = [*waiting.exclude(here)[:_JOBS_AT_ONCE], *waiting.filter(here)[:_JOBS_AT_ONCE]]
    return [job.pk for job in jobs]


def _owing(now: datetime) -> list[Job]:
    open_charges = Charge.objects.filter(state=ChargeState.OPEN)
    left = open_charges.filter(
        Q(epoch__lt=F("account__job__lease_epoch")) | Q(account__job__lease_owner="")
    ).values_list("account__job_id", flat=True)
    return list(Job.objects.filter(pk__in=left)[:_JOBS_AT_ONCE])
