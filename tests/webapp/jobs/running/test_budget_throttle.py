"""Coming to the line: fewer actors with the reason in the plan, no round that might not fit, and going on later."""

import threading
from typing import Any

import pytest

from cloud.money.ledger import MemoryLedger
from tests.factories import make_job, make_project, make_spec, release_lease
from tests.figures import figures_in
from tests.ledger_contract import reservation, settlement
from training.scaling.plan import Bounds
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.invariants import findings
from webapp.jobs.launch.launch_budget import least_of
from webapp.jobs.running.budget_throttle import WatchedLedger, bounds_near, drain_reason, no_beginning
from webapp.jobs.running.leases import take_lease
from webapp.jobs.running.runner import run_job
from webapp.jobs.services import go_on
from webapp.money.budgets import change_budget, create_budget
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account, Crossing
from webapp.money.queries import Limit

USD = 10**12


def _limit(room: int, share: float = 0.0, at_line: str = "drain", name: str = "the budget") -> Limit:
    return Limit(name, at_line, share, room)


def _after_a_round_of(amount: int) -> WatchedLedger:
    ledger = WatchedLedger(MemoryLedger(1000))
    ledger.reserve([reservation("a", amount - 10), reservation("b", 10)])
    ledger.settle([settlement("a", 5)])
    ledger.release(["b"])
    ledger.round_over()
    return ledger


def test_a_watched_ledger_knows_what_a_round_needs() -> None:
    ledger = _after_a_round_of(60)
    assert (ledger.round_needs, ledger.calls, ledger.used) == (60, 0, 5)
    assert ledger.reserve([reservation("c", 2000)]) == [False]
    assert ledger.reserve([reservation("d", 7), reservation("d", 7)]) == [True, True]
    assert (ledger.calls, ledger.headroom()) == (7, 988)
    ledger.round_over()
    assert ledger.round_needs == 7


def test_no_round_begins_that_might_not_fit_the_tightest_limit() -> None:
    ledger = _after_a_round_of(60)
    assert drain_reason([_limit(60), _limit(61)], ledger) == ""
    words = drain_reason([_limit(100), _limit(59, name="the budget “All”")], ledger)
    assert "the budget “All”" in words
    assert words.endswith("finished and saved")
    assert drain_reason([_limit(59, at_line="stop")], ledger) == ""


def test_what_is_left_is_what_the_page_calls_free() -> None:
    """Calls in flight hold part of what the round needs: that part is neither free nor needed once more."""
    ledger = _after_a_round_of(60 * USD)
    ledger.round_needs = 60 * USD
    ledger.calls = 20 * USD
    words = drain_reason([_limit(39 * USD, name="the budget “All”")], ledger)
    assert figures_in(words) == ["$40.00", "$39.00"]
    assert "the budget “All”" in words
    assert drain_reason([_limit(40 * USD)], ledger) == ""


def test_rent_that_falls_due_in_the_round_must_fit_too() -> None:
    ledger = _after_a_round_of(60)
    assert drain_reason([_limit(60)], ledger) == ""
    assert drain_reason([_limit(60)], ledger, rent=30)
    assert drain_reason([_limit(90)], ledger, rent=30) == ""


def test_what_a_round_has_paid_counts_beside_what_it_holds() -> None:
    """Actors are paid by the time when the learner's call holds its worst case."""
    ledger = WatchedLedger(MemoryLedger(1000))
    for round_no in (1, 2):
        ledger.reserve([reservation(f"actors {round_no}", 50)])
        ledger.settle([settlement(f"actors {round_no}", 20)])
        ledger.reserve([reservation(f"learner {round_no}", 40)])
        ledger.settle([settlement(f"learner {round_no}", 1)])
        ledger.round_over()
        assert ledger.round_needs == 60


def test_a_round_whose_calls_cost_nothing_of_their_own_needs_its_rent() -> None:
    ledger = WatchedLedger(MemoryLedger(1000))
    ledger.round_over()
    assert drain_reason([_limit(29)], ledger, rent=30)
    assert drain_reason([_limit(30)], ledger, rent=30) == ""


def test_a_run_does_not_begin_without_its_first_rounds_worst_case() -> None:
    assert no_beginning([_limit(60), _limit(61)], 60) == ""
    words = no_beginning([_limit(100), _limit(59, name="the budget “All”")], 60)
    assert "the budget “All”" in words
    assert words.endswith("none was begun")
    assert no_beginning([_limit(59, at_line="stop")], 60) == ""


def test_before_the_first_round_nothing_is_known_and_nothing_is_drained() -> None:
    assert drain_reason([_limit(0)], WatchedLedger(MemoryLedger(10))) == ""


@pytest.mark.parametrize(("share", "expected"), [(0.79, 64), (0.8, 16), (0.9, 8), (0.98, 2), (1.2, 1)])
def test_actors_shrink_in_a_straight_line_from_four_fifths_on(share: float, expected: int) -> None:
    bounds = bounds_near([_limit(9, share, "fewer"), _limit(9, 0.99)], Bounds(actors_max=64), 16)
    assert bounds.actors_max == expected
    if share >= 0.8:
        assert figures_in(bounds.because) == [f"{100 * share:.0f}"]


def _run(job: Any) -> Any:
    run_job(job.pk, owner="test", hand_over=threading.Event())
    job.refresh_from_db()
    return job


def _spec(**changes: Any) -> Any:
    return make_spec(
        "hopper-simulated",
        training__scaling={"kind": "fixed", "actors": 4},
        training__rollout__steps_per_call=512,
        training__rollout__memory_mb=8192,
        training__rollout__deadline_s=10,
        training__stop={"rounds": 300, "env_steps": None},
        training__evaluation={"every_rounds": 500, "episodes": 1},
        platform__workers=1,
        **changes,
    )


def _spent_already(job: Any, amount: int) -> None:
    """As if an earlier run of the job had spent so much."""
    epoch = take_lease(job_id=job.pk, owner="earlier")
    assert epoch is not None
    ledger = DatabaseLedger(job.account.pk, epoch)
    assert ledger.reserve([reservation("earlier", amount)]) == [True]
    ledger.settle([settlement("earlier", amount)])
    release_lease(job_id=job.pk, epoch=epoch)


@pytest.mark.django_db(transaction=True)
def test_a_job_drains_with_a_checkpoint_at_the_line_of_a_budget_above_and_goes_on() -> None:
    project = make_project()
    budget = create_budget(project=project, name="March", limit_picodollars=35 * USD // 100, at_line="fewer")
    job = make_job(project, spec=_spec())
    _spent_already(job, 307 * USD // 1000)
    job = _run(job)
    assert (job.observed, job.reason_code) == ("paused", "budget"), job.reason
    assert "the budget “March”" in job.reason
    assert job.reason.rstrip(".").endswith("finished and saved")
    assert job.checkpoints.order_by("-round_no").first().round_no == job.round_no > 0
    plans = list(
        job.rounds.order_by("round_no").values_list("payload__report__actors", "payload__report__plan_reason")
    )
    assert plans[0][0] == 3
    assert figures_in(plans[0][1]) == ["4", "4", "3", "88"]
    assert "the budget “March”" in plans[0][1]
    assert job.account.charges.filter(kind="update", state="settled").count() == job.round_no, (
        "no round was lost"
    )
    spent = Account.objects.get(job=job).spent_picodollars
    budget.refresh_from_db()
    assert (budget.spent_picodollars, budget.reserved_picodollars) == (spent, 0)
    crossed = Crossing.objects.filter(budget=budget).order_by("threshold").values_list("threshold", flat=True)
    assert list(crossed) == [50, 80, 90]
    rounds = job.round_no
    change_budget(budget=budget, limit_picodollars=spent + int(least_of(job.parsed_spec(), job.actors)))
    job = _run(go_on(job=job, user=job.created_by))
    assert job.round_no > rounds
    assert (job.observed, job.reason_code) == ("paused", "budget")
    assert findings(SYSTEM_CLOCK.now()) == []
