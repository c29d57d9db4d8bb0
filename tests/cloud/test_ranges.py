"""Numbers drawn from their ranges, and the one that turns a verdict by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers.profile import Functions
from cloud.timing.numbers.quantity import Quantity
from cloud.timing.numbers.ranges import Spread, draw_outcomes, flips, time_and_cost
from cloud.timing.place import TimingPlace
from tests.cloud.recorded import Recorded, record
from tests.training.specs import tiny


@pytest.fixture(scope="module")
def run() -> Recorded:
    return record(tiny(rollout={"steps_per_call": 4}, stop={"rounds": 1}, evaluation={"every_rounds": 9}))


def with_cold_start(place: TimingPlace, title: str, value: float, low: float, high: float) -> TimingPlace:
    """The same cloud under another title, whose cold start is the only number with a range."""
    actors = place.profile.actors
    assert isinstance(actors, Functions)
    cold = Quantity(value=value, low=low, high=high, source="made up", kind="assumed")
    profile = place.profile.model_copy(
        update={"title": title, "actors": actors.model_copy(update={"cold_s": cold})}
    )
    return replace(place, profile=profile)


def fixed(place: TimingPlace) -> TimingPlace:
    """All ranges closed, so that only those opened again matter."""

    def closed(model: Any) -> Any:
        changes: dict[str, Any] = {}
        for name in type(model).model_fields:
            part = getattr(model, name)
            if isinstance(part, Quantity):
                changes[name] = part.model_copy(update={"low": part.value, "high": part.value})
            elif isinstance(part, BaseModel):
                changes[name] = closed(part)
        return model.model_copy(update=changes)

    return replace(place, profile=closed(place.profile), stack=closed(place.stack))


def test_the_number_that_turns_a_verdict_is_found_and_where(run: Recorded) -> None:
    """Cold starts are billed: 2 s are cheaper than 3 s until they take as long, or until 3 s become less than 2."""
    schedules, base = [ReplaySchedule.of(run.segment)], fixed(run.place)
    one = with_cold_start(base, "one", 2.0, 1.0, 4.0)
    other = with_cold_start(base, "other", 3.0, 2.5, 3.5)
    (found,) = flips(schedules, one, other, seed=0)
    assert (found.of, found.name, found.value, found.end) == ("one", "actors.cold_s", 2.0, 4.0)
    assert 3.0 <= found.at <= 3.1
    wider = with_cold_start(base, "other", 3.0, 1.0, 3.5)
    names = {(flip.of, round(flip.at, 1)) for flip in flips(schedules, one, wider, seed=0)}
    assert names == {("one", 3.0), ("other", 2.0)} or names == {("one", 3.1), ("other", 2.0)}
    narrow = with_cold_start(base, "one", 2.0, 1.9, 2.1)
    assert list(flips(schedules, narrow, other, seed=0)) == []


def test_draws_repeat_and_a_shared_number_is_drawn_once(run: Recorded) -> None:
    schedules, base = [ReplaySchedule.of(run.segment)], fixed(run.place)
    one = with_cold_start(base, "one", 2.0, 1.0, 4.0)
    found = list(draw_outcomes(schedules, [one, one], 8, seed=3))
    assert found == list(draw_outcomes(schedules, [one, one], 8, seed=3))
    assert found != list(draw_outcomes(schedules, [one, one], 8, seed=4))
    assert all(first == second for first, second in found)
    assert len({first.picodollars for first, _ in found}) == 8
    lowest, highest = (
        time_and_cost(schedules, with_cold_start(base, "end", cold_s, cold_s, cold_s), 0).picodollars
        for cold_s in (1.0, 4.0)
    )
    assert all(lowest <= first.picodollars <= highest for first, _ in found)


def test_a_closed_range_is_the_run_itself(run: Recorded) -> None:
    schedule, base = ReplaySchedule.of(run.segment), fixed(run.place)
    ((found,),) = draw_outcomes([schedule], [base], 1, seed=0)
    assert found.picodollars == retime(schedule, base, seed=0).bill.picodollars == run.spent_picodollars


def test_spreads() -> None:
    assert Spread.of([float(number) for number in range(1, 101)]) == Spread(10.0, 50.0, 90.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)


def test_elsewhere_the_usual_is_bought(run: Recorded) -> None:
    bought = SimulatedOptions(learner_sku="c5.4xlarge", provisioned=3, seed=4)
    assert TimingPlace.named("lambda", "starling-stack", bought, run.place.book).options == bought
    elsewhere = TimingPlace.named("one-machine", "starling-stack", bought, run.place.book)
    assert (elsewhere.options.provisioned, elsewhere.options.learner_sku, elsewhere.options.seed) == (
        0,
        None,
        4,
    )
    assert elsewhere.machine == elsewhere.profile.default_learner_sku
