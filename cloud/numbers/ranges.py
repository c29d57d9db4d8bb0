"""The uncertainty of a time, a cost or a verdict: every number drawn from its range, or moved through it alone."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cloud.billing.replay_schedule import ReplaySchedule
from cloud.billing.retiming import retime
from cloud.numbers.quantity import Quantity, quantities, with_values
from cloud.place import Place

_STEPS = 5
_AT_ITS_VALUE = 0.5

Key = tuple[str, ...]
"""A number's path: the title of its profile or stack, then the names of its fields."""


@dataclass(frozen=True)
class TimeAndCost:
    """The time and cost of a run, all its sittings together."""

    time_s: float
    picodollars: int


@dataclass(frozen=True)
class Spread:
    """One draw in ten is below `p10`, half are below `p50`, nine in ten are below `p90`."""

    p10: float
    p50: float
    p90: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        ordered = sorted(values)
        return Spread(*(ordered[max(0, math.ceil(share * len(ordered)) - 1)] for share in (0.1, 0.5, 0.9)))


@dataclass(frozen=True)
class Flip:
    """A number that reverses the verdict by itself: at `at`, between `value` and the `end` of its range."""

    of: str
    name: str
    value: float
    at: float
    end: float
    quantity: Quantity


def time_and_cost(schedules: Sequence[ReplaySchedule], place: Place, seed: int) -> TimeAndCost:
    runs = [retime(script, place, seed=seed) for script in schedules]
    return TimeAndCost(sum(run.time_s for run in runs), sum(run.bill.picodollars for run in runs))


def draw_outcomes(
    schedules: Sequence[ReplaySchedule], places: Sequence[Place], draws: int, seed: int
) -> Iterator[list[TimeAndCost]]:
    """Yield each draw's time and cost of the run at each place. A number of several places is drawn once for all."""
    for draw in range(draws):

        def quantile(key: Key, draw: int = draw) -> float:
            return _uniform(f"{seed}:{draw}:{'/'.join(key)}")

        yield [time_and_cost(schedules, _moved(place, quantile), seed + draw) for place in places]


def flips(schedules: Sequence[ReplaySchedule], one: Place, other: Place, seed: int) -> Iterator[Flip]:
    """Yield each number that makes the other place cheaper when it alone is moved to an end of its range."""

    at_values = [time_and_cost(schedules, place, seed) for place in (one, other)]
    usual = at_values[0].picodollars < at_values[1].picodollars

    def cheaper(key: Key, quantile: float) -> bool:
        first, second = (
            time_and_cost(schedules, move_through(place, key, quantile), seed)
            if touches(place, key)
            else found
            for place, found in zip((one, other), at_values, strict=True)
        )
        return first.picodollars < second.picodollars

    yield from reversals(uncertain_numbers(schedules, (one, other)), cheaper, usual=usual)


def reversals(
    numbers: Mapping[Key, Quantity], verdict: Callable[[Key, float], bool], *, usual: bool
) -> Iterator[Flip]:
    """Yield each number that reverses a verdict within its range, and about where."""
    for key, quantity in numbers.items():
        for end in (0.0, 1.0):
            if quantity.at(end) == quantity.value or verdict(key, end) == usual:
                continue
            near, far = _AT_ITS_VALUE, end
            for _ in range(_STEPS):
                middle = (near + far) / 2
                near, far = (middle, far) if verdict(key, middle) == usual else (near, middle)
            at = quantity.at(far)
            yield Flip(key[0], ".".join(key[1:]), quantity.value, at, quantity.at(end), quantity)


def touches(place: Place, key: Key) -> bool:
    """Whether that number belongs to the place."""
    return key[0] in (place.profile.title, place.stack.title)


def move_through(place: Place, key: Key, quantile: float) -> Place:
    """Return the place with one number moved through its range and all others at their values."""
    return _moved(place, lambda found: quantile if found == key else _AT_ITS_VALUE)


def uncertain_numbers(schedules: Sequence[ReplaySchedule], places: Sequence[Place]) -> dict[Key, Quantity]:
    """Return all numbers with a range; of environments only those of the run."""
    environments = {task.environment for script in schedules for task in script.tasks}
    found: dict[Key, Quantity] = {}
    for place in places:
        for model in (place.profile, place.stack):
            for path, quantity in quantities(model).items():
                elsewhere = path[0] == "environment_step_us" and path[-1] not in environments
                if quantity.low < quantity.high and not elsewhere:
                    found[model.title, *path] = quantity
    return found


def _moved(place: Place, quantile: Callable[[Key], float]) -> Place:
    profile, stack = place.profile, place.stack
    return replace(
        place,
        profile=with_values(profile, lambda path, number: number.at(quantile((profile.title, *path)))),
        stack=with_values(stack, lambda path, number: number.at(quantile((stack.title, *path)))),
    )


def _uniform(name: str) -> float:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "little") / 2**56
