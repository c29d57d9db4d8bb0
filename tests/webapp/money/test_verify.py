"""`manage.py verify` is quiet about sound rows and names what does not hold, also between jobs and their events."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F

from tests.factories import FixedClock, make_job, make_running_job, round_finished, stopped
from tests.figures import figures_in
from tests.ledger_contract import reservation, settlement
from webapp.clock import SYSTEM_CLOCK
from webapp.database.leases import LEASE_TTL
from webapp.jobs.invariants import findings
from webapp.jobs.models import Checkpoint, Event, Job, Round
from webapp.jobs.running.recorder import Recorder
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account, Charge

pytestmark = pytest.mark.django_db


def _job() -> Any:
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
    _job()
    make_job()
    call_command("verify")
    assert capsys.readouterr().out == "Everything adds up.\n"


def test_the_command_fails_with_a_line_for_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    job = _job()
    Account.objects.filter(job=job).update(spent_picodollars=4)
    with pytest.raises(SystemExit):
        call_command("verify")
    assert figures_in(capsys.readouterr().err.split(": ", 1)[1])[:2] == ["4", "5"]


def _reserve_more(job: Any) -> None:
    account = Account.objects.filter(job=job)
    account.update(granted_picodollars=F("limit_picodollars"), reserved_picodollars=7)


def _keep_checkpoint(job: Any) -> None:
    Checkpoint.objects.create(
        job=job, round_no=9, epoch=1, name="x", sha256="", byte_count=1, at=job.created_at
    )


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda job: Event.objects.filter(job=job, seq=2).delete(), "of its events 1 to"),
        (
            lambda job: Round.objects.filter(job=job, round_no=1).update(round_no=None),
            "keeps 1 rounds, 2 to 2",
        ),
        (lambda job: Job.objects.filter(pk=job.pk).update(total_progress=9), "its rounds made 512"),
        (lambda job: Job.objects.filter(pk=job.pk).update(observed="failed"), "its events do not say so"),
        (lambda job: Round.objects.filter(job=job).update(epoch=9), "an epoch that never was"),
        (lambda job: Charge.objects.update(basis=""), "do not go together"),
        (lambda job: Charge.objects.update(lines=[]), "its price lines do not come to that"),
        (lambda job: Charge.objects.update(settled_picodollars=6), "its charges come to 6"),
        (lambda job: _reserve_more(job), "its open charges hold 0"),
        (lambda job: Job.objects.filter(pk=job.pk).update(round_no=3), "is at round 3 and keeps 2 rounds"),
        (
            lambda job: Event.objects.filter(job=job, kind="state").update(payload={"observed": "succeeded"}),
            "it went",
        ),
        (lambda job: _keep_checkpoint(job), "a checkpoint of a round after its last"),
    ],
)
def test_what_was_spoilt_is_named(spoil: Any, words: str) -> None:
    job = _job()
    spoil(job)
    assert any(words in finding for finding in findings(SYSTEM_CLOCK.now()))


def test_a_job_that_no_one_runs_for_a_minute_is_named() -> None:
    clock = FixedClock()
    job, _ = make_running_job(clock=clock)
    assert findings(clock.now()) == []
    assert findings(clock.now() + LEASE_TTL) == []
    (found,) = findings(clock.now() + LEASE_TTL + timedelta(minutes=2))
    assert job.pk in found
