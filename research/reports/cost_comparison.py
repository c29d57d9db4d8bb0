"""Which arm is cheaper, which is better for the same money: judged over seeds, environments and clouds.

A claim holds when its whole 95 % interval is on its side, does not hold when all of it is on the other side, and is not
decided otherwise. Fewer than five pairs of seeds decide nothing at 95 %, whatever their interval, and an arm that
reached the target in fewer than half of its runs is never called cheaper. The interval is that of a hierarchical
bootstrap: environments are drawn, then pairs of seeds within each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloud.numbers.ranges import (
    Key,
    TimeAndCost,
    draw_outcomes,
    move_through,
    reversals,
    time_and_cost,
    touches,
    uncertain_numbers,
)
from cloud.place import Place
from research.claims import Better, Cheaper, Meter
from research.pricing_targets import place_of
from research.reports.run_cost import CLOUD_SEED, PricedRun, return_at
from training.statistics import Interval, paired_bootstrap, paired_p_value

ENOUGH_SEEDS = 5
_PENALTY = 2.0
Runs = Mapping[tuple[str, str], Mapping[int, PricedRun]]
"""Complete runs by arm and environment, then by seed."""


@dataclass(frozen=True)
class Judgement:
    """What came of a claim. `interval` is of the ratio of costs, or of the difference of returns over the target."""

    interval: Interval | None
    seeds: int
    against: str
    word: str
    reason: str
    reached: str = ""
    p_value: float | None = None

    def as_dict(self) -> dict[str, Any]:
        found = asdict(self)
        return {**found, "interval": self.interval._asdict() if self.interval else None}


@dataclass(frozen=True)
class _Pair:
    """One seed of one environment on both sides, each with its target's round and whether it got there."""

    ours: PricedRun
    theirs: PricedRun
    rounds: tuple[int, int]
    observed: tuple[bool, bool]


class CostComparisons:
    """Judges claims on the runs there are."""

    def __init__(
        self, runs: Runs, targets: Mapping[str, float], training_targets: Mapping[str, float] | None = None
    ) -> None:
        self._runs = runs
        self._targets: dict[Meter, Mapping[str, float]] = {
            "evaluation": targets,
            "training": training_targets or {},
        }
        # A run's draws are the same in every claim that asks for them.
        self._drawn: dict[tuple[int, int, str, int], list[TimeAndCost]] = {}

    def seeds_of(self, arm: str, environment: str) -> list[int]:
        return sorted(self._runs.get((arm, environment), {}))

    def cheaper(self, claim: Cheaper) -> Judgement:
        against, seeds = self._opponent(claim)
        if not seeds:
            return Judgement(
                None, 0, against, "open", "No seed is complete on both sides in every environment."
            )
        pairs = self._pairs(claim, against, seeds)
        spent = np.array([[self._spent(claim, pair) for pair in row] for row in pairs])
        observed = np.array([[pair.observed for pair in row] for row in pairs])
        ours, theirs = np.moveaxis(np.where(observed, 1.0, _PENALTY) * spent, 2, 0)
        interval = paired_bootstrap(ours, theirs, compare="ratio")
        reached = ", ".join(
            f"{environment}: {observed[:, place, 0].sum()} and {observed[:, place, 1].sum()} of {len(seeds)}"
            for place, environment in enumerate(claim.environments)
        )
        word, why = judge(interval, 1.0, len(seeds), less=True, alike=claim.alike)
        unseen = _why_undecidable(word, observed, spent, claim)
        if unseen:
            word, why = undecided(len(seeds)), unseen
        why = " ".join(filter(None, (why, self._search_cost(claim, seeds))))
        p_value = paired_p_value(ours, theirs, compare="ratio")
        return Judgement(interval, len(seeds), against, word, why, reached, p_value)

    def better(self, claim: Better) -> Judgement:
        against, seeds = self._opponent(claim)
        if not seeds:
            return Judgement(
                None, 0, against, "open", "No seed is complete on both sides in every environment."
            )
        rows = [[self._returns(claim, against, name, seed) for name in claim.environments] for seed in seeds]
        ours, theirs = (np.array([[pair[side] for pair in row] for row in rows]) for side in (0, 1))
        interval = paired_bootstrap(ours, theirs, compare="difference")
        word, why = judge(interval, 0.0, len(seeds), less=False, alike=claim.alike)
        p_value = paired_p_value(ours, theirs, compare="difference")
        return Judgement(interval, len(seeds), against, word, why, p_value=p_value)

    def _opponent(self, claim: Cheaper | Better) -> tuple[str, list[int]]:
        """Whom the claim is against, and the seeds it is judged on.

        Of several the best is chosen on the first half of the seeds and judged on the others, or a lucky one would win.
        """
        every = [claim.arm, *claim.against]
        seeds = sorted(
            set.intersection(*(set(self.seeds_of(arm, name)) for arm in every for name in claim.environments))
        )
        if len(claim.against) == 1:
            return claim.against[0], seeds
        if len(seeds) < 2:
            return "the best of several", []
        chosen_on, judged_on = seeds[: len(seeds) // 2], seeds[len(seeds) // 2 :]
        target = self._targets[claim.meter]

        def mean_cost(arm: str) -> float:
            logs = [
                math.log(_penalised(self._runs[arm, name][seed], target[name], claim))
                for name in claim.environments
                for seed in chosen_on
            ]
            return sum(logs) / len(logs)

        return min(claim.against, key=mean_cost), judged_on

    def _search_cost(self, claim: Cheaper | Better, judged_on: Sequence[int]) -> str:
        """What it cost to find the best of several, which is on neither side."""
        if len(claim.against) == 1:
            return ""
        usd = sum(
            run.cost(claim.against_at, run.rounds).usd
            for arm in claim.against
            for name in claim.environments
            for seed, run in self._runs[arm, name].items()
            if seed < judged_on[0]
        )
        return f"To find the best of {len(claim.against)} cost another ${usd:,.2f}, which is on neither side."

    def _pairs(self, claim: Cheaper, against: str, seeds: Sequence[int]) -> list[list[_Pair]]:
        def pair(name: str, seed: int) -> _Pair:
            sides = self._runs[claim.arm, name][seed], self._runs[against, name][seed]
            target = self._targets[claim.meter][name]
            reached = [side.reached(target, claim.meter) for side in sides]
            rounds = int(reached[0].at), int(reached[1].at)
            return _Pair(*sides, rounds, (reached[0].observed, reached[1].observed))

        return [[pair(name, seed) for name in claim.environments] for seed in seeds]

    def _spent(self, claim: Cheaper, pair: _Pair) -> tuple[float, float]:
        found = []
        for run, until, _, pricing_target in _sides(claim, pair):
            cost = run.cost(pricing_target, until)
            value = cost.seconds if claim.measure == "seconds" else cost.usd
            found.append(cost.paper_usd if claim.accounting == "paper" else value)
        return found[0], found[1]

    def _returns(self, claim: Better, against: str, name: str, seed: int) -> tuple[float, float]:
        """At the money that both sides spent, and as shares of the evaluations' target, whatever the meter: that of
        training may be below 0.
        """
        ours = self._runs[claim.arm, name][seed].dollars_curve(claim.at, claim.meter)
        theirs = self._runs[against, name][seed].dollars_curve(claim.against_at, claim.meter)
        money = min(ours[0][-1], theirs[0][-1])
        target = self._targets["evaluation"][name]
        return return_at(ours, money) / target, return_at(theirs, money) / target

    def judge_over_draws(self, claim: Cheaper, draws: int) -> dict[str, Any]:
        """Over how many draws of the clouds' numbers ours is cheaper by the point estimate, and what turns that."""
        against, seeds = self._opponent(claim)
        if not seeds or not draws:
            return {}
        pairs = self._pairs(claim, against, seeds)
        places = place_of(claim.at), place_of(claim.against_at)

        def ratio(value: Callable[[_Pair, int], float]) -> float:
            """Of the geometric means over seeds and environments: a faster stand-in for the ratio of IQMs."""
            logs = [math.log(value(pair, 0) / value(pair, 1)) for row in pairs for pair in row]
            return math.exp(sum(logs) / len(logs))

        by_draw: dict[tuple[int, int], list[float]] = {}
        for row in pairs:
            for pair in row:
                for side, (run, until, seen, pricing_target) in enumerate(_sides(claim, pair)):
                    by_draw[id(pair), side] = [
                        _value(claim, one) * (1 if seen else _PENALTY)
                        for one in self._draws_of(run, until, pricing_target, draws)
                    ]
        ratios = [
            ratio(lambda pair, side, draw=draw: by_draw[id(pair), side][draw])  # type: ignore[misc]
            for draw in range(draws)
        ]
        return {
            "draws": draws,
            "cheaper_in": sum(one < 1.0 for one in ratios),
            "ratio_p10": float(np.quantile(ratios, 0.1)),
            "ratio_p90": float(np.quantile(ratios, 0.9)),
            "turned_by": self._turned_by(claim, pairs[0], places),
        }

    def _draws_of(self, run: PricedRun, until: int, pricing_target: str, draws: int) -> list[TimeAndCost]:
        key = id(run), until, pricing_target, draws
        if key not in self._drawn:
            found = draw_outcomes(run.scripts(until), [place_of(pricing_target)], draws, seed=CLOUD_SEED)
            self._drawn[key] = [one for (one,) in found]
        return self._drawn[key]

    def _turned_by(
        self, claim: Cheaper, pairs: Sequence[_Pair], places: tuple[Place, Place]
    ) -> list[dict[str, Any]]:
        """Single numbers that turn the comparison within their ranges, tried on the first seed's runs."""
        usual_of = {
            (id(pair), side): time_and_cost(run.scripts(until), places[side], CLOUD_SEED)
            for pair in pairs
            for side, (run, until, _, _) in enumerate(_sides(claim, pair))
        }

        def cheaper(key: Key, quantile: float) -> bool:
            moved = [move_through(place, key, quantile) if touches(place, key) else None for place in places]
            logs = 0.0
            for pair in pairs:
                for side, (run, until, seen, _) in enumerate(_sides(claim, pair)):
                    place = moved[side]
                    found = (
                        usual_of[id(pair), side]
                        if place is None
                        else time_and_cost(run.scripts(until), place, CLOUD_SEED)
                    )
                    value = _value(claim, found) * (1 if seen else _PENALTY)
                    logs += math.log(value) * (1 if side == 0 else -1)
            return logs < 0.0

        scripts = [script for pair in pairs for script in pair.ours.scripts(pair.rounds[0])]
        usual = cheaper(("", ""), 0.5)
        return [
            {"of": flip.of, "name": flip.name, "value": flip.value, "at": flip.at, "kind": flip.quantity.kind}
            for flip in reversals(uncertain_numbers(scripts, places), cheaper, usual=usual)
        ]


def judge(interval: Interval, none: float, seeds: int, *, less: bool, alike: bool) -> tuple[str, str]:
    """The verdict's word and why. `none` is what no difference would be; `less`: below it is what was claimed."""
    inside = interval.low <= none <= interval.high
    if alike:
        if not inside:
            return "does not hold", "Arms that are the same came out different."
        return ("holds", "") if seeds >= ENOUGH_SEEDS else (undecided(seeds), "")
    if seeds < ENOUGH_SEEDS:
        return undecided(seeds), f"Fewer than {ENOUGH_SEEDS} seeds decide nothing at 95 %."
    if inside:
        return undecided(seeds), "The interval contains no difference."
    return (
        ("holds", "") if (interval.high < none) == less else ("does not hold", "It is the other way round.")
    )


def _why_undecidable(
    word: str, observed: npt.NDArray[np.bool_], spent: npt.NDArray[np.float64], claim: Cheaper
) -> str:
    """Why it cannot be said who is cheaper; both by seed, environment and side: who reached the target, and what was
    spent until then or in vain. Reaching it costs more than was spent in vain; how much more is not known. So that may
    speak for the other side, but only as it is, not by the penalty that it counts with; and for this one it never does.
    """
    short = observed.mean(axis=0) < 0.5
    neither = [name for name, sides in zip(claim.environments, short, strict=True) if sides.all()]
    if neither:
        return f"On {', '.join(neither)} neither side reached the target in half of its runs."
    favoured = {"holds": 0, "does not hold": 1}.get(word)
    if favoured is None or claim.alike:
        return ""
    other = 1 - favoured

    def where(side: int) -> str:
        names = [name for name, sides in zip(claim.environments, short, strict=True) if sides[side]]
        who = ("ours", "theirs")[side]
        return f"On {', '.join(names)} {who} reached the target in fewer than half of its runs"

    if short[:, favoured].any():
        return f"{where(favoured)}: what that would have cost is not known."
    penalty = np.where(observed, 1.0, _PENALTY)
    penalty[:, short[:, other], other] = 1.0
    once = paired_bootstrap(*np.moveaxis(penalty * spent, 2, 0), compare="ratio")
    if judge(once, 1.0, len(spent), less=True, alike=False)[0] != word:
        return (
            f"{where(other)}; counted as what was spent in vain, and not as twice that, it decides nothing."
        )
    return ""


def undecided(seeds: int) -> str:
    return f"not decided by {seeds} seed{'s' * (seeds != 1)}"


def _sides(claim: Cheaper, pair: _Pair) -> list[tuple[PricedRun, int, bool, str]]:
    return [
        (pair.ours, pair.rounds[0], pair.observed[0], claim.at),
        (pair.theirs, pair.rounds[1], pair.observed[1], claim.against_at),
    ]


def _value(claim: Cheaper, found: TimeAndCost) -> float:
    return found.time_s if claim.measure == "seconds" else float(found.picodollars)


def _penalised(run: PricedRun, target: float, claim: Cheaper | Better) -> float:
    """The other side's dollars to the target; twice what was spent where it was not reached."""
    reached = run.reached(target, claim.meter)
    usd = run.cost(claim.against_at, int(reached.at)).usd
    return usd if reached.observed else _PENALTY * usd
