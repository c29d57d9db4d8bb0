"""Budgets above jobs: what they hold, whom they refuse, what they count, and that they add up whatever happens."""

from decimal import Decimal
from typing import Any

import pytest

from tests.factories import (
    FixedClock,
    make_job,
    make_project,
    make_running_job,
    make_spec,
    make_user,
    stopped,
)
from tests.ledger_contract import reservation, settlement
from tests.members import add_member
from webapp.jobs.models import Job, Tag
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.services import LimitTooLow, SpecRefused, go_on, raise_budget, stop_job
from webapp.money.budgets import BudgetRefused, change_budget, close_budget, create_budget
from webapp.money.invariants import money_findings
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account, Budget, Crossing
from webapp.money.services import settle_leftovers

pytestmark = pytest.mark.django_db

USD = 10**12


def _simulated(**changes: Any) -> Any:
    return make_spec("hopper-simulated", training__stop__env_steps=8192, **changes)


def _held(budget: Budget) -> tuple[int, int]:
    budget.refresh_from_db()
    return budget.spent_picodollars, budget.reserved_picodollars


def _budget(project: Any, usd: float, **options: Any) -> Budget:
    return create_budget(project=project, name="All", limit_picodollars=int(usd * USD), **options)


def test_a_launch_sets_aside_what_it_is_expected_to_take_and_gives_back_what_it_did_not() -> None:
    project = make_project()
    budget = _budget(project, 5)
    job, epoch = make_running_job(project=project, spec=_simulated())
    granted = job.account.granted_picodollars
    assert 0 < granted < job.account.limit_picodollars
    assert _held(budget) == (0, granted)
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", granted // 2)])
    assert _held(budget) == (0, granted), "reserved inside what was set aside, not twice"
    ledger.settle([settlement("a", granted // 4)])
    assert _held(budget) == (granted // 4, granted - granted // 4)
    Recorder(job.pk, epoch, keep_checkpoints=3).finish(stopped())
    assert _held(budget) == (granted // 4, 0)
    assert not list(money_findings())


def test_the_grant_grows_before_it_is_used_up_as_far_as_there_is_room() -> None:
    project = make_project()
    budget = _budget(project, 0.2)
    job, epoch = make_running_job(project=project, spec=_simulated())
    ledger = DatabaseLedger(job.account.pk, epoch)
    granted = Account.objects.get(job=job).granted_picodollars
    assert ledger.headroom() == USD // 5
    assert ledger.reserve([reservation("a", granted - 10), reservation("b", 20)]) == [True, True]
    assert Account.objects.get(job=job).granted_picodollars > granted + 10
    assert ledger.reserve([reservation("c", USD // 5 - granted - 10)]) == [True]
    assert ledger.reserve([reservation("d", 1)]) == [False]
    assert (ledger.headroom(), _held(budget)) == (0, (0, USD // 5))
    assert not list(money_findings())


def test_a_launch_whose_first_round_does_not_fit_is_refused_in_words() -> None:
    project = make_project()
    _budget(project, 0.001, period="monthly", clock=FixedClock())
    with pytest.raises(SpecRefused) as refusal:
        make_job(project, spec=_simulated(), clock=FixedClock())
    words = str(refusal.value)
    assert "the budget “All”" in words
    assert "$0.00100 of its $0.00100" in words
    assert "until 1 February" in words
    assert not Job.objects.exists()


def test_a_launch_that_its_own_budget_cannot_begin_is_refused() -> None:
    with pytest.raises(SpecRefused, match=r"Budget \(budget_usd\) .*\$0\.0") as refusal:
        make_job(spec=_simulated(budget_usd="0.0001"))
    assert refusal.value.problems[0].path == "budget_usd"


def test_what_several_jobs_hold_never_exceeds_what_is_above_them() -> None:
    project = make_project()
    budget = _budget(project, 0.09)
    first, _ = make_running_job(project=project, spec=_simulated())
    second, epoch = make_running_job(project=project, spec=_simulated())
    held = sum(Account.objects.get(job=one).granted_picodollars for one in (first, second))
    assert _held(budget) == (0, held)
    rest = DatabaseLedger(second.account.pk, epoch).headroom()
    assert rest == 9 * USD // 100 - Account.objects.get(job=first).granted_picodollars
    stop_job(job=first, user=first.created_by)
    assert not list(money_findings())


@pytest.mark.parametrize("scope", ["everything", "project", "user", "cloud", "tag", "group"])
def test_a_budget_counts_the_jobs_of_its_scope_and_no_others(scope: str) -> None:
    owner, other = make_user(), make_user()
    project = make_project(owner)
    add_member(project, other.email, "editor")
    inside = _simulated(tags=["sweep"], group="seeds")
    outside = _simulated(platform__kind="local") if scope == "cloud" else _simulated()
    early = make_job(project, owner, spec=inside)
    of: dict[str, Any] = {
        "user": {"user": owner},
        "cloud": {"cloud": "simulated"},
        "tag": {"tag": Tag.objects.get(name="sweep")},
        "group": {"group": early.groups.get()},
    }.get(scope, {})
    budget = create_budget(
        project=None if scope == "everything" else project,
        name="b",
        limit_picodollars=9 * USD,
        scope=scope,
        of=of,
    )
    late = make_job(project, owner, spec=inside)
    if scope == "cloud":
        outside = make_spec()
    elsewhere = make_job(project if scope in ("cloud", "tag", "group", "user") else None, other, spec=outside)
    expected = {early.pk, late.pk} | ({elsewhere.pk} if scope == "everything" else set())
    assert set(budget.accounts.values_list("job_id", flat=True)) == expected
    assert not list(money_findings())


def test_a_budget_counts_what_was_spent_before_it_was_made() -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock)
    ledger = DatabaseLedger(job.account.pk, epoch, clock=clock)
    ledger.reserve([reservation("a", 60), reservation("b", 10)])
    ledger.settle([settlement("a", 25)])
    assert _held(_budget(job.project, 1, clock=clock)) == (25, 10)
    with pytest.raises(BudgetRefused, match="is spent or"):
        create_budget(project=job.project, name="b", limit_picodollars=30, clock=clock)
    clock.forward(40 * 24 * 3600)
    monthly = create_budget(
        project=job.project, name="c", limit_picodollars=30, period="monthly", clock=clock
    )
    assert _held(monthly) == (0, 10)


def test_a_new_month_begins_with_nothing_spent_and_what_jobs_hold() -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock)
    budget = create_budget(
        project=job.project, name="m", limit_picodollars=100, period="monthly", clock=clock
    )
    ledger = DatabaseLedger(job.account.pk, epoch, clock=clock)
    ledger.reserve([reservation("a", 60), reservation("b", 40)])
    ledger.settle([settlement("a", 60)])
    assert _held(budget) == (60, 40)
    clock.forward(31 * 24 * 3600)
    assert ledger.reserve([reservation("c", 60), reservation("d", 1)]) == [True, False]
    ledger.settle([settlement("b", 40)])
    assert _held(budget) == (40, 60)
    assert [row.threshold for row in Crossing.objects.filter(budget=budget)] == [50]
    assert not list(money_findings())


def test_crossings_come_once_with_the_booking_and_again_after_the_limit_was_raised() -> None:
    job, epoch = make_running_job()
    budget = create_budget(project=job.project, name="b", limit_picodollars=100)
    ledger = DatabaseLedger(job.account.pk, epoch)

    def crossed() -> list[int]:
        return list(Crossing.objects.filter(budget=budget).order_by("pk").values_list("threshold", flat=True))

    for name, amount, expected in (("a", 49, []), ("b", 1, [50]), ("c", 41, [50, 80, 90])):
        ledger.reserve([reservation(name, amount)])
        ledger.settle([settlement(name, amount)])
        assert crossed() == expected
    change_budget(budget=budget, limit_picodollars=1000)
    ledger.reserve([reservation("d", 409)])
    ledger.settle([settlement("d", 409)])
    assert crossed() == [50, 80, 90, 50]
    row = Crossing.objects.latest("pk")
    assert (row.spent_picodollars, row.limit_picodollars, row.handled_at) == (500, 1000, None)


def test_a_job_that_a_budget_above_stopped_goes_on_once_there_is_room() -> None:
    project = make_project()
    budget = _budget(project, 0.09)
    job, epoch = make_running_job(project=project, spec=_simulated())
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", 8 * USD // 100)])
    ledger.settle([settlement("a", 8 * USD // 100)])
    Recorder(job.pk, epoch, keep_checkpoints=3).finish(stopped("budget"))
    with pytest.raises(ValueError, match=r"has \$0\.0100 of its \$0\.0900 free"):
        go_on(job=job, user=job.created_by)
    change_budget(budget=budget, limit_picodollars=USD)
    job = go_on(job=job, user=job.created_by)
    assert (job.observed, job.desired) == ("queued", "run")
    assert _held(budget)[1] == Account.objects.get(job=job).granted_picodollars - 8 * USD // 100 > 0
    assert not list(money_findings())


def test_a_job_whose_own_budget_is_used_up_wants_that_raised() -> None:
    job, epoch = make_running_job(spec=_simulated(budget_usd="0.05"))
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", 4 * USD // 100)])
    ledger.settle([settlement("a", 4 * USD // 100)])
    Recorder(job.pk, epoch, keep_checkpoints=3).finish(stopped("budget"))
    with pytest.raises(LimitTooLow, match="Raise the budget"):
        go_on(job=job, user=job.created_by)
    assert raise_budget(job=job, user=job.created_by, limit_usd=Decimal("0.2")).observed == "queued"


def test_a_closed_budget_holds_no_one_any_more() -> None:
    project = make_project()
    budget = _budget(project, 0.09)
    job, epoch = make_running_job(project=project, spec=_simulated())
    close_budget(budget=budget)
    ledger = DatabaseLedger(job.account.pk, epoch)
    assert ledger.reserve([reservation("a", USD // 2)]) == [True]
    assert ledger.headroom() == USD // 2
    assert not list(money_findings())


def test_an_overrun_is_kept_apart_above_as_well_until_somebody_raises_the_limit() -> None:
    project = make_project()
    budget = _budget(project, 5)
    job, epoch = make_running_job(project=project, spec=_simulated())
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", 60)])
    ledger.settle([settlement("a", 75)])
    budget.refresh_from_db()
    assert (budget.spent_picodollars, budget.overrun_picodollars) == (60, 15)
    raise_budget(job=job, user=job.created_by, limit_usd=Decimal(2))
    assert not list(money_findings())
    settle_leftovers(job_id=job.pk, before_epoch=epoch + 1, clock=FixedClock())
    assert not list(money_findings())


def test_findings_name_what_does_not_add_up() -> None:
    job, epoch = make_running_job()
    budget = create_budget(project=job.project, name="b", limit_picodollars=USD)
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", 60)])
    Budget.objects.filter(pk=budget.pk).update(reserved_picodollars=7, spent_picodollars=3)
    Account.objects.filter(job=job).update(reserved_picodollars=5)
    found = " ".join(money_findings())
    for words in (
        "is set aside, its jobs were granted",
        "is booked in its period",
        "its open charges hold 60",
    ):
        assert words in found
