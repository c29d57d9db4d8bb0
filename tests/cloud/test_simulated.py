"""The virtual clock, against cases worked by hand. See `clouds.profile` for the numbers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cloud.failures import Failure
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from tests.cloud import calls, clouds
from tests.cloud.instant_executor import InstantExecutor, planned_work
from tests.cloud.meter import SimulatedOnMeter
from training.engine.messages import Call, Outcome
from training.engine.reports import Usage
from training.functions.body import Result

MB = 1_000_000


def work(call: Call) -> Result | Failure:
    """As asked for; rollouts come back with 1 MB, which takes a second, updates with nothing."""
    result = planned_work(call)
    assert isinstance(result, Result)
    return Result(bytes(MB if call.where == "actor" else 0), None, result.usage)


def cloud(executor: InstantExecutor | None = None, **changes: Any) -> SimulatedOnMeter:
    chosen = {name: changes.pop(name) for name in ("seed", "learner", "provisioned") if name in changes}
    options = SimulatedOptions.model_validate(chosen)
    return clouds.platform(executor=executor or InstantExecutor(work), options=options, **changes)


def rollout(name: str, steps: int = 10, **changes: Any) -> Call:
    return calls.rollout(name, None, steps=steps, **{"memory_mb": 1000, **changes})


def update(name: str, minibatches: int = 10, inputs: tuple[bytes, ...] = ()) -> Call:
    return calls.update(name, inputs, seed=minibatches)


def gather(platform: SimulatedPlatform, timeout_s: float = 1000.0) -> list[Outcome]:
    outcomes = []
    while (outcome := platform.next(timeout_s)) is not None:
        outcomes.append(outcome)
    return outcomes


def parts(usage: Usage) -> tuple[float, float, float]:
    return usage.startup_s, usage.run_s, usage.transfer_s


def test_a_cold_call_is_start_and_work_and_way() -> None:
    platform = cloud()
    platform.submit(rollout("c"))
    (outcome,) = gather(platform)
    assert parts(outcome.usage) == (2.0, 1.0, 1.25)
    assert (outcome.started_s, outcome.finished_s, platform.now_s()) == (0.0, 4.25, 4.25)
    assert outcome.usage.cold_start
    assert outcome.usage.billed_s == 3.0


def test_an_actors_time_divides_by_the_profile_not_by_this_machines_clock() -> None:
    measured = Usage(steps=8, inferences=10, steps_s=77.0, inference_s=7.0)
    platform = cloud(InstantExecutor(lambda call: Result(b"", None, measured)))
    platform.submit(rollout("c"))
    (outcome,) = gather(platform)
    # Eight steps of 90 ms, ten inferences of 10 ms.
    assert outcome.usage.run_s == 0.82
    assert (outcome.usage.steps_s, outcome.usage.inference_s) == pytest.approx((0.72, 0.1))


def test_half_the_memory_is_half_the_speed_and_more_than_a_core_is_no_faster() -> None:
    platform = cloud()
    platform.submit(rollout("half", memory_mb=500))
    platform.submit(rollout("more", memory_mb=5000))
    by_name = {outcome.call_id: outcome.usage.run_s for outcome in gather(platform)}
    assert by_name == {"half": 2.0, "more": 1.0}


def test_a_function_with_too_little_memory_fails_is_paid_and_says_what_it_needs() -> None:
    measured = Usage(steps=10, inferences=10, most_memory_mb=900)
    platform = cloud(InstantExecutor(lambda call: Result(b"", None, measured)))
    platform.submit(rollout("little", memory_mb=500))
    platform.submit(rollout("enough", memory_mb=1000))
    by_name = {outcome.call_id: outcome for outcome in gather(platform)}
    little, enough = by_name["little"], by_name["enough"]
    assert (little.status, little.reason_code) == ("failed", "function_failed")
    assert little.reason.startswith("it needs 900 MB and has 500 MB")
    assert little.usage.billed_s == 4.0  # 2 s to start, and all of its run at half of a core's speed
    assert enough.status == "done"


def test_a_warm_instance_is_used_again_until_it_expires() -> None:
    platform = cloud()
    starts = []
    for name in ("cold", "warm"):
        platform.submit(rollout(name))
        starts += [outcome.usage.startup_s for outcome in gather(platform)]
    # Waiting for a call that takes long moves the clock past the 100 s for which instances are kept.
    platform.submit(rollout("long", steps=2000, memory_mb=5000, deadline_s=900))
    starts += [outcome.usage.startup_s for outcome in gather(platform)]
    platform.submit(rollout("expired"))
    starts += [outcome.usage.startup_s for outcome in gather(platform)]
    assert starts == [2.0, 0.5, 2.0, 2.0]


def test_the_instance_freed_last_is_taken_first() -> None:
    platform = cloud(keep_warm_s=10.0)
    platform.submit(rollout("short", steps=10))
    platform.submit(rollout("longer", steps=60))
    assert len(gather(platform)) == 2
    # Now 9.25 s: one instance is free since 3 s, one since 8 s. The next call takes the latter, until 10.75 s.
    platform.submit(rollout("a"))
    gather(platform)
    # Now 12 s: the instance of `short` went 9 s unused and is still there, the other was freed at 10.75 s.
    platform.submit(rollout("b"))
    platform.submit(rollout("c"))
    starts = {outcome.call_id: outcome.usage.startup_s for outcome in gather(platform)}
    assert starts == {"b": 0.5, "c": 0.5}


def test_the_account_runs_only_so_many_at_once() -> None:
    platform = cloud(concurrent=2.0)
    for name in "abcd":
        platform.submit(rollout(name))
    ended = {outcome.call_id: outcome for outcome in gather(platform)}
    # Two run until 3 s; the next two then start warm on their instances: 3 + 0.5 + 1 + 1.25.
    assert [ended[name].finished_s for name in "abcd"] == [4.25, 4.25, 5.75, 5.75]
    assert ended["c"].usage.startup_s == 3.5
    assert ended["c"].usage.billed_s == 1.5


def test_time_of_a_round_is_its_slowest_call_and_the_update() -> None:
    platform = cloud()
    platform.submit(update("warm up the server", 1))
    gather(platform)
    began_s = platform.now_s()
    assert began_s == 60.1
    steps = {"a": 10, "b": 30, "c": 20}
    for name, count in steps.items():
        platform.submit(rollout(name, steps=count))
    usages = [outcome.usage for outcome in gather(platform)]
    slowest_s = max(sum(parts(usage)) for usage in usages)
    assert slowest_s == 2.0 + 3.0 + 1.25
    assert platform.now_s() - began_s == pytest.approx(slowest_s, abs=1e-9)
    platform.submit(update("u", 20))
    (learned,) = gather(platform)
    assert learned.usage.run_s == 2.0
    assert platform.now_s() - began_s == pytest.approx(slowest_s + 2.0, abs=1e-9)


def test_the_learner_is_one_server_that_is_ordered_with_the_first_call() -> None:
    platform = cloud()
    platform.submit(update("a", 10))
    platform.submit(update("b", 20))
    first, second = gather(platform)
    assert parts(first.usage) == (60.0, 1.0, 0.0)
    assert second.usage.startup_s == 61.0
    assert second.finished_s == 63.0
    # It stands beside the coordinator: what it learns from has arrived already.
    platform.submit(update("c", 10, inputs=(bytes(MB),)))
    (third,) = gather(platform)
    assert parts(third.usage) == (0.0, 1.0, 0.0)


def test_the_clock_moves_by_the_timeout_when_nothing_ends_in_it() -> None:
    platform = cloud()
    platform.submit(rollout("c"))
    assert platform.next(1.0) is None
    assert platform.now_s() == 1.0
    assert platform.next(3.25) is not None
    assert platform.now_s() == 4.25
    assert platform.next(100.0) is None
    assert platform.now_s() == 4.25


def test_outcomes_come_in_virtual_order_and_as_submitted_among_equals() -> None:
    platform = cloud()
    for name, steps in (("z", 10), ("long", 30), ("a", 10), ("m", 10)):
        platform.submit(rollout(name, steps=steps))
    assert [outcome.call_id for outcome in gather(platform)] == ["z", "a", "m", "long"]


def test_a_call_over_its_deadline_fails_and_is_billed_the_deadline() -> None:
    platform = cloud()
    platform.submit(rollout("c", steps=100, deadline_s=5.0))
    (outcome,) = gather(platform)
    assert (outcome.status, outcome.reason_code) == ("failed", "deadline")
    assert parts(outcome.usage) == (2.0, 5.0, 0.25)
    assert outcome.usage.billed_s == 7.0
    platform.submit(rollout("after"))
    assert gather(platform)[0].usage.cold_start


def test_failing_functions_are_billed_for_a_part_of_their_run() -> None:
    platform = cloud(failure_share=1.0)
    platform.submit(rollout("c", steps=100))
    (outcome,) = gather(platform)
    assert (outcome.status, outcome.reason_code) == ("failed", "function_failed")
    assert 0.0 < outcome.usage.run_s < 10.0
    assert outcome.payload == b""
    assert outcome.usage.billed_s == pytest.approx(2.0 + outcome.usage.run_s, abs=0.001)
    assert outcome.usage.billed_s >= 2.0 + outcome.usage.run_s


def test_late_outcomes_are_late() -> None:
    platform = cloud(late_share=1.0)
    platform.submit(rollout("c"))
    (outcome,) = gather(platform)
    assert outcome.finished_s == 14.25
    assert outcome.usage.billed_s == 3.0


def test_a_body_that_really_fails_costs_its_start() -> None:
    platform = cloud(executor=InstantExecutor(lambda call: Failure("error", "ValueError: no")))
    platform.submit(rollout("c"))
    (outcome,) = gather(platform)
    assert (outcome.status, outcome.reason, outcome.usage.billed_s) == ("failed", "ValueError: no", 2.0)


def test_cancel_bills_what_ran_until_then() -> None:
    platform = cloud()
    platform.submit(rollout("running", steps=100))
    platform.submit(rollout("ended", steps=10))
    assert platform.next(2.5) is None
    platform.submit(rollout("new"))
    platform.cancel("running")
    platform.cancel("new")
    outcomes = {outcome.call_id: outcome for outcome in gather(platform)}
    assert (outcomes["running"].status, outcomes["running"].finished_s) == ("cancelled", 2.5)
    assert parts(outcomes["running"].usage) == (2.0, 0.5, 0.0)
    assert outcomes["running"].usage.billed_s == 2.5
    assert (outcomes["new"].status, outcomes["new"].usage.billed_s) == ("cancelled", 0.0)
    assert outcomes["ended"].status == "done"


def test_close_stops_the_meter() -> None:
    executor = InstantExecutor(work)
    platform = cloud(executor=executor)
    platform.submit(update("u"))
    platform.submit(rollout("r", steps=50, deadline_s=900))
    assert platform.next(3.0) is None
    platform.close()
    assert executor.closed
    assert [(billed.call_id, billed.billed_ms) for billed in platform.meter.calls] == [("r", 3000)]
    assert platform.meter.server_from_ns == 0
    assert platform.meter.server_to_ns == 3_000_000_000
    assert platform.next(10.0) is None


CHANCE = {
    "cold_sigma": 0.3,
    "straggler_sigma": 0.3,
    "failure_share": 0.2,
    "late_share": 0.2,
    "concurrent": 3.0,
}


def schedule(platform: SimulatedPlatform) -> list[Outcome]:
    """Three rounds of some calls, one of them cancelled in its middle."""
    outcomes = []
    for round_no in range(3):
        for slot in range(6):
            platform.submit(rollout(f"r{round_no}-s{slot}", steps=10 + 5 * slot))
        first = platform.next(3.0)
        outcomes += [first] if first is not None else []
        platform.cancel(f"r{round_no}-s5")
        outcomes += gather(platform)
        platform.submit(update(f"u{round_no}"))
        outcomes += gather(platform)
    return outcomes


def test_repeats_are_equal_to_the_last_bit_whichever_answers_first() -> None:
    first = schedule(cloud(seed=5, **CHANCE))
    chooser = random.Random(1)
    shuffled = InstantExecutor(work, pick=chooser.randrange)
    assert schedule(cloud(seed=5, executor=shuffled, **CHANCE)) == first
    assert schedule(cloud(seed=6, **CHANCE)) != first
    assert {outcome.status for outcome in first} == {"done", "failed", "cancelled"}


def test_real_work_gives_the_same_times_with_one_worker_or_two() -> None:
    def run(workers: int) -> list[Outcome]:
        platform = SimulatedPlatform(SimulatedOptions(seed=3, workers=workers))
        ref = platform.publish(0, calls.weights())
        for slot in range(6):
            platform.submit(calls.rollout(f"s{slot}", ref, slot=slot, steps=20))
        outcomes: list[Outcome] = []
        while len(outcomes) < 6:
            outcome = platform.next(1.0)
            outcomes += [outcome] if outcome is not None else []
        platform.close()
        return outcomes

    assert run(1) == run(2)


def test_an_impatient_next_leaves_the_clock_alone() -> None:
    class Slow(InstantExecutor):
        def take(self, timeout_s: float) -> None:
            return None

    platform = clouds.platform(executor=Slow(), patience_s=0.0)
    platform.submit(rollout("c"))
    assert platform.next(5.0) is None
    assert platform.now_s() == 0.0
