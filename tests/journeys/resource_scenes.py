"""Made-up things in the clouds, for looking at what pages say of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.webapp import held
from tests.webapp.held import MB, PaperCloud
from training.engine.ports import Reservation, Settlement
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.models import Aim, Connection, SetUp
from webapp.jobs.models import Job
from webapp.money.ledger import DatabaseLedger
from webapp.resources.scanner import scan


def functions_kept_ready(connection: Connection) -> Job:
    """A job on Lambda with two warm functions, calls in flight, and some calls of unknown cost."""
    SetUp.objects.create(connection=connection, aim=Aim.SET_UP, since=SYSTEM_CLOCK.now(), requested_mb=[MB])
    scan(connection, find=lambda there: PaperCloud())
    Connection.objects.filter(pk=connection.pk).update(region="us-east-1")
    connection.refresh_from_db()
    job = held.make_lambda_job(connection, provisioned=2)
    Job.objects.filter(pk=job.pk).update(name="Cart pole on Lambda")
    epoch = held.run_of(job)
    register = held.holder(connection, job, epoch).register
    expires = (SYSTEM_CLOCK.now() + timedelta(seconds=120)).timestamp()
    register.intend(f"{held.FUNCTION}:1", "provisioned", expires, {"resource": "provisioned", "instances": 2})
    register.made(f"{held.FUNCTION}:1", "arn")
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([_call(f"c{number}") for number in range(12)])
    lost = [Settlement(f"c{number}", _call("").picodollars, "assumed", (), {}) for number in range(3)]
    ledger.settle(lost)
    return job


def an_account_that_lets_nobody_in(connection: Connection) -> None:
    """Its keys were taken away some minutes ago."""
    SetUp.objects.create(connection=connection, aim=Aim.SET_UP, since=SYSTEM_CLOCK.now(), requested_mb=[MB])
    scan(connection, find=lambda there: PaperCloud(fails=PermissionError("no")))


def _call(name: str) -> Any:
    return Reservation(name, "rollout", 1, 1_500_000_000)
