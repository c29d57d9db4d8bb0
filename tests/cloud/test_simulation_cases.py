"""Virtual time of what surrounds a call, worked by hand: shared lines, limits, capacity kept warm, pools, sharing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.work import CallRecord
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.place import TimingPlace
from cloud.timing.simulation.core import SimulatedSetting, Simulation
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.virtual_time import NS
from tests.cloud.clouds import profile, stack
from training.engine.messages import Call
from training.engine.reports import Usage

MB = 1_000_000
FOREVER_NS = 10**15


def actor(name: str, *, bytes_in: int = 0, bytes_out: int = 0, steps: int = 10) -> CallRecord:
    """A second of work by default: ten steps of 90 ms with an inference of 10 ms each."""
    return CallRecord(
        id=name,
        name=name,
        kind="rollout",
        where="actor",
        steps=steps,
        inferences=steps,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        memory_mb=1000,
        deadline_s=900.0,
    )


def update(
    name: str, minibatches: int = 10, *, pictures: bool = False, deadline_s: float = 900.0
) -> CallRecord:
    return CallRecord(
        id=name,
        name=name,
        kind="update",
        where="learner",
        minibatches=minibatches,
        pictures=pictures,
        deadline_s=deadline_s,
    )


PLAIN = SimulatedSetting()


def cloud(setting: SimulatedSetting = PLAIN, **changes: object) -> Simulation:
    return Simulation(profile(**changes), stack(**_numbers(changes)), setting)  # type: ignore[arg-type]


def _numbers(changes: dict[str, object]) -> dict[str, float]:
    return {name: value for name, value in changes.items() if isinstance(value, float)}


def ends(simulation: Simulation) -> dict[str, float]:
    """Who ends when, in the order in which they do."""
    found: dict[str, float] = {}
    while (call := simulation.next(FOREVER_NS)) is not None:
        found[call.work.id] = call.finished_ns / NS
    return found


def landed(simulation: Simulation) -> SimulatedCall:
    call = simulation.next(FOREVER_NS)
    assert call is not None
    return call


def test_all_calls_share_the_coordinators_line_in_both_directions() -> None:
    """1 MB each way takes 1 s on an actor's own line, and 0.5 s of the coordinator's, one call after the other."""
    simulation = cloud(coordinator_mbit_per_s=16.0)
    for name in "abc":
        simulation.submit(actor(name, bytes_in=MB, bytes_out=MB))
    # There: own line 1 s each, shared line through at 0.5, 1.0, 1.5. Then 2 s start and 1 s run: 4.0, 4.0, 4.5.
    # Back: a has its own second until 5.0; b waits for a on the shared line until 5.0; c is through at 5.5.
    assert ends(simulation) == {"a": 5.25, "b": 5.25, "c": 5.75}


def test_the_coordinator_takes_outcomes_one_after_the_other() -> None:
    simulation = cloud(coordinator_ms=100.0)
    for name in "abc":
        simulation.submit(actor(name))
    assert ends(simulation) == {"a": 3.35, "b": 3.45, "c": 3.55}


def test_a_decision_by_a_network_takes_the_coordinator_as_long_as_its_multiplications() -> None:
    simulation = cloud(coordinator_ms=100.0, inference_us_per_million_macs=1000.0)
    simulation.submit(replace(update("u"), decision_macs=40 * MB))
    # Boot 60 s, ten minibatches of 100 ms, the coordinator, and 10 ms + 40 million at 1 ms each.
    assert ends(simulation) == {"u": 61.15}


def test_what_is_too_large_for_an_answer_goes_by_storage() -> None:
    simulation = cloud(payload_limit_mb=1.0, detour_s=3.0)
    simulation.submit(actor("fits", bytes_out=MB))
    simulation.submit(actor("too large", bytes_out=MB + 1))
    times = ends(simulation)
    assert times["fits"] == 4.25
    assert times["too large"] == pytest.approx(7.25, abs=1e-5)


def test_cold_starts_wait_for_the_providers_limit_and_warm_ones_do_not() -> None:
    """Two at once, then one every two seconds."""
    simulation = cloud(starts_at_once=2.0, starts_per_s=0.5)
    for name in "abcd":
        simulation.submit(actor(name))
    assert ends(simulation) == {"a": 3.25, "b": 3.25, "c": 5.25, "d": 7.25}
    for name in "efgh":
        simulation.submit(actor(name))
    assert {at - 7.25 for at in ends(simulation).values()} == {0.5 + 1.0 + 0.25}


def test_kept_warm_means_never_cold() -> None:
    simulation = cloud(SimulatedSetting(provisioned=1))
    simulation.submit(actor("a"))
    simulation.submit(actor("b"))
    first, second = landed(simulation), landed(simulation)
    assert (first.work.id, first.provisioned, first.cold, first.billed_ns) == ("a", True, False, 1.5 * NS)
    assert (second.work.id, second.provisioned, second.cold, second.billed_ns) == ("b", False, True, 3 * NS)
    simulation.next(500 * NS)
    simulation.submit(actor("long after"))
    assert landed(simulation).provisioned


def test_a_learner_function_starts_cold_stays_warm_and_pays_its_way() -> None:
    simulation = cloud(SimulatedSetting(learner="function"))
    simulation.submit(update("a"))
    first = landed(simulation)
    assert (first.cold, first.start_ns, first.run_ns, first.transfer_ns) == (True, 1.5 * NS, NS, 0.25 * NS)
    assert first.billed_ns == 2.5 * NS
    simulation.submit(update("b"))
    second = landed(simulation)
    assert (second.cold, second.start_ns, second.finished_ns) == (False, 0.5 * NS, 4.5 * NS)
    assert simulation.learner.ordered_ns is None


def test_two_updates_of_pictures_on_one_gpu_take_twice_as_long_while_they_are_two() -> None:
    """a needs 2 s and b 1 s. Together from 60 s on at half speed: b is done at 62 s with 1 s of a left: 63 s."""
    simulation = cloud(SimulatedSetting(learner_lanes=2))
    simulation.submit(update("a", 20, pictures=True))
    simulation.submit(update("b", 10, pictures=True))
    assert ends(simulation) == {"b": 62.0, "a": 63.0}


def test_three_that_share_exactly_and_one_that_joins_later() -> None:
    simulation = cloud(SimulatedSetting(learner_lanes=4), server_start_s=0.0)
    for name in "abc":
        simulation.submit(update(name, 10, pictures=True))
    assert simulation.next(NS) is None
    # Each has a third of its second behind it. A fourth joins: two thirds at a quarter of the speed end at 1 + 8/3 s,
    # rounded up to the nanosecond; it has then done as much and does its last third alone.
    simulation.submit(update("d", 10, pictures=True))
    times = ends(simulation)
    assert times["a"] == times["b"] == times["c"] == 3.666666667
    assert times["d"] == pytest.approx(4.0, abs=2e-9)


def test_small_networks_do_not_feel_each_other_where_the_profile_says_so() -> None:
    simulation = cloud(SimulatedSetting(learner_lanes=2), sharing_mlp=0.0)
    simulation.submit(update("a", 20))
    simulation.submit(update("b", 10))
    assert ends(simulation) == {"b": 61.0, "a": 62.0}


def test_an_update_that_shares_too_long_is_stopped_at_its_deadline() -> None:
    simulation = cloud(SimulatedSetting(learner_lanes=2), server_start_s=0.0)
    simulation.submit(update("a", 20, pictures=True, deadline_s=3.0))
    simulation.submit(update("b", 20, pictures=True))
    first, second = landed(simulation), landed(simulation)
    assert (first.work.id, first.fault, first.finished_ns) == ("a", "deadline", 3 * NS)
    # b did half of its 2 s beside a, half of the rest is left and goes on alone.
    assert (second.work.id, second.fault, second.finished_ns) == ("b", "", 3.5 * NS)


def test_updates_are_shared_out_over_gpus_and_slow_only_those_on_their_own() -> None:
    """Of three on two GPUs the first and the third share one: c is done at 62 s, when a has 1 s left; b is alone."""
    simulation = cloud(SimulatedSetting(learner_gpus=2, learner_lanes=3))
    simulation.submit(update("a", 20, pictures=True))
    simulation.submit(update("b", 20, pictures=True))
    simulation.submit(update("c", 10, pictures=True))
    assert ends(simulation) == {"b": 62.0, "c": 62.0, "a": 63.0}


def test_a_gpu_that_is_free_again_is_used_before_one_is_shared() -> None:
    simulation = cloud(SimulatedSetting(learner_gpus=2, learner_lanes=2), server_start_s=0.0)
    simulation.submit(update("a", 10, pictures=True))
    simulation.submit(update("b", 20, pictures=True))
    simulation.submit(update("c", 10, pictures=True))
    assert ends(simulation) == {"a": 1.0, "b": 2.0, "c": 2.0}


def test_the_options_say_how_many_learn_at_once_on_how_many_gpus() -> None:
    """A p3.8xlarge has four GPUs; each machine is rented whole."""
    options = SimulatedOptions(
        profile="stellaris-cluster", learner_sku="p3.8xlarge", learner_machines=2, learner_lanes=16
    )
    setting = options.setting()
    assert (setting.learner_gpus, setting.learner_lanes) == (8, 16)
    place = TimingPlace.of(options, PriceBook.load())
    assert place.setting(options.seed) == setting
    one = options.model_copy(update={"learner_machines": 1}).tariff(PriceBook.load(), 1024)
    two = options.tariff(PriceBook.load(), 1024)
    rents = [
        sum(line.picodollars for rent in tariff.rents for line in rent.lines(3600 * NS))
        for tariff in (one, two)
        if [rent.resource for rent in tariff.rents if rent.resource == "learner"]
    ]
    learner_usd = float(PriceBook.load().row("p3.8xlarge", "us-east-1").price)
    assert rents[1] - rents[0] == pytest.approx(learner_usd * 1e12, rel=0.01)
    assert "learner_lanes" not in SimulatedOptions().model_dump(mode="json")
    assert SimulatedOptions.model_validate(options.model_dump(mode="json")) == options


def test_learner_functions_slow_each_other_only_where_they_share_a_gpu_and_then_pay_their_share() -> None:
    """Four learn for 2 s alone. Each on its own GPU they still take 2 s, two on one GPU 4 s at half the price."""
    found = {}
    for sharers in (1, 2):
        options = SimulatedOptions(
            learner="function", learner_sku="p3.2xlarge", learner_lanes=4, learners_per_gpu=sharers
        )
        simulation = cloud(options.setting())
        for name in "abcd":
            simulation.submit(update(name, 20, pictures=True))
        spans = [(call.run_ns, call.billed_ns) for call in (landed(simulation) for _ in range(4))]
        (run_ns,) = {run for run, _ in spans}
        learner = options.tariff(PriceBook.load(), 1024).learner
        assert learner is not None
        call = Call.model_construct(where="learner", memory_mb=1024, deadline_s=60.0)
        a_second = sum(line.picodollars for line in learner.lines(call, Usage(billed_s=3600.0)) or ())
        found[sharers] = run_ns / NS, a_second
    assert [found[sharers][0] for sharers in (1, 2)] == [2.0, 4.0]
    assert found[1][1] == 2 * found[2][1] == 3_060_000_000_000
    assert SimulatedOptions(learner="function").setting().learner_gpus == 1


MACHINES = {"units": 1, "actors_per_unit": 2, "machine_sku": "c5.4xlarge"}


def test_a_cluster_boots_once_and_its_calls_wait_for_a_core() -> None:
    simulation = cloud(pool=MACHINES)
    for name in "abc":
        simulation.submit(actor(name))
    # Ready at 20 s; hand-over 0.5, run 1, way 0.25; the third takes over from the first that is free, at 21.5 s.
    assert ends(simulation) == {"a": 21.75, "b": 21.75, "c": 23.25}
    assert simulation.pool is not None
    assert [(one.ordered_ns, one.gone_ns) for one in simulation.pool.actors] == [(0, None), (0, None)]
    simulation.submit(actor("d"))
    assert landed(simulation).billed_ns == 1.5 * NS


def test_all_actors_of_a_machine_start_together() -> None:
    """A machine boots once, however many cores it has; another machine boots at a moment of its own."""
    simulation = cloud(pool=MACHINES | {"units": 3}, start_sigma=0.5)
    simulation.submit(actor("a"))
    assert simulation.pool is not None
    ready = [one.ready_ns for one in simulation.pool.actors]
    assert ready[::2] == ready[1::2]
    assert len(set(ready)) == 3


CONTAINERS = {"actors_per_unit": 2, "core_sku": "aci.vcpu.linux", "memory_sku": "aci.memory.linux"}


def test_a_pool_has_as_many_actors_as_it_was_told() -> None:
    simulation = cloud(pool=CONTAINERS)
    simulation.prepare(1)
    simulation.submit(actor("a"))
    simulation.submit(actor("b"))
    assert simulation.next(10 * NS) is None
    simulation.prepare(3)
    simulation.submit(actor("c"))
    # The first is ready at 20 s and through with a, b and c before the other two are, at 30 s.
    assert ends(simulation) == {"a": 21.75, "b": 23.25, "c": 24.75}
    pool = simulation.pool
    assert pool is not None
    assert [one.ordered_ns / NS for one in pool.actors] == [0.0, 10.0, 10.0]
    now_ns = simulation.now_ns
    simulation.prepare(1)
    assert [one.gone_ns for one in pool.actors] == [None, now_ns, now_ns]


def test_creates_are_limited_by_units() -> None:
    """One group at once and one more every ten seconds; a group holds two actors."""
    simulation = cloud(pool=CONTAINERS, creates_at_once=1.0, creates_per_s=0.1)
    simulation.prepare(4)
    for name in "abcd":
        simulation.submit(actor(name, steps=400))
    assert ends(simulation) == {"a": 60.75, "b": 60.75, "c": 70.75, "d": 70.75}


def test_a_surplus_actor_that_still_works_is_kept() -> None:
    simulation = cloud(pool=CONTAINERS)
    simulation.prepare(2)
    simulation.submit(actor("a", steps=1000))
    simulation.submit(actor("b", steps=1000))
    simulation.next(50 * NS)
    simulation.prepare(0)
    assert set(ends(simulation)) == {"a", "b"}


def test_a_cancelled_call_frees_its_place_for_the_next_in_line() -> None:
    simulation = cloud(concurrent=1.0)
    simulation.submit(actor("a", steps=100))
    simulation.submit(actor("b"))
    assert simulation.next(5 * NS) is None
    simulation.cancel("a")
    gone = landed(simulation)
    assert (gone.fault, gone.start_ns, gone.run_ns, gone.billed_ns) == ("cancelled", 2 * NS, 3 * NS, 5 * NS)
    # b begins at 5 s on a new instance.
    assert ends(simulation) == {"b": 8.25}


def test_a_cancelled_start_is_billed_until_then() -> None:
    simulation = cloud()
    simulation.submit(actor("a", bytes_in=MB))
    assert simulation.next(NS + NS // 2) is None
    simulation.cancel("a")
    gone = landed(simulation)
    assert (gone.transfer_ns, gone.start_ns, gone.run_ns, gone.billed_ns) == (NS, NS // 2, 0, NS // 2)


def test_an_asynchronous_schedule_by_hand() -> None:
    """Two actors of 1 s and 2 s go on by themselves; the learner takes what has come. Starts: 2 s cold, then 0.5 s."""
    simulation = cloud(server_start_s=0.0)
    simulation.submit(actor("fast-1", steps=10))
    simulation.submit(actor("slow-1", steps=20))
    reported = []
    for _ in range(6):
        call = landed(simulation)
        reported.append((call.work.id, call.finished_ns / NS))
        name, _, number = call.work.id.partition("-")
        if name == "update":
            continue
        simulation.submit(actor(f"{name}-{int(number) + 1}", steps=10 if name == "fast" else 20))
        simulation.submit(update(f"update-{call.work.id}", 5))
    assert reported == [
        ("fast-1", 3.25),
        ("update-fast-1", 3.75),
        ("slow-1", 4.25),
        ("update-slow-1", 4.75),
        ("fast-2", 5.0),
        ("update-fast-2", 5.5),
    ]
