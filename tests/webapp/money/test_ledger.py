"""The database's ledger keeps the contract of all ledgers, holds under concurrency, and only for its own epoch."""

import threading
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.factories import FixedClock, make_running_job, release_lease
from tests.factories import make_ledger as make_database_ledger
from tests.ledger_contract import LedgerContract, MakeLedger, reservation, settlement
from webapp.clock import SYSTEM_CLOCK
from webapp.database.leases import LEASE_TTL
from webapp.jobs.running.leases import take_lease
from webapp.money.invariants import money_findings
from webapp.money.ledger import DatabaseLedger, LedgerClosed
from webapp.money.models import Account, Basis, Charge, ChargeState
from webapp.money.services import LimitTooLow, lower_limit, settle_leftovers


@pytest.mark.django_db
class TestDatabaseLedger(LedgerContract):
    @pytest.fixture
    def make_ledger(self, db: None) -> MakeLedger:
        return make_database_ledger


def _running(**options: Any) -> tuple[Any, int, DatabaseLedger]:
    job, epoch = make_running_job(**options)
    return job, epoch, DatabaseLedger(job.account.pk, epoch)


@pytest.mark.django_db
def test_a_charge_keeps_what_it_was_for() -> None:
    job, epoch, ledger = _running()
    ledger.reserve([reservation("a", 60)])
    ledger.settle([settlement("a", 25)])
    charge = Charge.objects.get(account=job.account)
    assert (charge.epoch, charge.name, charge.state, charge.basis) == (epoch, "a", "settled", "metered")
    assert (charge.reserved_picodollars, charge.settled_picodollars) == (60, 25)
    assert charge.lines[0]["sku"] == "lambda.request"
    assert charge.usage == {"env_steps": 256}


@pytest.mark.django_db
def test_a_ledger_is_closed_once_somebody_else_holds_the_lease() -> None:
    clock = FixedClock()
    job, _, ledger = _running(clock=clock)
    ledger.reserve([reservation("a", 60)])
    clock.forward(LEASE_TTL.total_seconds())
    assert take_lease(job_id=job.pk, owner="next", clock=clock) == 2
    writes = (
        lambda: ledger.reserve([reservation("b", 1)]),
        lambda: ledger.settle([settlement("a", 1)]),
        lambda: ledger.release(["a"]),
    )
    for write in writes:
        with pytest.raises(LedgerClosed):
            write()
    charge = Charge.objects.get(account=job.account)
    assert (charge.name, charge.state) == ("a", "open")


@pytest.mark.django_db
def test_the_usual_batch_takes_one_statement_or_two() -> None:
    """And a batch that is not as usual still gets the right answers, each by itself."""
    _, _, ledger = _running()
    with CaptureQueriesContext(connection) as queries:
        assert ledger.reserve([reservation(f"r{no}", 1000) for no in range(64)]) == [True] * 64
    said = [one["sql"] for one in queries if "SAVEPOINT" not in one["sql"]]
    assert len(said) == (1 if connection.vendor == "postgresql" else 2)
    rest = ledger.headroom()
    again = [reservation("r1", 1000), reservation("big", rest + 1), reservation("last", rest)]
    assert ledger.reserve(again) == [True, False, True]
    assert ledger.headroom() == 0
    charge = Charge.objects.get(name="last")
    assert (charge.kind, charge.state, charge.usage, charge.lines) == ("rollout", "open", {}, [])
    assert list(money_findings()) == []


@pytest.mark.django_db
def test_a_limit_may_come_down_to_what_is_spent_and_reserved_and_no_further() -> None:
    job, _, ledger = _running()
    ledger.reserve([reservation("a", 3_000_000), reservation("b", 2_000_000)])
    ledger.settle([settlement("a", 1_000_000)])
    lower_limit(job_id=job.pk, limit_usd=Decimal("0.000003"))
    job.account.refresh_from_db()
    assert job.account.limit_picodollars == 3_000_000
    with pytest.raises(LimitTooLow, match=r"below \$0\.000003, which"):
        lower_limit(job_id=job.pk, limit_usd=Decimal("0.000002"))


@pytest.mark.django_db
def test_batches_of_thousands_of_calls() -> None:
    _, _, ledger = _running()
    names = [f"call-{number}" for number in range(1500)]
    assert all(ledger.reserve([reservation(name, 2) for name in names]))
    ledger.settle([settlement(name, 1) for name in names[:1200]])
    ledger.release(names)
    assert ledger.spend().spent_picodollars == 1200
    assert ledger.spend().reserved_picodollars == 0


@pytest.mark.django_db
def test_an_old_epoch_can_do_nothing() -> None:
    job, epoch, ledger = _running()
    ledger.reserve([reservation("a", 60)])
    release_lease(job_id=job.pk, epoch=epoch)
    for act in (
        lambda: ledger.reserve([reservation("b", 1)]),
        lambda: ledger.settle([settlement("a", 1)]),
        lambda: ledger.release(["a"]),
    ):
        with pytest.raises(LedgerClosed):
            act()
    assert Charge.objects.get().state == ChargeState.OPEN


@pytest.mark.django_db
def test_what_a_dead_run_left_open_is_booked_whole_and_once() -> None:
    job, epoch, ledger = _running()
    ledger.reserve([reservation("a", 60), reservation("b", 10)])
    ledger.settle([settlement("a", 25)])
    for expected in (1, 0):
        assert settle_leftovers(job_id=job.pk, before_epoch=epoch + 1, clock=SYSTEM_CLOCK) == expected
    assert ledger.spend().spent_picodollars == 35
    assert ledger.spend().reserved_picodollars == 0
    assert Charge.objects.get(name="b").basis == Basis.ASSUMED


@pytest.mark.django_db
def test_the_database_itself_refuses_to_overspend() -> None:
    job, _, _ = _running()
    with pytest.raises(IntegrityError), transaction.atomic():
        Account.objects.filter(job=job).update(spent_picodollars=10**15)


@pytest.mark.django_db(transaction=True)
def test_many_threads_and_one_budget() -> None:
    """40 threads want 3 of 100 each: 33 get it."""
    ledger = make_database_ledger(100)
    granted: list[bool] = []

    def reserve(number: int) -> None:
        try:
            granted.extend(ledger.reserve([reservation(f"call-{number}", 3)]))
        finally:
            connection.close()

    threads = [threading.Thread(target=reserve, args=[number]) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 40
    assert sum(granted) == 33
    assert ledger.spend().reserved_picodollars == 99
