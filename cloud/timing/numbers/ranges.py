"""The uncertainty of a time, a cost or a verdict: every number drawn from its range, or moved through it alone."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.money.billing.wave_replay import replay_waves
from cloud.money.billing.waves import WaveRun
from cloud.timing.numbers.quantity import Quantity, quantities, with_values
from cloud.timing.place import TimingPlace

_STEPS = 5
_AT_ITS_VALUE = 0.5
_CALLS_AT_ONCE = 2_000_000
"""So many calls of actors, those of all lanes together, are replayed at once: an array has 16 MB then, a replay about
120 MB. All lanes at once would take 1.6 GB an array for 200 draws of a run of a million calls.
"""

Key = tuple[str, ...]
"""A number's path: the title of its profile or stack, then the names of its fields."""
Move = tuple[Key, float]
"""A number, and the quantile of its range to which it alone is moved."""
_NO_MOVE: Move = ((), _AT_ITS_VALUE)


@dataclass(frozen=True)
class TimeAndCost:
    """The time and cost of a run, all its segments together."""

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


class Replays:
    """A run, ready to be timed and priced at many places: by waves where it goes by waves, else event by event."""

    def __init__(self, schedules: Sequence[ReplaySchedule]) -> None:
        self._runs = [(schedule, WaveRun.of(schedule)) for schedule in schedules]

    def times_and_costs(self, places: Sequence[TimingPlace], seeds: Sequence[int]) -> list[TimeAndCost]:
        """Return the run's time and cost at each place, with its seed. All places are one cloud with other numbers."""
        totals = [TimeAndCost(0.0, 0)] * len(places)
        for schedule, waves in self._runs:
            segment = _replay_segment(schedule, waves, places, seeds)
            totals = [
                TimeAndCost(before.time_s + after.time_s, before.picodollars + after.picodollars)
                for before, after in zip(totals, segment, strict=True)
            ]
        return totals


def _replay_segment(
    schedule: ReplaySchedule, waves: WaveRun | None, places: Sequence[TimingPlace], seeds: Sequence[int]
) -> list[TimeAndCost]:
    """Return one run segment's time and cost in each lane."""
    if waves is None:
        return [_replay_events(schedule, place, seed) for place, seed in zip(places, seeds, strict=True)]
    at_once = max(1, _CALLS_AT_ONCE // waves.actors)
    batches = [slice(first, first + at_once) for first in range(0, len(places), at_once)]
    return [one for batch in batches for one in _replay_lanes(schedule, waves, places[batch], seeds[batch])]


def _replay_lanes(
    schedule: ReplaySchedule, waves: WaveRun, places: Sequence[TimingPlace], seeds: Sequence[int]
) -> list[TimeAndCost]:
    """Return a run segment's time and cost in each lane: those by waves together, the others event by event."""
    replayed = replay_waves(waves, places, seeds)
    return [
        _replay_events(schedule, place, seed)
        if replayed is None or replayed.left_out[lane]
        else TimeAndCost(*replayed.time_and_cost(lane))
        for lane, (place, seed) in enumerate(zip(places, seeds, strict=True))
    ]


def _replay_events(schedule: ReplaySchedule, place: TimingPlace, seed: int) -> TimeAndCost:
    run = retime(schedule, place, seed=seed)
    return TimeAndCost(run.time_s, run.bill.picodollars)


def time_and_cost(schedules: Sequence[ReplaySchedule], place: TimingPlace, seed: int) -> TimeAndCost:
    return Replays(schedules).times_and_costs([place], [seed])[0]


def draw_outcomes(
    schedules: Sequence[ReplaySchedule], places: Sequence[TimingPlace], draws: int, seed: int
) -> list[list[TimeAndCost]]:
    """Return each draw's time and cost of the run at each place. A number of several places is drawn once for all."""
    replays, seeds = Replays(schedules), range(seed, seed + draws)
    by_place = [replays.times_and_costs(drawn_places(place, draws, seed), seeds) for place in places]
    return [list(draw) for draw in zip(*by_place, strict=True)]


def drawn_places(place: TimingPlace, draws: int, seed: int) -> list[TimingPlace]:
    """Return the place so many times, each of its numbers drawn from its range."""

    def quantile_in(draw: int) -> Callable[[Key], float]:
        return lambda key: _uniform(f"{seed}:{draw}:{'/'.join(key)}")

    return [_moved(place, quantile_in(draw)) for draw in range(draws)]


def flips(schedules: Sequence[ReplaySchedule], one: TimingPlace, other: TimingPlace, seed: int) -> list[Flip]:
    """Return each number that makes the other place cheaper when it alone is moved to an end of its range."""
    replays = Replays(schedules)

    def cheaper(moves: Sequence[Move]) -> list[bool]:
        first, second = (outcomes_moved(replays, place, moves, seed) for place in (one, other))
        return [mine.picodollars < yours.picodollars for mine, yours in zip(first, second, strict=True)]

    return reversals(uncertain_numbers(schedules, (one, other)), cheaper)


def outcomes_moved(
    replays: Replays, place: TimingPlace, moves: Sequence[Move], seed: int
) -> list[TimeAndCost]:
    """Return the run's time and cost at the place after each move; a number of another place changes nothing."""
    moved = [number for number, (key, _) in enumerate(moves) if touches(place, key)]
    places = [place, *(move_through(place, *moves[number]) for number in moved)]
    usual, *others = replays.times_and_costs(places, [seed] * len(places))
    outcomes = [usual] * len(moves)
    for number, outcome in zip(moved, others, strict=True):
        outcomes[number] = outcome
    return outcomes


def reversals(
    numbers: Mapping[Key, Quantity], verdicts: Callable[[Sequence[Move]], Sequence[bool]]
) -> list[Flip]:
    """Return each number that reverses a verdict within its range, and about where. `verdicts` are those after each of
    several moves.
    """
    ends = [
        (key, end) for key, found in numbers.items() for end in (0.0, 1.0) if found.at(end) != found.value
    ]
    usual, *at_ends = verdicts([_NO_MOVE, *ends])
    turned = [move for move, verdict in zip(ends, at_ends, strict=True) if verdict != usual]
    between = [(_AT_ITS_VALUE, end) for _, end in turned]
    for _ in range(_STEPS if turned else 0):
        middles = [(near + far) / 2 for near, far in between]
        at_middles = verdicts([(key, middle) for (key, _), middle in zip(turned, middles, strict=True)])
        between = [
            (middle, far) if verdict == usual else (near, middle)
            for (near, far), middle, verdict in zip(between, middles, at_middles, strict=True)
        ]
    return [
        Flip(
            key[0],
            ".".join(key[1:]),
            numbers[key].value,
            numbers[key].at(far),
            numbers[key].at(end),
            numbers[key],
        )
        for (key, end), (_, far) in zip(turned, between, strict=True)
    ]


def touches(place: TimingPlace, key: Key) -> bool:
    """Whether that number belongs to the place."""
    return key[:1] in ((place.profile.title,), (place.stack.title,))


def move_through(place: TimingPlace, key: Key, quantile: float) -> TimingPlace:
    """Return the place with one number moved through its range and all others at their values."""
    return _moved(place, lambda other: quantile if other == key else _AT_ITS_VALUE)


def uncertain_numbers(
    schedules: Sequence[ReplaySchedule], places: Sequence[TimingPlace]
) -> dict[Key, Quantity]:
    """Return all numbers with a range; of environments only those of the run."""
    stepped = {task.stepped for schedule in schedules for task in schedule.tasks}
    uncertain: dict[Key, Quantity] = {}
    for place in places:
        for model in (place.profile, place.stack):
            for path, quantity in quantities(model).items():
                elsewhere = path[0] == "environment_step_us" and path[-1] not in stepped
                if quantity.low < quantity.high and not elsewhere:
                    uncertain[model.title, *path] = quantity
    return uncertain


def _moved(place: TimingPlace, quantile: Callable[[Key], float]) -> TimingPlace:
    profile, stack = place.profile, place.stack
    return replace(
        place,
        profile=with_values(profile, lambda path, number: number.at(quantile((profile.title, *path)))),
        stack=with_values(stack, lambda path, number: number.at(quantile((stack.title, *path)))),
    )


def _uniform(name: str) -> float:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "little") / 2**56
