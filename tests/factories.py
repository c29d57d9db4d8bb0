"""The one place where tests make people, projects, jobs and what an engine would tell of them."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from rig.rounds import round_finished
from training.engine.messages import CallFailed, CheckpointSaved, Evaluated, Started, Stopped
from training.engine.reports import RoundReport

_numbers = itertools.count(1)


class FixedClock:
    """A clock that moves when it is told to."""

    def __init__(self, moment: datetime = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def shared_now(self) -> datetime:
        return self.moment

    def forward(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def make_user(email: str = "", password: str | None = None) -> Any:
    """A person without a project, whose address is confirmed."""
    from allauth.account.models import EmailAddress

    from webapp.accounts.models import User

    user = User.objects.create_user(email or f"person{next(_numbers)}@example.org", password)
    EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
    return user


def make_project(owner: Any = None, name: str = "") -> Any:
    """A project with an owner."""
    from webapp.accounts.services import create_project

    return create_project(name or f"Project {next(_numbers)}", owner or make_user())


def make_spec(preset: str = "cartpole", **changes: Any) -> Any:
    """A preset's spec; changes by path with double underscores, such as training__stop__rounds=2."""
    from webapp.jobs.form.presets import preset_document
    from webapp.jobs.spec import JobSpec

    document = preset_document(preset)
    for path, value in changes.items():
        *tables, field = path.split("__")
        here = document
        for table in tables:
            here = here.setdefault(table, {})
        here[field] = value
    return JobSpec.model_validate(document)


def make_job(project: Any = None, user: Any = None, spec: Any = None, **options: Any) -> Any:
    """A queued job, as submitting makes it."""
    from webapp.jobs.services import submit_job

    project = project or make_project(user)
    user = user or project.people.first()
    return submit_job(project=project, user=user, spec=spec or make_spec(), **options)


def release_lease(*, job_id: str, epoch: int) -> bool:
    """Release a job's lease, as the end of its run does. Its epoch stays used: later writes under it are refused."""
    from webapp.database.leases import NOT_HELD
    from webapp.jobs.models import Job

    held = Job.objects.filter(pk=job_id, lease_epoch=epoch).exclude(lease_owner="")
    return bool(held.update(**NOT_HELD))


def make_running_job(clock: Any = None, **options: Any) -> tuple[Any, int]:
    """A job whose run has just started, and the epoch of its lease."""
    from webapp.clock import SYSTEM_CLOCK
    from webapp.jobs.running.leases import take_lease
    from webapp.jobs.running.recorder import Recorder
    from webapp.jobs.running.recovery import begin_run

    clock = clock or SYSTEM_CLOCK
    job = make_job(clock=clock, **options)
    epoch = take_lease(job_id=job.pk, owner=f"test-{next(_numbers)}", clock=clock)
    assert epoch is not None
    begin_run(job_id=job.pk, epoch=epoch, clock=clock)
    Recorder(job.pk, epoch, keep_checkpoints=3, clock=clock).record(Started())
    job.refresh_from_db()
    return job, epoch


def make_connection(
    project: Any, user: Any = None, secret: str = "s3cret/of+twenty=letters", **fields: Any
) -> Any:
    """A connection with access keys, as a user has just set it up; `secret=""` leaves the last step out."""
    from webapp.connections.sealing import Secret
    from webapp.connections.services import create_connection, set_identity

    made = {"kind": "aws_keys", "name": f"Account {next(_numbers)}", "region": "eu-central-1", **fields}
    connection = create_connection(project=project, user=user or project.people.first(), **made)
    if not secret or connection.kind != "aws_keys":
        return connection
    plain = {"access_key_id": "AKIAABCDEFGHIJKLMNOP"}
    return set_identity(connection=connection, plain=plain, secrets={"secret_access_key": Secret(secret)})


def make_alert(project: Any, clock: Any = None, **changes: Any) -> Any:
    """An alert of the project, raised as the code that finds something raises it."""
    from webapp.alerts.services import raise_alert
    from webapp.clock import SYSTEM_CLOCK

    number = next(_numbers)
    given = {
        "kind": "orphan",
        "subject": f"function:starling-{number}",
        "sentence": "A function was left over.",
        "severity": "warning",
        "dedupe_key": f"orphan:{number}",
        **changes,
    }
    return raise_alert(project_id=project.pk, clock=clock or SYSTEM_CLOCK, **given)


def make_webhook(
    project: Any, url: str = "https://192.0.2.80/hook", clock: Any = None, on: bool = True
) -> Any:
    """A webhook channel; whether its address may be reached is for the sending to say."""
    from webapp.alerts import secrets
    from webapp.alerts.models import Channel
    from webapp.clock import SYSTEM_CLOCK
    from webapp.connections.sealing import Secret

    at = (clock or SYSTEM_CLOCK).now()
    name = f"Hook {next(_numbers)}"
    channel = Channel.objects.create(project=project, way="webhook", name=name, created_at=at, on=on)
    secrets.seal_secret(channel, "url", Secret(url))
    secrets.seal_secret(channel, "signing_key", Secret("whsec_of_a_test"))
    return channel


def make_delivery(project: Any) -> tuple[Any, Any]:
    """A webhook channel, and a delivery of an alert that waits there."""
    channel = make_webhook(project)
    return channel, make_alert(project).deliveries.get(channel=channel)


def make_ledger(limit_picodollars: int) -> Any:
    """The ledger of a running job with this limit."""
    from webapp.money.ledger import DatabaseLedger

    budget = Decimal(limit_picodollars) / 10**12
    spec = make_spec().model_copy(update={"budget_usd": budget})
    job, epoch = make_running_job(spec=spec)
    return DatabaseLedger(job.account.pk, epoch)


def changed_report(round_no: int = 1, **changes: Any) -> RoundReport:
    """The report of a round with these fields, its own or its figures', as they should be."""
    report: RoundReport = round_finished(round_no).report
    figures = {name: changes.pop(name) for name in list(changes) if name in type(report.figures).model_fields}
    return report.model_copy(update={**changes, "figures": report.figures.model_copy(update=figures)})


def evaluated(round_no: int, mean: float = 100.0) -> Any:
    return Evaluated(
        round_no=round_no,
        total_progress=256 * round_no,
        at_s=float(round_no),
        episode_returns=(mean,),
        return_mean=mean,
        return_std=0.0,
        length_mean=mean,
        cost_picodollars=0,
    )


def checkpoint_saved(round_no: int, sha256: str = "0" * 64) -> Any:
    return CheckpointSaved(
        round_no=round_no, name=f"round-{round_no:08d}.checkpoint", sha256=sha256, byte_count=10
    )


def call_failed(call_id: str = "r1-s0-a1") -> Any:
    return CallFailed(
        call_id=call_id,
        call_kind="rollout",
        round_no=1,
        slot=0,
        attempt=1,
        reason="it fell over",
        reason_code="raised",
        will_retry=True,
    )


def stopped(reason_code: str = "steps", rounds: int = 1) -> Any:
    return Stopped(
        reason_code=reason_code,
        reason="all is done",
        rounds=rounds,
        env_steps=256 * rounds,
        platform_s=float(rounds),
        evaluation_return_mean=None,
        episode_return_mean=20.0,
        cost_picodollars=0,
    )
