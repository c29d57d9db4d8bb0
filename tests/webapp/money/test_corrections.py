"""What was assumed of a call is corrected by what was metered, once, in the job's account and in the budgets above."""

from typing import Any

import pytest

from tests.factories import FixedClock, make_running_job
from tests.ledger_contract import reservation, settlement
from training.engine.ports import Reservation, Settlement
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job
from webapp.money.budgets import create_budget
from webapp.money.invariants import money_findings
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account, Budget, Charge, Crossing
from webapp.money.services import book_late, close_books, correct, settle_leftovers
from webapp.money.thresholds import note_crossings, note_expected

pytestmark = pytest.mark.django_db

USD = 10**12


def _assumed(clock: FixedClock, amount: int = 60) -> tuple[Any, int]:
    """A job whose only call was lost and booked whole."""
    job, epoch = make_running_job(clock=clock)
    DatabaseLedger(job.account.pk, epoch, clock=clock).reserve([reservation("a", amount)])
    close_books(job_id=job.pk, before_epoch=epoch + 1, clock=clock)
    return job, epoch


def _correct(job: Any, epoch: int, clock: FixedClock, amount: int, name: str = "a") -> bool:
    return correct(
        account_id=job.account.pk, epoch=epoch, name=name, settlement=settlement(name, amount), clock=clock
    )


def test_an_assumed_charge_becomes_the_metered_one_exactly_once() -> None:
    clock = FixedClock()
    job, epoch = _assumed(clock)
    booked_at = clock.now()
    granted = Account.objects.get(job=job).granted_picodollars
    clock.forward(60)
    assert _correct(job, epoch, clock, 25)
    assert not _correct(job, epoch, clock, 10)
    charge = Charge.objects.get(account=job.account)
    assert (charge.basis, charge.settled_picodollars, charge.assumed_picodollars) == ("metered", 25, 60)
    assert (charge.resolved_at, charge.corrected_at) == (booked_at, clock.now())
    assert charge.lines[0]["picodollars"] == 25
    assert charge.usage["env_steps"] == 256
    account = Account.objects.get(job=job)
    assert (account.spent_picodollars, account.reserved_picodollars, account.overrun_picodollars) == (
        25,
        0,
        0,
    )
    assert account.granted_picodollars == granted, "no budget above holds any of it"


def test_what_is_open_released_metered_or_unknown_is_not_corrected() -> None:
    job, epoch = make_running_job()
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation(name, 60) for name in ("open", "released", "metered")])
    ledger.release(["released"])
    ledger.settle([settlement("metered", 30)])
    clock = FixedClock()
    for name in ("open", "released", "metered", "unknown"):
        assert not _correct(job, epoch, clock, 5, name), name
    account = Account.objects.get(job=job)
    assert (account.spent_picodollars, account.reserved_picodollars) == (30, 60)


def test_only_a_metered_figure_corrects() -> None:
    job, epoch = _assumed(FixedClock())
    with pytest.raises(ValueError, match="a metered figure"):
        correct(
            account_id=job.account.pk, epoch=epoch, name="a", settlement=Settlement("a", 1, "assumed", (), {})
        )


def test_a_bill_above_the_worst_case_is_an_overrun_and_freezes() -> None:
    job, epoch = _assumed(FixedClock())
    assert _correct(job, epoch, FixedClock(), 75)
    account = Account.objects.get(job=job)
    assert (account.spent_picodollars, account.overrun_picodollars, account.frozen) == (60, 15, True)


@pytest.mark.parametrize("below_a_budget", [False, True])
def test_an_account_thaws_once_corrections_have_paid_for_its_overrun(below_a_budget: bool) -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock)
    if below_a_budget:
        create_budget(project=job.project, name="All", limit_picodollars=USD, clock=clock)
    ledger = DatabaseLedger(job.account.pk, epoch, clock=clock)
    ledger.reserve([reservation(name, 60) for name in ("a", "b", "c", "d")])
    ledger.settle([settlement("d", 75)])
    settle_leftovers(job_id=job.pk, before_epoch=epoch + 1, clock=clock)
    assert _correct(job, epoch, clock, 65)

    def figures() -> tuple[int, int, bool]:
        account = Account.objects.get(job=job)
        return account.spent_picodollars, account.overrun_picodollars, account.frozen

    assert figures() == (240, 20, True)
    assert _correct(job, epoch, clock, 45, "b")
    assert figures() == (240, 5, True), "too little was freed"
    assert ledger.reserve([reservation("e", 1)]) == [False]
    assert _correct(job, epoch, clock, 25, "c")
    assert figures() == (210, 0, False)
    assert ledger.reserve([reservation("e", 1)]) == [True]
    assert list(money_findings()) == []


def test_the_budgets_above_get_back_what_was_assumed_too_much() -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock)
    budget = create_budget(project=job.project, name="All", limit_picodollars=USD, clock=clock)
    DatabaseLedger(job.account.pk, epoch, clock=clock).reserve([reservation("a", 60)])
    close_books(job_id=job.pk, before_epoch=epoch + 1, clock=clock)
    assert Budget.objects.get(pk=budget.pk).spent_picodollars == 60
    assert _correct(job, epoch, clock, 25)
    budget.refresh_from_db()
    assert (budget.spent_picodollars, budget.reserved_picodollars) == (25, 0)
    account = Account.objects.get(job=job)
    assert account.granted_picodollars == account.spent_picodollars == 25


@pytest.mark.parametrize("true", [25, 75])
def test_a_month_that_is_over_is_not_touched(true: int) -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock)
    budget = create_budget(
        project=job.project, name="All", limit_picodollars=USD, period="monthly", clock=clock
    )
    DatabaseLedger(job.account.pk, epoch, clock=clock).reserve([reservation("a", 60)])
    close_books(job_id=job.pk, before_epoch=epoch + 1, clock=clock)
    clock.forward(40 * 24 * 3600)
    assert _correct(job, epoch, clock, true)
    budget.refresh_from_db()
    assert (budget.spent_picodollars, budget.reserved_picodollars, budget.overrun_picodollars) == (0, 0, 0)
    assert list(money_findings()) == []


def test_late_rent_is_booked_once_and_beyond_the_budget_if_it_must_be() -> None:
    job, epoch = make_running_job()
    limit = job.account.limit_picodollars
    rent = {"account_id": job.account.pk, "epoch": epoch, "usage": {"seconds": 60}}
    first, second = settlement("a", 60).lines, settlement("b", limit).lines
    assert book_late(name="a", lines=first, **rent)
    assert not book_late(name="a", lines=second, **rent)
    charge = Charge.objects.get(account=job.account)
    assert (charge.kind, charge.state, charge.basis) == ("rent", "settled", "metered")
    assert (charge.reserved_picodollars, charge.settled_picodollars) == (0, 60)
    assert book_late(name="b", lines=second, **rent)
    account = Account.objects.get(job=job)
    assert (account.spent_picodollars, account.overrun_picodollars, account.frozen) == (limit, 60, True)
    assert list(money_findings()) == []


@pytest.mark.parametrize(
    ("kind", "passed_s", "booked"), [("ray", 15, 15), ("ray", 90, 60), ("azure_container", 15, 60)]
)
def test_a_dead_runs_slice_of_rent_is_booked_until_now_where_it_ends_with_the_run(
    kind: str, passed_s: int, booked: int
) -> None:
    """The next run on the same machines begins a slice of its own."""
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock)
    Job.objects.filter(pk=job.pk).update(spec={**job.spec, "platform": {"kind": kind}})
    budget = create_budget(project=job.project, name="All", limit_picodollars=USD, clock=clock)
    ledger = DatabaseLedger(job.account.pk, epoch, clock=clock)
    ledger.reserve([Reservation("rent-nodes-1", "rent", 1, 60), reservation("a", 7)])
    clock.forward(passed_s)
    assert settle_leftovers(job_id=job.pk, before_epoch=epoch + 1, clock=clock) == 2
    account = Account.objects.get(job=job)
    assert (account.spent_picodollars, account.reserved_picodollars) == (booked + 7, 0)
    assert list(money_findings()) == []
    close_books(job_id=job.pk, before_epoch=epoch + 1, clock=clock)
    budget.refresh_from_db()
    assert (budget.spent_picodollars, budget.reserved_picodollars) == (booked + 7, 0)


def test_a_share_is_crossed_by_what_reaches_it_and_by_nothing_after_that() -> None:
    account = make_running_job()[0].account
    half, now = account.limit_picodollars // 2, SYSTEM_CLOCK.now()
    note_crossings(account, half, half + 1, now)
    assert not Crossing.objects.exists()
    note_crossings(account, half - 1, half, now)
    assert Crossing.objects.get().threshold == 50
    note_expected(account, half, now, None)
    assert Crossing.objects.get(kind="forecast").threshold == 100


def test_a_share_that_a_correction_takes_back_is_reported_again_when_it_is_reached_again() -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock)
    half = job.account.limit_picodollars // 2
    ledger = DatabaseLedger(job.account.pk, epoch, clock=clock)
    ledger.reserve([reservation("a", half), reservation("b", half)])
    settle_leftovers(job_id=job.pk, before_epoch=epoch + 1, clock=clock)

    def crossed() -> list[int]:
        rows = Crossing.objects.filter(account=job.account).order_by("pk")
        return list(rows.values_list("threshold", flat=True))

    assert crossed() == [50, 80, 90, 100]
    assert _correct(job, epoch, clock, half // 10 * 9, "a")
    assert _correct(job, epoch, clock, half // 10, "b")
    ledger.reserve([reservation("c", half // 10)])
    ledger.settle([settlement("c", half // 10)])
    assert len(crossed()) == 4, "half of it was still spent, so that was no news"
    ledger.reserve([reservation("d", half // 2)])
    ledger.settle([settlement("d", half // 2)])
    assert crossed() == [50, 80, 90, 100, 80]
