"""How sure a comparison of costs is of the clouds' numbers: all of them drawn from their ranges, or one moved alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from cloud.timing.numbers.ranges import (
    Move,
    TimeAndCost,
    drawn_places,
    outcomes_moved,
    reversals,
    uncertain_numbers,
)
from cloud.timing.place import TimingPlace
from research.claims import Cheaper
from research.pricing_targets import place_of
from research.reports.paired_runs import PENALTY, SeedPair
from research.reports.run_cost import CLOUD_SEED, PricedRun


class CostDraws:
    """Plays pairs of runs on many draws of the clouds' numbers."""

    def __init__(self) -> None:
        # A run's draws are the same in every claim that asks for them.
        self._drawn: dict[tuple[int, int, str, int], list[TimeAndCost]] = {}

    def judge(self, claim: Cheaper, pairs: Sequence[Sequence[SeedPair]], draws: int) -> dict[str, Any]:
        """Return in how many draws ours is cheaper by the point estimate, and what turns that. The ratio is that of
        the geometric means over seeds and environments: a faster stand-in for the ratio of IQMs.
        """
        amounts = [self._amounts(claim, pair, draws) for row in pairs for pair in row]
        ratios = []
        for draw in range(draws):
            logs = [math.log(ours[draw] / theirs[draw]) for ours, theirs in amounts]
            ratios.append(math.exp(sum(logs) / len(logs)))
        return {
            "draws": draws,
            "cheaper_in": sum(ratio < 1.0 for ratio in ratios),
            "ratio_p10": float(np.quantile(ratios, 0.1)),
            "ratio_p90": float(np.quantile(ratios, 0.9)),
            "turned_by": _turned_by(claim, pairs[0]),
        }

    def _amounts(self, claim: Cheaper, pair: SeedPair, draws: int) -> list[list[float]]:
        """Return ours and theirs, by draw."""
        return [
            [_value(claim, one) * (1 if seen else PENALTY) for one in self._draws_of(run, until, at, draws)]
            for run, until, seen, at in pair.sides(claim)
        ]

    def _draws_of(self, run: PricedRun, until: int, pricing_target: str, draws: int) -> list[TimeAndCost]:
        key = id(run), until, pricing_target, draws
        if key not in self._drawn:
            seeds = range(CLOUD_SEED, CLOUD_SEED + draws)
            self._drawn[key] = run.replays(until).times_and_costs(_drawn(pricing_target, draws), seeds)
        return self._drawn[key]


def _turned_by(claim: Cheaper, pairs: Sequence[SeedPair]) -> list[dict[str, Any]]:
    """Return the single numbers that turn the comparison within their ranges, tried on the first seed's runs."""
    places = place_of(claim.at), place_of(claim.against_at)

    def cheaper(moves: Sequence[Move]) -> list[bool]:
        logs = np.zeros(len(moves))
        for pair in pairs:
            for side, (run, until, seen, _) in enumerate(pair.sides(claim)):
                outcomes = outcomes_moved(run.replays(until), places[side], moves, CLOUD_SEED)
                values = [_value(claim, one) * (1 if seen else PENALTY) for one in outcomes]
                logs += [math.log(value) * (1 if side == 0 else -1) for value in values]
        return [bool(one < 0.0) for one in logs]

    schedules = [schedule for pair in pairs for schedule in pair.ours.schedules(pair.rounds[0])]
    return [
        {"of": flip.of, "name": flip.name, "value": flip.value, "at": flip.at, "kind": flip.quantity.kind}
        for flip in reversals(uncertain_numbers(schedules, places), cheaper)
    ]


@cache
def _drawn(pricing_target: str, draws: int) -> list[TimingPlace]:
    return drawn_places(place_of(pricing_target), draws, CLOUD_SEED)


def _value(claim: Cheaper, outcome: TimeAndCost) -> float:
    return outcome.time_s if claim.measure == "seconds" else float(outcome.picodollars)
