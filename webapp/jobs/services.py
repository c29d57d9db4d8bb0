"""What users do to jobs: submit, pause, stop, raise the budget, resume. Each is one transaction.

The row is written first; messages that speed things up follow on commit and may be lost.
"""

from collections.abc import Sequence
from decimal import Decimal

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from pydantic import ValidationError

from training.engine.checkpoints import CheckpointError
from webapp import doorbell
from webapp.accounts.access import ARCHIVED
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.leases import NOT_HELD, is_idle
from webapp.formatting import display_usd
from webapp.job_states import ACTIVE, TERMINAL, Observed
from webapp.jobs.events.event_log import EventEntry, append_events, note, transition
from webapp.jobs.form.spec_problems import SpecProblem, problems
from webapp.jobs.launch import cloud_requirements, launch_budget
from webapp.jobs.launch.preflight import training_obstacle
from webapp.jobs.launch.project_choices import data_sets, schedulers
from webapp.jobs.lineage import Source, remember
from webapp.jobs.models import Checkpoint, Desired, EventKind, Job, Round
from webapp.jobs.reasons import (
    Reason,
    ReasonCode,
    checkpoint_unreadable,
    stopped_by_budget,
    waits_for_storage,
)
from webapp.jobs.spec import JobSpec, Limits
from webapp.money.amounts import display_least_usd
from webapp.money.budgets import NoRoom, attach, lock_project, set_aside
from webapp.money.models import Account
from webapp.money.services import LimitTooLow, close_books, lower_limit, open_account, raise_limit


class SpecRefused(ValueError):
    """This installation refuses the spec; `problems` name the fields."""

    def __init__(self, problems: Sequence[SpecProblem]) -> None:
        super().__init__(" ".join(problem.sentence for problem in problems))
        self.problems = list(problems)


class JobFinished(ValueError):
    """The job has ended, so the change is refused. The text says how it ended."""


class CannotPause(ValueError):
    """The job has ended or is being stopped. The text says which."""


class CannotStartOver(ValueError):
    """The job's checkpoints can be read, or it has ended. The text says what to do."""


def limits() -> Limits:
    """Return what one job may request in this installation."""
    return Limits(
        local=settings.STARLING_MAX_LOCAL_ACTORS,
        simulated=settings.STARLING_MAX_SIMULATED_ACTORS,
        clouds=settings.STARLING_MAX_CLOUD_ACTORS,
    )


def submit_job(
    *,
    project: Project,
    user: User,
    spec: JobSpec,
    idempotency_key: str | None = None,
    whole_budget: bool = False,
    made_from: Source | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Job:
    """Create a queued job with its account and first event, and return it. The same key in the same project
    returns the same job.

    `whole_budget`: the budgets above hold all of its budget, not its expected cost. `made_from`: the job that
    it clones, repeats or forks. SpecRefused also if the worst case of the first round exceeds its own budget
    or the room in those above.
    """
    spec = schedulers().fill_in_weights(project, spec)
    refused = [*spec.check_limits(limits()), *schedulers().obstacles(project, spec)]
    refused += [*data_sets().obstacles(project, spec), *filter(None, [training_obstacle(spec.training)])]
    if refused := [*refused, *(made_from.obstacles(spec) if made_from is not None else ())]:
        raise SpecRefused(refused)
    needs = launch_budget.needs_of(project, spec, whole_budget=whole_budget)
    if refused := launch_budget.too_little(spec, needs):
        raise SpecRefused(refused)
    try:
        with transaction.atomic():
            return _create(project, user, spec, needs, idempotency_key, made_from, clock)
    except CheckpointError as error:
        raise SpecRefused(
            [SpecProblem("", f"The fork cannot begin: {error}. Choose another checkpoint.")]
        ) from None
    except NoRoom as error:
        raise SpecRefused([SpecProblem(launch_budget.BUDGET, str(error))]) from None
    except IntegrityError:
        existing = Job.objects.filter(project=project, idempotency_key=idempotency_key).first()
        if idempotency_key is None or existing is None:
            raise
        existing.replayed = True
        return existing


def _create(
    project: Project,
    user: User,
    spec: JobSpec,
    needs: launch_budget.Needs,
    idempotency_key: str | None,
    made_from: Source | None,
    clock: Clock,
) -> Job:
    now = clock.now()
    _lock_open_project(project.pk)
    connection = cloud_requirements.lock_connection(project, spec)
    if refused := cloud_requirements.obstacles(project, spec):
        raise SpecRefused(refused)
    spec = cloud_requirements.fill_in_setup(project, spec)
    job = Job.objects.create(
        project=project,
        name=spec.name,
        spec=spec.model_dump(mode="json"),
        simulated=spec.simulated,
        emulated=connection is not None and connection.emulated,
        created_by=user,
        created_at=now,
        since=now,
        idempotency_key=idempotency_key,
        reason=Reason.SUBMITTED.sentence,
        algorithm=spec.training.method,
        subject=spec.training.subject,
        cloud=spec.platform.kind,
    )
    launch_budget.add_labels(job, spec, now)
    account = open_account(job=job, limit_usd=spec.budget_usd)
    attach(account=account, least=needs.least, expected=needs.expected, clock=clock)
    if made_from is not None:
        remember(job, made_from)
    from_where = made_from.words if made_from is not None else ""
    text = f"Submitted by {user} with a budget of {display_usd(account.limit_picodollars)}{from_where}."
    job.last_seq = append_events(
        job.pk,
        [note(text, EventKind.STATE, observed=Observed.QUEUED.value, reason_code=ReasonCode.NONE.value)],
        clock=clock,
    )
    doorbell.launch_on_commit(job.pk)
    return job


def _lock_open_project(project_id: int) -> None:
    """Lock the project before anything may run in it. PermissionDenied if it is archived."""
    lock_project(project_id)
    if Project.objects.filter(pk=project_id, archived_at__isnull=False).exists():
        raise PermissionDenied(ARCHIVED)


@transaction.atomic
def stop_job(*, job: Job, user: User | str, clock: Clock = SYSTEM_CLOCK) -> Job:
    """Request that the job be cancelled. A running job drains within seconds; one without a process ends at
    once.

    Does nothing to a job that has ended.
    """
    job = Job.objects.select_for_update().get(pk=job.pk)
    if job.observed in TERMINAL or job.desired == Desired.CANCELLED:
        return job
    wanted = {"desired": Desired.CANCELLED}
    draining = Reason.STOP_REQUESTED.change(user=user)
    if is_idle(job.lease_expires_at, clock.shared_now()):
        append_events(job.pk, [note(draining.sentence)], clock=clock, changes=wanted)
        stop_idle(job.pk, clock=clock)
    elif job.observed in (Observed.STARTING, Observed.RUNNING):
        transition(job.pk, draining, clock=clock, changes=wanted)
    else:
        append_events(job.pk, [note(draining.sentence)], clock=clock, changes=wanted)
    job.refresh_from_db()
    return job


@transaction.atomic
def pause_job(*, job: Job, user: User, clock: Clock = SYSTEM_CLOCK) -> Job:
    """Request a pause. A running job saves a checkpoint first; one without a process is paused at once.

    Does nothing to a paused job. CannotPause if it has ended or is being stopped.
    """
    job = Job.objects.select_for_update().get(pk=job.pk)
    if job.desired == Desired.PAUSED or (job.observed == Observed.PAUSED and not waits_for_storage(job)):
        return job
    if job.observed == Observed.PAUSED:  # it would go on by itself
        entry = note(f"Pause requested by {user}.")
        append_events(job.pk, [entry], clock=clock, changes={"desired": Desired.PAUSED})
        job.refresh_from_db()
        return job
    if job.observed not in ACTIVE or job.desired == Desired.CANCELLED:
        state = "being stopped" if job.observed in ACTIVE else f"over ({job.get_observed_display().lower()})"
        raise CannotPause(f"The job is {state}; only an active job can be paused.")
    entry = note(f"Pause requested by {user}.")
    append_events(job.pk, [entry], clock=clock, changes={"desired": Desired.PAUSED})
    stop_idle(job.pk, clock=clock)
    job.refresh_from_db()
    return job


@transaction.atomic
def stop_idle(job_id: str, *, clock: Clock) -> bool:
    """End or pause a job without a process, as users want, and book its open charges. False if neither applies."""
    job = Job.objects.select_for_update().get(pk=job_id)
    if job.desired == Desired.CANCELLED and job.observed not in TERMINAL:
        reason = Reason.STOPPED
    elif job.desired == Desired.PAUSED and job.observed in ACTIVE:
        reason = Reason.PAUSED
    else:
        return False
    if not is_idle(job.lease_expires_at, clock.shared_now()):
        return False
    close_books(job_id=job_id, before_epoch=job.lease_epoch + 1, clock=clock)
    transition(job_id, reason.change(), clock=clock, changes=NOT_HELD)
    return True


@transaction.atomic
def raise_budget(*, job: Job, user: User, limit_usd: Decimal, clock: Clock = SYSTEM_CLOCK) -> Job:
    """Set a higher budget; a job that its budget stopped resumes.

    Raises SpecRefused (an invalid amount), LimitTooLow, JobFinished or NoRoom (in a budget above, so that the
    job could not resume); nothing is changed then.
    """
    job = _locked_for_budget(job, limit_usd)
    account = raise_limit(job_id=job.pk, limit_usd=limit_usd, clock=clock)
    text = f"Budget raised to {display_usd(account.limit_picodollars)} by {user}."
    entry = note(text, EventKind.BUDGET, limit_usd=str(limit_usd))
    if stopped_by_budget(job):
        _set_aside_again(job, account, clock)
        _queue_again(job, Reason.BUDGET_RAISED, entry, clock)
    else:
        append_events(job.pk, [entry], clock=clock)
    job.refresh_from_db()
    return job


@transaction.atomic
def lower_budget(*, job: Job, user: User, limit_usd: Decimal, clock: Clock = SYSTEM_CLOCK) -> Job:
    """Set a lower budget, which is not below what is spent or reserved.

    Raises SpecRefused (an invalid amount), LimitTooLow or JobFinished; nothing is changed then.
    """
    job = _locked_for_budget(job, limit_usd)
    account = lower_limit(job_id=job.pk, limit_usd=limit_usd, clock=clock)
    text = f"Budget lowered to {display_usd(account.limit_picodollars)} by {user}."
    append_events(job.pk, [note(text, EventKind.BUDGET, limit_usd=str(limit_usd))], clock=clock)
    job.refresh_from_db()
    return job


def _locked_for_budget(job: Job, limit_usd: Decimal) -> Job:
    """Return the job, locked, if its budget may be set to this amount. Raises SpecRefused or JobFinished."""
    try:
        JobSpec(budget_usd=limit_usd)
    except ValidationError as error:
        raise SpecRefused(problems(error, JobSpec)) from None
    _lock_open_project(job.project_id)
    job = Job.objects.select_for_update().get(pk=job.pk)
    if job.observed in TERMINAL:
        raise JobFinished(
            f"The job is over ({job.get_observed_display().lower()}); its budget cannot be changed."
        )
    return job


@transaction.atomic
def go_on(*, job: Job, user: User, clock: Clock = SYSTEM_CLOCK) -> Job:
    """Resume a paused job, whether a user or a budget above it paused it; others stay as they are.

    Raises LimitTooLow (its own budget ended it) or NoRoom.
    """
    _lock_open_project(job.project_id)
    job = Job.objects.select_for_update().get(pk=job.pk)
    if job.observed != Observed.PAUSED:
        return job
    account = Account.objects.select_for_update().get(job_id=job.pk)
    _set_aside_again(job, account, clock)
    going_on = Reason.GOES_ON if job.has_checkpoint else Reason.BEGINS_AGAIN
    reason = Reason.ROOM_IN_BUDGETS if stopped_by_budget(job) else going_on
    _queue_again(job, reason, note(f"Resume requested by {user}."), clock)
    job.refresh_from_db()
    return job


@transaction.atomic
def go_on_with_storage(*, job: Job, clock: Clock = SYSTEM_CLOCK) -> None:
    """Resume a job that paused for its storage and that no one paused beside; others stay as they are.

    Raises LimitTooLow or NoRoom.
    """
    lock_project(job.project_id)
    job = Job.objects.select_for_update().get(pk=job.pk)
    if waits_for_storage(job) and job.desired == Desired.RUN and job.project.archived_at is None:
        _set_aside_again(job, Account.objects.select_for_update().get(job_id=job.pk), clock)
        _queue_again(job, Reason.STORAGE_BACK, note("Its checkpoints can be used again."), clock)


@transaction.atomic
def start_over(*, job: Job, user: User, clock: Clock = SYSTEM_CLOCK) -> Job:
    """Begin a job again whose recorded checkpoints cannot be read: its rounds and checkpoints are forgotten, what was
    paid for them stays on the bill.

    Raises CannotStartOver if its checkpoints are not the reason why it paused; LimitTooLow or NoRoom.
    """
    _lock_open_project(job.project_id)
    job = Job.objects.select_for_update().get(pk=job.pk)
    if not checkpoint_unreadable(job):
        raise CannotStartOver(
            "Only a job whose checkpoints cannot be read can be started over; clone this one."
        )
    _set_aside_again(job, Account.objects.select_for_update().get(job_id=job.pk), clock)
    text = job.declaration.say(
        f"Start over requested by {user}. {{Rounds}} 1 to {job.round_no:,} are repeated; what was paid for them stays"
        " on the bill."
    )
    entry = note(text, EventKind.RESUMED, from_round=0, repeated_to=job.round_no)
    Round.objects.filter(job=job).update(round_no=None)
    Checkpoint.objects.filter(job=job).delete()
    Job.objects.filter(pk=job.pk).update(round_no=0, total_progress=0, platform_s=0.0)
    _queue_again(job, Reason.STARTED_OVER, entry, clock)
    job.refresh_from_db()
    return job


def _set_aside_again(job: Job, account: Account, clock: Clock) -> None:
    """Reserve what the job needs to resume, and its expected cost beyond what it has spent."""
    needs = launch_budget.needs_of(job.project, job.parsed_spec(), actors=job.actors)
    left = account.limit_picodollars - account.spent_picodollars - account.overrun_picodollars
    if left < needs.least:
        least = display_least_usd(account.limit_picodollars - left + needs.least)
        raise LimitTooLow(
            f"{display_usd(left)} of its budget is left, and its next {job.declaration.round_name} may cost up to"
            f" {display_least_usd(needs.least)}. Raise the budget to {least} or more."
        )
    expected = max(needs.least, needs.expected - account.spent_picodollars)
    set_aside(account=account, least=needs.least, expected=expected, clock=clock)


def _queue_again(job: Job, reason: Reason, entry: EventEntry, clock: Clock) -> None:
    changes = {"desired": Desired.RUN, "crashes": 0, "losses": 0}
    transition(job.pk, reason.change(), clock=clock, changes=changes, before=[entry])
    doorbell.launch_on_commit(job.pk)
