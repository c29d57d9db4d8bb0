"""A run timed and priced again: on its own cloud it is what it was, to the last digit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cloud.money.billing.bill import Bill
from cloud.money.billing.bill_context import bill_context
from cloud.money.billing.full_bill import full_bill
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.money.billing.work_file import RunSegment
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.simulation.speed import Speeds
from tests.cloud import clouds
from tests.cloud.recorded import CHANCE, Recorded, record
from tests.training.specs import tiny
from training.engine.ports import Control
from training.scaling.agent_weights import as_text
from training.scaling.learned import Learned
from training.scheduling.minionsrl.model import SchedulingSpec
from training.scheduling.trainer import initial_state

QUICK = {"kind": "impala", "minibatch_size": 64}
LOOPS: dict[str, dict[str, Any]] = {
    "synchronous": {},
    "pipelined": {"loop": {"kind": "pipelined"}},
    "asynchronous": {"loop": {"kind": "asynchronous", "staleness_limit": 2}, "algorithm": QUICK},
    "hurried": {
        "loop": {"kind": "asynchronous", "staleness_limit": 1, "trajectories_per_update": 1},
        "algorithm": QUICK,
    },
    "stellaris": {"loop": {"kind": "staleness_aware", "learners": 2, "trajectories_per_gradient": 1}},
    "stellaris in order": {
        "loop": {
            "kind": "staleness_aware",
            "learners": 3,
            "trajectories_per_gradient": 1,
            "order": "launch",
            "where": "learner",
        }
    },
    "stellaris that goes on": {
        "loop": {
            "kind": "staleness_aware",
            "learners": 2,
            "trajectories_per_gradient": 2,
            "actors_wait": False,
        },
        "algorithm": QUICK,
    },
    "stellaris going on": {
        "loop": {
            "kind": "staleness_aware",
            "learners": 3,
            "trajectories_per_gradient": 1,
            "order": "launch",
            "actors_wait": False,
        },
        "algorithm": QUICK,
    },
}
POOL = {"core_sku": "aci.vcpu.linux", "memory_sku": "aci.memory.linux"}
AZURE = SimulatedOptions(profile="aci-today", region="eastus", learner_sku="Standard_E16-8s_v5", seed=2)
PLACES: dict[str, dict[str, Any]] = {
    "functions": {},
    "kept warm": {"options": SimulatedOptions(provisioned=2, learner="function", seed=5)},
    "cluster": {"pool": {"units": 2, "actors_per_unit": 2, "machine_sku": "c5.4xlarge"}},
    "pool": {"pool": POOL, "idle_s": 6.0, "options": AZURE},
}


def spec_of(loop: str, **changes: Any) -> Any:
    base: dict[str, Any] = {
        "rollout": {"steps_per_call": 4, "attempts": 2, "deadline_s": 60.0},
        "stop": {"rounds": 5},
        "evaluation": {"every_rounds": 2, "episodes": 3},
    }
    return tiny(**{**base, **LOOPS[loop], **changes})


def check_equal(run: Recorded) -> None:
    again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
    assert again.time_s == run.end_s
    assert again.bill.picodollars == run.spent_picodollars
    booked = Bill.of(run.segment.settlements)
    assert again.bill.lines == booked.lines
    reports = [event.report for event in run.events if event.kind == "round"]
    found = [(one.round_no, one.began_s, one.collect_s, one.update_s, one.total_s) for one in again.rounds]
    assert found == [
        (one.round_no, one.started_s, one.collect_s, one.update_s, one.total_s) for one in reports
    ]
    assert again.calls == len(run.segment.works)


@pytest.mark.parametrize("place", sorted(PLACES))
@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_on_its_own_cloud_a_run_is_what_it_was(loop: str, place: str) -> None:
    run = record(spec_of(loop), **(CHANCE | PLACES[place]))
    check_equal(run)
    assert run.events[-1].kind == "stopped"


@pytest.mark.parametrize("loop", ["synchronous", "asynchronous"])
def test_a_schedulers_decisions_are_timed_and_billed_again(loop: str) -> None:
    scaling = scheduler()
    run = record(spec_of(loop, scaling=scaling), inference_us_per_million_macs=1e6, **CHANCE)
    check_equal(run)
    decided = {work.decision_macs for work in run.segment.works if work.kind == "update"}
    assert decided == {scaling.decision_macs}
    assert scaling.decision_macs > 0
    speeds = Speeds(run.place.profile, run.place.stack)
    bill = full_bill([run.segment], bill_context(run.place.profile, run.place.stack, 1))
    learner = sum(line.picodollars for line in bill.lines if line.sku == "c5.4xlarge")
    updates = [work for work in run.segment.works if work.kind == "update" and not work.broken]
    share = sum(map(speeds.decision_ns, updates)) / (bill.counts["learner_stood_ms"] * 10**6)
    assert bill.parts["scheduler"] == pytest.approx(learner * share, rel=0.01)
    assert bill.total == run.spent_picodollars


def scheduler() -> Learned:
    of = SchedulingSpec(workload=tiny(), target_return=100.0, actors_max=3, rounds=5)
    return of.policy(as_text(initial_state(of).actor_weights(of.network)), explore=True)


@settings(max_examples=15, deadline=None)
@given(
    loop=st.sampled_from(sorted(LOOPS)),
    place=st.sampled_from(["functions", "pool"]),
    seed=st.integers(0, 2**31 - 1),
    failure_share=st.sampled_from([0.0, 0.05, 0.2]),
    straggler_sigma=st.sampled_from([0.0, 0.5, 1.5]),
    coordinator_ms=st.sampled_from([0.0, 50.0]),
)
@example(  # A gradient is in flight from the second round to the fourth.
    loop="stellaris that goes on",
    place="functions",
    seed=746,
    failure_share=0.2,
    straggler_sigma=1.5,
    coordinator_ms=0.0,
)
def test_whatever_chance_does(loop: str, place: str, seed: int, **chance: float) -> None:
    options = PLACES[place].get("options", SimulatedOptions()).model_copy(update={"seed": seed})
    check_equal(record(spec_of(loop), **(CHANCE | PLACES[place] | chance | {"options": options})))


@pytest.mark.parametrize("loop", sorted(LOOPS))
@pytest.mark.parametrize("asks", [9, 23, 40])
def test_a_run_stopped_by_hand_is_what_it_was(loop: str, asks: int) -> None:
    requested: list[int] = []

    def control() -> Control:
        requested.append(1)
        return Control(desired="cancelled" if len(requested) > asks else "run")

    run = record(spec_of(loop, stop={"rounds": 50}), control=control, **CHANCE)
    again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
    assert run.events[-1].reason_code == "cancelled"
    assert again.time_s == run.end_s
    assert again.bill.picodollars == run.spent_picodollars


@pytest.mark.parametrize("loop", ["synchronous", "pipelined", "asynchronous"])
def test_bodies_that_raised_raise_again(loop: str) -> None:
    run = record(
        spec_of(loop, stop={"rounds": 3}),
        broken=lambda call: call.attempt == 1 and "-s1-" in call.id,
        **CHANCE,
    )
    assert any(work.broken for work in run.segment.works)
    check_equal(run)


def test_elsewhere_the_same_work_takes_other_times() -> None:
    """Twice the speed of cores halves what is computed and nothing else: a case to be added up by hand."""
    spec = spec_of("synchronous", stop={"rounds": 1}, evaluation={"every_rounds": 1, "episodes": 1})
    run = record(spec, server_start_s=0.0)
    schedule = ReplaySchedule.of(run.segment)
    slow = retime(schedule, run.place, seed=0)
    fast = retime(
        schedule, replace(run.place, profile=clouds.profile(core_ratio=2.0, server_start_s=0.0)), seed=0
    )
    judged = next(work for work in run.segment.works if work.kind == "evaluate")
    # 4 steps of 100 ms in the round, and the minibatches of 100 ms, then the evaluation's steps.
    minibatches = next(work.minibatches for work in run.segment.works if work.kind == "update")
    computed_s = 0.1 * (4 + minibatches + judged.steps)
    assert slow.time_s - fast.time_s == pytest.approx(computed_s / 2, abs=1e-6)
    assert fast.calls == slow.calls


def test_a_retry_that_never_was_does_the_work_of_the_call() -> None:
    run = record(spec_of("synchronous"))
    assert len({work.name for work in run.segment.works}) == len(run.segment.works)
    failing = replace(run.place, profile=clouds.profile(failure_share=0.3))
    found = retime(ReplaySchedule.of(run.segment), failing, seed=1)
    assert found.failed > 0
    assert found.calls > len(run.segment.works)
    assert len(found.rounds) == 5


def test_holes_in_the_record_are_reported_and_survived() -> None:
    run = record(spec_of("synchronous"))
    gone = next(one for one in run.segment.settlements if "update" in one.id)
    kept = [one for one in run.segment.settlements if one is not gone]
    schedule = ReplaySchedule.of(RunSegment.of(run.segment.spec, kept))
    assert "3 that others" in " ".join(schedule.notes)
    assert retime(schedule, run.place, seed=0).calls == len(run.segment.works) - 1
