"""An emulated account that a project is connected to, a job on it, and things that the job holds there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cloud.accounts.connections import AwsKeys
from cloud.accounts.provision.permissions import SHARED_PREFIX
from cloud.accounts.register import FoundResource, Holder
from cloud.platforms.aws.functions import function_name
from emulator.aws.demo import DemoAccount, furnish
from emulator.aws.server import AwsEmulator
from tests.cloud.aws.code import create
from tests.factories import make_connection, make_job, make_project, make_spec, make_user
from training.engine.messages import Started
from webapp.clock import SYSTEM_CLOCK
from webapp.connections import services
from webapp.connections.models import Aim, Connection, SetUp
from webapp.connections.sealing import Secret
from webapp.jobs.models import Job
from webapp.jobs.running.leases import take_lease
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import begin_run
from webapp.resources.register import DatabaseRegister

MB = 1024
FUNCTION = function_name(SHARED_PREFIX, MB)


@contextmanager
def account() -> Iterator[tuple[AwsEmulator, DemoAccount]]:
    """An account with the actors' function in it, of a few lines only."""
    with AwsEmulator() as aws:
        demo = furnish(aws)
        create(demo.by_keys.open().client("lambda"), FUNCTION, demo.actor_role, MemorySize=MB)
        yield aws, demo


def connect_by_keys(demo: DemoAccount, project: Any, owner: Any = None, **fields: Any) -> Connection:
    """The project's connection to the account by its keys, not tested yet."""
    keys = demo.by_keys.access
    assert isinstance(keys, AwsKeys)
    return services.set_identity(
        connection=make_connection(project, owner, secret="", region="us-east-1", **fields),
        plain={"access_key_id": keys.access_key_id},
        secrets={"secret_access_key": Secret(keys.secret_access_key)},
    )


def connect(demo: DemoAccount, project: Any = None) -> Connection:
    """The project's connection to it, set up for the one size of memory, as one from before each had its own names."""
    owner = make_user() if project is None else project.people.first()
    connection = connect_by_keys(demo, project or make_project(owner), owner)
    connection.prefix = SHARED_PREFIX
    connection.save(update_fields=["prefix"])
    SetUp.objects.create(
        connection=connection, aim=Aim.SET_UP, since=SYSTEM_CLOCK.now(), requested_mb=[MB], ready_mb=[MB]
    )
    return connection


def make_lambda_job(connection: Connection, clock: Any = SYSTEM_CLOCK, **platform: Any) -> Job:
    """A job on it, queued, as if everything had been in order at its launch."""
    spec = make_spec(budget_usd="5", training__rollout__memory_mb=MB)
    job = make_job(connection.project, connection.created_by, spec=spec, clock=clock)
    options = {"kind": "aws_lambda", "connection": connection.pk, "region": connection.region, **platform}
    job.spec = {**job.spec, "platform": options}
    job.save(update_fields=["spec"])
    return job


def run_of(job: Job, clock: Any = SYSTEM_CLOCK) -> int:
    """Its next run begins; the epoch."""
    epoch = take_lease(job_id=job.pk, owner="test", clock=clock)
    assert epoch is not None
    begin_run(job_id=job.pk, epoch=epoch, clock=clock)
    Recorder(job.pk, epoch, keep_checkpoints=3, clock=clock).record(Started())
    job.refresh_from_db()
    return epoch


def run_dies(job: Job) -> None:
    """Its lease has run out, and no one has looked yet."""
    Job.objects.filter(pk=job.pk).update(lease_expires_at=SYSTEM_CLOCK.now())


def holder(connection: Connection, job: Job, epoch: int, clock: Any = SYSTEM_CLOCK) -> Holder:
    register = DatabaseRegister(connection.pk, job.pk, epoch, clock=clock)
    return Holder(register, connection.pk, job.pk, epoch, "lab")


def stand(aws: AwsEmulator) -> list[str]:
    """What really is kept ready in the account, whatever a listing shows."""
    return [f"{one.name}:{number}" for one in aws.functions.alive() for number in one.provisioned]


@dataclass
class PaperCloud:
    """A finder over a list, to look at what a listing may show."""

    shown: list[FoundResource] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    fails: Exception | None = None

    def found(self) -> list[FoundResource]:
        if self.fails is not None:
            raise self.fails
        return list(self.shown)

    def end(self, found: FoundResource) -> None:
        self.ended.append(found.name)
