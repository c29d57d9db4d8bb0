"""Runs that go by waves, many lanes at once: each lane is what the events give, to the last picodollar."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.money.billing.wave_actors import FunctionLanes
from cloud.money.billing.wave_replay import WaveTimes, _Replay, replay_waves
from cloud.money.billing.waves import WaveRun
from cloud.money.billing.work import CallRecord
from cloud.money.billing.work_file import RunSegment
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import ranges
from cloud.timing.numbers.ranges import Replays, TimeAndCost, drawn_places
from cloud.timing.place import TimingPlace
from cloud.timing.virtual_time import NS
from training.calls import KINDS
from training.spec import TrainingSpec

ACTORS = (3, 16, 40, 2, 24, 16)
PLACES: dict[str, SimulatedOptions] = {
    "functions": SimulatedOptions(profile="lambda", stack="paper-stack", learner_sku="p3.2xlarge"),
    "functions that learn": SimulatedOptions(profile="aci-paper", stack="paper-stack", learner="function"),
    "a machine of 16": SimulatedOptions(profile="nitro-cluster", stack="starling-stack"),
    "four machines of 8": SimulatedOptions(profile="minionsrl-cluster", stack="paper-stack"),
    "one machine": SimulatedOptions(profile="one-machine"),
}


def schedule_of(actors: Sequence[int] = ACTORS, **rollout: Any) -> ReplaySchedule:
    """Rounds of so many actors whose work differs a little, each with an update."""
    works: list[CallRecord] = []
    before: tuple[str, ...] = ()
    for round_no, count in enumerate(actors, start=1):
        names = tuple(f"r{round_no}-s{slot}" for slot in range(count))
        for slot, name in enumerate(names):
            amounts = {"steps": 256 + slot % 3, "bytes_out": 20_000 + 8 * slot, **rollout}
            work = CallRecord(f"{name}-a1", name, "rollout", "actor", round_no=round_no, after=before)
            works.append(
                replace(
                    work,
                    stepped="Hopper-v5",
                    inferences=256,
                    macs=4_992,
                    bytes_in=40_000,
                    memory_mb=1024,
                    **amounts,
                )
            )
        update = f"r{round_no}-update"
        work = CallRecord(f"{update}-a1", update, "update", "learner", round_no=round_no, after=names)
        works.append(
            replace(
                work,
                minibatches=20 * count,
                samples=7_680 * count,
                macs=9_856,
                bytes_in=20_000 * count,
                bytes_out=40_000,
            )
        )
        before = (update,)
    spec = TrainingSpec.model_validate({"rollout": {"memory_mb": 1024, "deadline_s": 300.0}})
    numbered = [replace(work, serial=serial) for serial, work in enumerate(works, start=1)]
    return ReplaySchedule.of(RunSegment({"training": spec.model_dump(mode="json")}, [], numbered))


def unlucky(place: TimingPlace, **chance: float) -> TimingPlace:
    """The place with other numbers of chance."""
    numbers = place.profile.chance
    changed = {
        name: getattr(numbers, name).model_copy(update={"value": value}) for name, value in chance.items()
    }
    return replace(
        place, profile=place.profile.model_copy(update={"chance": numbers.model_copy(update=changed)})
    )


def place_named(name: str) -> TimingPlace:
    return TimingPlace.of(PLACES[name], PriceBook.load())


def times_of(schedule: ReplaySchedule, places: Sequence[TimingPlace]) -> WaveTimes:
    run = WaveRun.of(schedule)
    assert run is not None
    found = replay_waves(run, places, range(len(places)))
    assert found is not None
    return found


def assert_as_by_events(schedule: ReplaySchedule, places: Sequence[TimingPlace], *, left_out: int) -> int:
    """Compare all lanes; return how many calls failed in them."""
    found, failed = times_of(schedule, places), 0
    assert found.left_out.sum() <= left_out
    for lane in range(len(places)):
        if found.left_out[lane]:
            continue
        run = retime(schedule, places[lane], seed=lane)
        failed += run.failed
        assert found.time_and_cost(lane) == (run.time_s, run.bill.picodollars)
        updates = [n for n, wave in enumerate(found.run.waves) if KINDS[wave.kind].makes_version]
        assert [found.landed_ns[lane, n] / NS - found.sent_ns[lane, n - 1] / NS for n in updates] == [
            times.total_s for times in run.rounds
        ]
        bodies = sorted(int(ns) for one in found.run_ns for ns in one[lane])
        assert bodies == sorted(round(call.run_s * NS) for call in run.done)
        first = [
            next(call.startup_s for call in run.done if call.kind == kind) for kind in ("rollout", "update")
        ]
        assert [int(ns) / NS for ns in found.startup_ns[lane, :2]] == first
    return failed


@pytest.mark.parametrize("name", PLACES)
def test_every_draw_of_the_clouds_numbers_is_as_by_events(name: str) -> None:
    assert_as_by_events(schedule_of(), drawn_places(place_named(name), 12, seed=3), left_out=2)


@pytest.mark.parametrize("name", PLACES)
def test_calls_that_fail_and_outcomes_that_come_late_are_as_by_events(name: str) -> None:
    place = unlucky(place_named(name), failure_share=0.15, late_share=0.2, straggler_sigma=0.5)
    failed = assert_as_by_events(schedule_of(), [place] * 6, left_out=3)
    assert failed > 30


def kept_for(place: TimingPlace, seconds: float) -> TimingPlace:
    """The place with functions that stay warm so long."""
    actors = place.profile.actors
    assert actors.kind == "functions"
    warm = actors.keep_warm_s.model_copy(update={"value": seconds, "low": seconds})
    profile = place.profile.model_copy(update={"actors": actors.model_copy(update={"keep_warm_s": warm})})
    return replace(place, profile=profile)


def test_instances_that_were_kept_too_long_are_cold_again() -> None:
    """With little warmth the surplus of a large wave is gone when the next large one comes."""
    place = kept_for(place_named("functions"), 4.0)
    cold = retime(schedule_of(), place, seed=0).cold_starts
    assert cold > max(ACTORS)
    assert_as_by_events(schedule_of(), [place] * 3, left_out=0)


def test_instances_that_are_gone_are_forgotten() -> None:
    """Or each wave would look through all that there ever were."""
    schedule, place = schedule_of((16,) * 20), kept_for(place_named("functions"), 0.01)
    assert retime(schedule, place, seed=0).cold_starts == 16 * 20
    run = WaveRun.of(schedule)
    assert run is not None
    replay = _Replay(run, [place], [0], [place.tariff(run.actor_memory_mb)])
    assert not replay.replay().left_out.any()
    assert isinstance(replay._actors, FunctionLanes)
    assert replay._actors._idle_ns.shape == (1, 16)


def test_bodies_that_raised_are_as_by_events() -> None:
    """The first attempt of each call is broken wherever it runs; the next one does the work."""
    schedule = schedule_of((4, 5))
    for task in schedule.tasks:
        if task.where == "actor":
            task._works[1] = replace(task.work(1), broken=True)
            task._works[2] = replace(task.work(1), id=task.work(1).id[:-1] + "2", attempt=2, broken=False)
    for name in PLACES:
        assert assert_as_by_events(schedule, [place_named(name)] * 2, left_out=0) >= 18


def test_lanes_where_something_rare_happens_are_left_to_the_events() -> None:
    place = place_named("functions")
    assert times_of(schedule_of(steps=200_000), [place]).left_out.all()
    assert times_of(schedule_of(bytes_out=10**8), [place]).left_out.all()
    assert times_of(schedule_of(most_memory_mb=2048), [place]).left_out.all()
    slow = schedule_of((4, 4), steps=200_000)
    run = retime(slow, place, seed=7)
    assert Replays([slow]).times_and_costs([place], [7]) == [TimeAndCost(run.time_s, run.bill.picodollars)]


def test_many_draws_take_no_more_memory_than_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes are replayed in batches; what comes out is the same, whatever the batch."""
    monkeypatch.setattr(ranges, "_CALLS_AT_ONCE", 30_000)
    schedule, place = schedule_of((200,) * 5), place_named("one machine")
    replays = Replays([schedule, schedule_of((3, 2))])

    def replayed(lanes: int) -> tuple[list[TimeAndCost], int]:
        seeds = [lane % 3 for lane in range(lanes)]
        tracemalloc.start()
        try:
            found = replays.times_and_costs([place] * lanes, seeds)
            return found, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert not times_of(schedule, [place] * 3).left_out.any()
    few, few_bytes = replayed(30)
    many, many_bytes = replayed(75)
    assert many == few[:3] * 25
    assert many_bytes < 1.2 * few_bytes


def test_runs_that_do_not_go_by_waves_are_none() -> None:
    whole = schedule_of((2, 3))
    assert WaveRun.of(whole) is not None
    early = replace(whole, followers=[[5], *whole.followers[1:]])
    assert WaveRun.of(early) is None
    assert WaveRun.of(replace(whole, tasks=[], first=[])) is None
    growing = TimingPlace.of(
        SimulatedOptions(profile="aci-today", learner_sku="Standard_E16-8s_v5"), PriceBook.load()
    )
    run = WaveRun.of(whole)
    assert run is not None
    assert replay_waves(run, [growing], [0]) is None
    kept = TimingPlace.of(SimulatedOptions(provisioned=2), PriceBook.load())
    assert replay_waves(run, [kept], [0]) is None
