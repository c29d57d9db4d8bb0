"""Who is compared with whom: a run of the claim's arm beside one of the same seed and environment of another arm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from research.claims import Better, Cheaper, Meter
from research.reports.run_cost import PricedRun

PENALTY = 2.0
"""Where the target was not reached, what was spent in vain counts so many times."""

Runs = Mapping[tuple[str, str], Mapping[int, PricedRun]]
"""Complete runs by arm and environment, then by seed."""


@dataclass(frozen=True)
class SeedPair:
    """One seed of one environment on both sides, each with its target's round and whether it got there."""

    ours: PricedRun
    theirs: PricedRun
    rounds: tuple[int, int]
    observed: tuple[bool, bool]

    def sides(self, claim: Cheaper) -> list[tuple[PricedRun, int, bool, str]]:
        """Return for ours and for theirs: the run, the round until which it counts, whether it got there, where."""
        return [
            (self.ours, self.rounds[0], self.observed[0], claim.at),
            (self.theirs, self.rounds[1], self.observed[1], claim.against_at),
        ]


class PairedRuns:
    """The runs there are, paired as claims ask."""

    def __init__(
        self, runs: Runs, targets: Mapping[str, float], training_targets: Mapping[str, float] | None = None
    ) -> None:
        self.runs = runs
        self.targets: dict[Meter, Mapping[str, float]] = {
            "evaluation": targets,
            "training": training_targets or {},
        }

    def opponents(self, claim: Cheaper | Better) -> dict[int, str]:
        """Whom the claim is against, by the seed that it is judged on.

        Of several the best is chosen for each seed on all the others (cross-fitting), or a lucky one would win.
        """
        every = [claim.arm, *claim.against]
        seeds = sorted(
            set.intersection(
                *(set(self.runs.get((arm, name), {})) for arm in every for name in claim.environments)
            )
        )
        if len(claim.against) == 1:
            return dict.fromkeys(seeds, claim.against[0])
        if len(seeds) < 2:
            return {}
        target = self.targets[claim.meter]
        logs = {
            (arm, seed): sum(
                math.log(
                    _penalised(
                        self.runs[arm, name][seed],
                        target.get(name),
                        claim,
                        self._reading_steps(claim, name),
                    )
                )
                for name in claim.environments
            )
            for arm in claim.against
            for seed in seeds
        }
        opponents = {}
        for judged_on in seeds:
            others = [seed for seed in seeds if seed != judged_on]
            opponents[judged_on] = min(
                claim.against,
                key=lambda arm: sum(logs[arm, seed] for seed in others),
            )
        return opponents

    def pairs(
        self, claim: Cheaper, opponents: Mapping[int, str], *, begin: bool = False
    ) -> list[list[SeedPair]]:
        def pair(name: str, seed: int, against: str) -> SeedPair:
            sides = self.runs[claim.arm, name][seed], self.runs[against, name][seed]
            if claim.until == "end":
                return SeedPair(*sides, (sides[0].rounds, sides[1].rounds), (True, True))
            target = self.targets[claim.meter][name]
            steps = self._reading_steps(claim, name)
            reached = [side.reached(target, claim.meter, begin=begin, every_steps=steps) for side in sides]
            rounds = int(reached[0].at), int(reached[1].at)
            return SeedPair(*sides, rounds, (reached[0].observed, reached[1].observed))

        return [
            [pair(name, seed, against) for name in claim.environments] for seed, against in opponents.items()
        ]

    def _reading_steps(self, claim: Cheaper | Better, environment: str) -> int:
        """How far apart all arms of the claim are read: by the largest round that any of them has there."""
        return max(
            run.outcome.round_steps
            for arm in (claim.arm, *claim.against)
            for run in self.runs[arm, environment].values()
        )


def _penalised(run: PricedRun, target: float | None, claim: Cheaper | Better, every_steps: int) -> float:
    """The other side's dollars to the target, or to the end where none is given; twice what was spent where the target
    was not reached.
    """
    if target is None or (isinstance(claim, Cheaper) and claim.until == "end"):
        return run.cost(claim.against_at, run.rounds).usd
    reached = run.reached(target, claim.meter, every_steps=every_steps)
    usd = run.cost(claim.against_at, int(reached.at)).usd
    return usd if reached.observed else PENALTY * usd
