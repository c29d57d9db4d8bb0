"""`manage.py verify` is quiet about sound rows and names what does not hold, also between jobs and their events."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F

from tests.factories import FixedClock, make_job, make_running_job, round_finished, stopped
from tests.figures import figures_in
from tests.ledger_contract import reservation, settlement
from webapp.database.leases import LEASE_TTL
from webapp.jobs.invariants import findings
from webapp.jobs.models import Checkpoint
from webapp.jobs.running.recorder import Recorder
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account

pytestmark = pytest.mark.django_db


def job_that_ended() -> Any:
    """A job that came to its end after two rounds and a settled call."""
    job, epoch = make_running_job()
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", 10)])
    ledger.settle([settlement("a", 5)])
    for round_no in (1, 2):
        recorder.record(round_finished(round_no))
    recorder.finish(stopped(rounds=2))
    return job


def test_sound_rows_are_passed_over_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    job_that_ended()
    make_job()
    call_command("verify")
    assert capsys.readouterr().out == "Everything adds up.\n"


def test_the_command_fails_with_a_line_for_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_that_ended()
    Account.objects.filter(job=job).update(spent_picodollars=4)
    with pytest.raises(SystemExit):
        call_command("verify")
    assert figures_in(capsys.readouterr().err.split(": ", 1)[1])[:2] == ["4", "5"]


def reserve_more(job: Any) -> None:
    account = Account.objects.filter(job=job)
    account.update(granted_picodollars=F("limit_picodollars"), reserved_picodollars=7)


def keep_checkpoint(job: Any) -> None:
    Checkpoint.objects.create(
        job=job, round_no=9, epoch=1, name="x", sha256="", byte_count=1, at=job.created_at
    )


def test_a_job_that_no_one_runs_for_a_minute_is_named() -> None:
    clock = FixedClock()
    job, _ = make_running_job(clock=clock)
    assert findings(clock.now()) == []
    assert findings(clock.now() + LEASE_TTL) == []
    (found,) = findings(clock.now() + LEASE_TTL + timedelta(minutes=2))
    assert job.pk in found
