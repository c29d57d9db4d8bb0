"""`manage.py verify` on a site whose jobs go on: it reads one snapshot, and still finds what is wrong in it."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from tests.factories import checkpoint_saved, make_running_job, round_finished
from tests.figures import figures_in
from tests.ledger_contract import reservation, settlement
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder
from webapp.money.ledger import DatabaseLedger

pytestmark = pytest.mark.django_db(transaction=True)


class BusyJob:
    """A job that finishes a round, with its call and checkpoint, between any two queries of another thread."""

    def __init__(self) -> None:
        self.job, epoch = make_running_job()
        self.rounds = 0
        self._recorder = Recorder(self.job.pk, epoch, keep_checkpoints=3)
        self._ledger = DatabaseLedger(self.job.account.pk, epoch)
        self._thread = ThreadPoolExecutor(1)

    def __call__(self, execute: Any, *query: Any) -> Any:
        answer = execute(*query)
        if query[0].startswith("SELECT"):
            self._thread.submit(self._finish_round).result()
        return answer

    def _finish_round(self) -> None:
        self.rounds += 1
        self._ledger.reserve([reservation(f"call-{self.rounds}", 10)])
        self._ledger.settle([settlement(f"call-{self.rounds}", 5)])
        self._recorder.record(round_finished(self.rounds))
        self._recorder.record(checkpoint_saved(self.rounds))

    def end(self) -> None:
        self._thread.submit(lambda: connection.close()).result()
        self._thread.shutdown()


def test_a_round_that_ends_between_two_reads_is_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    busy = BusyJob()
    try:
        with connection.execute_wrapper(busy):
            call_command("verify")
    finally:
        busy.end()
    assert busy.rounds > 10
    assert capsys.readouterr().out == "Everything adds up.\n"


def test_a_fault_is_found_beside_a_job_that_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    busy = BusyJob()
    broken, _ = make_running_job()
    Job.objects.filter(pk=broken.pk).update(round_no=3)
    try:
        with connection.execute_wrapper(busy), pytest.raises(SystemExit):
            call_command("verify")
    finally:
        busy.end()
    found = capsys.readouterr().err.splitlines()
    assert any(line.startswith(broken.pk) and figures_in(line)[-2:] == ["3", "0"] for line in found)
    assert all(line.startswith(broken.pk) for line in found)
