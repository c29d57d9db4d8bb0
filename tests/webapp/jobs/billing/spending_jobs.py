"""Jobs that have spent: a row of rounds of a second each, with what each cost."""

from datetime import UTC, datetime
from typing import Any

from tests.factories import FixedClock, make_running_job, make_spec, round_finished
from tests.ledger_contract import reservation, settlement
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder
from webapp.money.ledger import DatabaseLedger

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def running_job(
    rounds: int, each: int, *, clock: Any = None, spec: Any = None, project: Any = None, uneven: int = 0
) -> Any:
    """A job whose rounds took a second and cost `each`, five by five `uneven` more or less."""
    job, epoch = make_running_job(clock=clock or FixedClock(), spec=spec or make_spec(), project=project)
    ledger = DatabaseLedger(job.account.pk, epoch, clock=clock or FixedClock())
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3, clock=clock or FixedClock())
    spent = 0
    for round_no in range(1, rounds + 1):
        amount = each + (uneven if round_no % 10 < 5 else -uneven)
        ledger.reserve([reservation(f"r{round_no}", amount)])
        ledger.settle([settlement(f"r{round_no}", amount)])
        spent += amount
        recorder.record(round_finished(round_no, spent=spent))
    return Job.objects.select_related("account").get(pk=job.pk)


def endless_spec(**changes: Any) -> Any:
    return make_spec(training__stop={"env_steps": None, "rounds": 10**6}, **changes)
