"""Whatever learners there are and whatever fails: a run spends no more than its budget, all of it is settled, and the
same work timed and priced again costs the same, to the picodollar.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloud.money.billing.bill_context import bill_context
from cloud.money.billing.full_bill import full_bill
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.platforms.simulated_options import SimulatedOptions
from tests.cloud.recorded import CHANCE, record
from tests.training.specs import tiny
from training.engine.messages import Call
from training.engine.ports import Control

PLACES: list[dict[str, Any]] = [
    {"learner": "function", "learner_lanes": 1},
    {"learner": "function", "learner_lanes": 5, "learners_per_gpu": 2},
    {"learner": "function", "learner_lanes": 4, "learners_per_gpu": 4},
    {"learner": "server", "learner_machines": 2},
]


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    budget_usd=st.sampled_from([0.0001, 0.001, 0.02, 1000.0]),
    place=st.sampled_from(PLACES),
    where=st.sampled_from(["actor", "learner"]),
    actors_wait=st.booleans(),
    attempts=st.sampled_from([1, 4]),
    failure_share=st.sampled_from([0.0, 0.1, 0.4]),
    cancelled_after=st.sampled_from([None, 30, 200]),
    seed=st.integers(0, 1000),
)
def test_spend_is_never_above_the_budget_and_is_that_of_the_work(
    budget_usd: float,
    place: dict[str, Any],
    where: str,
    actors_wait: bool,
    attempts: int,
    failure_share: float,
    cancelled_after: int | None,
    seed: int,
) -> None:
    loop = {"kind": "staleness_aware", "learners": 4, "trajectories_per_gradient": 1, "where": where}
    spec = tiny(
        loop={**loop, "actors_wait": actors_wait},
        scaling={"actors": 4},
        stop={"rounds": 2},
        rollout={"attempts": attempts},
        seed=seed,
    )
    polled = 0

    def control() -> Control:
        nonlocal polled
        polled += 1
        over = cancelled_after is not None and polled > cancelled_after
        return Control(desired="cancelled" if over else "run")

    run = record(
        spec,
        budget_usd=budget_usd,
        options=SimulatedOptions(seed=seed, **place),
        control=control,
        **{**CHANCE, "failure_share": failure_share},
    )
    assert run.spent_picodollars <= budget_usd * 10**12
    assert sum(settlement.picodollars for settlement in run.segment.settlements) == run.spent_picodollars
    lanes = run.place.options.learner_lanes
    assert full_bill([run.segment], bill_context(run.place.profile, run.place.stack, lanes)).total == (
        run.spent_picodollars
    )
    if run.events[-1].kind == "stopped" and run.events[-1].reason_code == "rounds":
        again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
        assert (again.time_s, again.bill.picodollars) == (run.end_s, run.spent_picodollars)


@pytest.mark.parametrize("learner", ["server", "function"])
def test_a_learner_that_dies_on_a_gpu_costs_its_time_and_its_slice_is_sent_again(learner: str) -> None:
    """Of four that share the GPU of a p3.2xlarge one dies. Nothing is learned twice or left out; all of it is paid."""
    loop = {"kind": "staleness_aware", "learners": 4, "trajectories_per_gradient": 1, "where": "learner"}
    spec = tiny(loop=loop, scaling={"actors": 4}, stop={"rounds": 2})
    options = SimulatedOptions(
        learner=learner,
        learner_sku="p3.2xlarge",
        learner_lanes=4,
        learners_per_gpu=1 if learner == "server" else 4,
    )
    dead: list[Call] = []

    def dies(call: Call) -> bool:
        if call.kind == "gradient" and call.request.pass_no == 2 and not dead:
            dead.append(call)
            return True
        return False

    whole, broken = (
        record(spec, options=options, broken=kills, budget_usd=1e6) for kills in (lambda _: False, dies)
    )
    assert [event.report.progress for event in broken.events if event.kind == "round"] == [
        event.report.progress for event in whole.events if event.kind == "round"
    ]
    works = [
        [
            work
            for one in run.segment.settlements
            if (work := one.usage.get("work", {})).get("kind") == "gradient"
        ]
        for run in (whole, broken)
    ]
    assert len(works[1]) == len(works[0]) + 1
    assert [work["id"] for work in works[1] if work.get("broken")] == [dead[0].id]
    bill = full_bill([broken.segment], bill_context(broken.place.profile, broken.place.stack, 4))
    assert bill.total == broken.spent_picodollars
    again = retime(ReplaySchedule.of(broken.segment), broken.place, seed=broken.seed)
    assert (again.time_s, again.bill.picodollars) == (broken.end_s, broken.spent_picodollars)
    assert (bill.parts["failed"] > 0) == (learner == "function")
    assert bill.parts["dropped"] == 0
