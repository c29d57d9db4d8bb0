"""Which arm is cheaper, which is better for the same money: judged over seeds, environments and clouds.

The words are those of `judging.py`. An arm that reached the target in fewer than half of its runs is never called
cheaper. Each claim is judged by other accounts as well: without start-ups, without calls that rebuild their workers,
and, where there is a target, by another stop rule. A verdict whose sign turns with one of them says so first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from research.claims import Better, Cheaper
from research.pricing_targets import Account
from research.reports.cost_draws import CostDraws
from research.reports.judging import (
    ONE_SIDED,
    ClaimVariant,
    Judgement,
    firmness,
    judge,
    judge_alike,
    undecided,
)
from research.reports.paired_runs import PENALTY, PairedRuns, Runs, SeedPair
from research.reports.run_cost import return_at
from research.statistics import paired_bootstrap, paired_p_value
from training.statistics.few_seeds import Interval

_VARIANTS: tuple[tuple[str, str, Account, bool], ...] = (
    ("no_startup", "without the start of machines and functions on both sides", "no_startup", False),
    ("no_rebuild", "if no call rebuilt its workers", "no_rebuild", False),
    ("begin", "if the first of three readings at the target ended it", "full", True),
)


class CostComparisons:
    """Judges claims on the runs there are."""

    def __init__(
        self, runs: Runs, targets: Mapping[str, float], training_targets: Mapping[str, float] | None = None
    ) -> None:
        self._paired = PairedRuns(runs, targets, training_targets)
        self._draws = CostDraws()

    def cheaper(self, claim: Cheaper) -> Judgement:
        opponents = self._paired.opponents(claim)
        if not opponents:
            return _incomplete(claim)
        seeds = len(opponents)
        pairs = self._paired.pairs(claim, opponents)
        spent, observed = self._amounts(claim, pairs)
        ours, theirs = _counted(spent, observed)
        interval = paired_bootstrap(ours, theirs, compare="ratio")
        reached = (
            ""
            if claim.until == "end"
            else ", ".join(
                f"{environment}: {observed[:, place, 0].sum()} and {observed[:, place, 1].sum()} of {seeds}"
                for place, environment in enumerate(claim.environments)
            )
        )
        word, why = _amounts_verdict(claim, spent, observed)
        against = _most_often(opponents)
        if word == "holds" and self._at_the_edge(claim, against):
            word, why = (
                undecided(seeds),
                "The best is at the edge of those tried: a better one may lie beyond.",
            )
        variants = self._variants(claim, opponents, interval)
        why = " ".join(filter(None, (*firmness(word, variants), why, self._search_cost(claim))))
        p_value = paired_p_value(ours, theirs, compare="ratio")
        more = {
            "over_environments": _as_drawn(ours, theirs, "ratio"),
            "variants": [variant.as_dict() for variant in variants],
            "startup_shares": self._startup_shares(claim, pairs),
        }
        return Judgement(interval, seeds, against, word, why, reached, p_value, claim.alike, more)

    def _amounts(
        self, claim: Cheaper, pairs: Sequence[Sequence[SeedPair]], account: Account = "full"
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """What was spent, and whether the target was reached, by seed, environment and side."""
        spent = np.array([[self._spent(claim, pair, account) for pair in row] for row in pairs])
        return spent, np.array([[pair.observed for pair in row] for row in pairs])

    def _variants(self, claim: Cheaper, opponents: Mapping[int, str], usual: Interval) -> list[ClaimVariant]:
        """The claim by other accounts. The papers' formulas know no start, so that nothing of it can be left out."""
        variants = []
        for name, words, account, begin in _VARIANTS:
            if (claim.accounting == "paper" and account == "no_startup") or (begin and claim.until == "end"):
                continue
            spent, observed = self._amounts(claim, self._paired.pairs(claim, opponents, begin=begin), account)
            interval = paired_bootstrap(*_counted(spent, observed), compare="ratio")
            turned = not claim.alike and (interval.value < 1.0) != (usual.value < 1.0)
            word, _ = _amounts_verdict(claim, spent, observed)
            variants.append(ClaimVariant(name, words, interval, word, turned))
        return variants

    def _startup_shares(self, claim: Cheaper, pairs: Sequence[Sequence[SeedPair]]) -> list[float]:
        """What share of ours and of theirs is start-up, by the claim's measure: the mean of all pairs."""
        if claim.accounting == "paper":
            return []
        full, without = (self._amounts(claim, pairs, account)[0] for account in ("full", "no_startup"))
        return [float(one) for one in (1.0 - without / full).mean(axis=(0, 1))]

    @staticmethod
    def _at_the_edge(claim: Cheaper | Better, against: str) -> bool:
        """Whether the best of a grid is its least or its largest: `against` is declared in order."""
        return len(claim.against) > 2 and against in (claim.against[0], claim.against[-1])

    def better(self, claim: Better) -> Judgement:
        opponents = self._paired.opponents(claim)
        if not opponents:
            return _incomplete(claim)
        ours, theirs = self._all_returns(claim, opponents)
        interval = paired_bootstrap(ours, theirs, compare="difference")
        word, why = _difference_verdict(claim, ours, theirs)
        variants = self._better_variants(claim, opponents, interval)
        why = " ".join(filter(None, (*firmness(word, variants), why)))
        p_value = paired_p_value(ours, theirs, compare="difference")
        more = {
            "over_environments": _as_drawn(ours, theirs, "difference"),
            "variants": [variant.as_dict() for variant in variants],
            "startup_shares": self._bill_shares(claim, opponents),
        }
        against = _most_often(opponents)
        return Judgement(interval, len(opponents), against, word, why, "", p_value, claim.alike, more)

    def _better_variants(
        self, claim: Better, opponents: Mapping[int, str], usual: Interval
    ) -> list[ClaimVariant]:
        """The claim at other bills, by which the same money buys other rounds of each side."""
        variants = []
        for name, words, account, begin in _VARIANTS:
            if begin:  # it has no target to begin with
                continue
            ours, theirs = self._all_returns(claim, opponents, account)
            interval = paired_bootstrap(ours, theirs, compare="difference")
            turned = not claim.alike and (interval.value > 0.0) != (usual.value > 0.0)
            word, _ = _difference_verdict(claim, ours, theirs)
            variants.append(ClaimVariant(name, words, interval, word, turned))
        return variants

    def _bill_shares(self, claim: Better, opponents: Mapping[int, str]) -> list[float]:
        """What share of the bill for all rounds is start-up, ours and theirs: the mean of all pairs."""

        def share(arm: str, name: str, seed: int, at: str) -> float:
            run = self._paired.runs[arm, name][seed]
            full, without = (run.cost(at, run.rounds, account).usd for account in ("full", "no_startup"))
            return 1.0 - without / full

        sides = [
            (share(claim.arm, name, seed, claim.at), share(against, name, seed, claim.against_at))
            for seed, against in opponents.items()
            for name in claim.environments
        ]
        return [float(one) for one in np.mean(sides, axis=0)]

    def _search_cost(self, claim: Cheaper | Better) -> str:
        """What it cost to find the best of several, which is on neither side."""
        if len(claim.against) == 1:
            return ""
        usd = sum(
            run.cost(claim.against_at, run.rounds).usd
            for arm in claim.against
            for name in claim.environments
            for run in self._paired.runs[arm, name].values()
        )
        return f"To find the best of {len(claim.against)} cost another ${usd:,.2f}, which is on neither side."

    def _spent(self, claim: Cheaper, pair: SeedPair, account: Account) -> tuple[float, float]:
        spent = []
        for run, until, _, pricing_target in pair.sides(claim):
            cost = run.cost(pricing_target, until, account)
            value = cost.seconds if claim.measure == "seconds" else cost.usd
            spent.append(cost.paper_usd if claim.accounting == "paper" else value)
        return spent[0], spent[1]

    def _all_returns(
        self, claim: Better, opponents: Mapping[int, str], account: Account = "full"
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Ours and theirs, by seed and environment."""
        rows = [
            [self._returns(claim, against, name, seed, account) for name in claim.environments]
            for seed, against in opponents.items()
        ]
        ours, theirs = np.moveaxis(np.array(rows), 2, 0)
        return ours, theirs

    def _returns(
        self, claim: Better, against: str, name: str, seed: int, account: Account
    ) -> tuple[float, float]:
        """At the money that both sides spent, and as shares of the evaluations' target, whatever the meter: that of
        training may be below 0.
        """
        ours = self._paired.runs[claim.arm, name][seed].dollars_curve(claim.at, claim.meter, account)
        theirs = self._paired.runs[against, name][seed].dollars_curve(claim.against_at, claim.meter, account)
        money = min(ours[0][-1], theirs[0][-1])
        target = self._paired.targets["evaluation"][name]
        return return_at(ours, money) / target, return_at(theirs, money) / target

    def judge_over_draws(self, claim: Cheaper, draws: int) -> dict[str, Any]:
        """Return how sure the claim is of the clouds' numbers; nothing if no seed is complete."""
        opponents = self._paired.opponents(claim)
        if not opponents or not draws:
            return {}
        return self._draws.judge(claim, self._paired.pairs(claim, opponents), draws)


def _counted(
    spent: npt.NDArray[np.float64], observed: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Ours and theirs as they count: what did not reach the target counts with a penalty."""
    ours, theirs = np.moveaxis(np.where(observed, 1.0, PENALTY) * spent, 2, 0)
    return ours, theirs


def _amounts_verdict(
    claim: Cheaper, spent: npt.NDArray[np.float64], observed: npt.NDArray[np.bool_]
) -> tuple[str, str]:
    """The word and why, by any account: nothing is decided of a target that is hardly reached."""
    word, why = _ratio_verdict(claim, *_counted(spent, observed))
    unseen = _why_undecidable(word, observed, spent, claim)
    return (undecided(len(spent)), unseen) if unseen else (word, why)


def _ratio_verdict(claim: Cheaper, ours: npt.ArrayLike, theirs: npt.ArrayLike) -> tuple[str, str]:
    interval, seeds = paired_bootstrap(ours, theirs, compare="ratio"), len(np.asarray(ours))
    if not claim.alike:
        return judge(interval, 1.0, seeds, less=True)
    narrow = paired_bootstrap(ours, theirs, compare="ratio", level=ONE_SIDED)
    return judge_alike(interval, narrow, (1.0 / claim.margin, claim.margin), 1.0, seeds)


def _difference_verdict(claim: Better, ours: npt.ArrayLike, theirs: npt.ArrayLike) -> tuple[str, str]:
    interval, seeds = paired_bootstrap(ours, theirs, compare="difference"), len(np.asarray(ours))
    if not claim.alike:
        return judge(interval, 0.0, seeds, less=False)
    narrow = paired_bootstrap(ours, theirs, compare="difference", level=ONE_SIDED)
    return judge_alike(interval, narrow, (-claim.margin, claim.margin), 0.0, seeds)


def _as_drawn(ours: npt.NDArray[Any], theirs: npt.NDArray[Any], compare: str) -> dict[str, float] | None:
    """The interval if environments were a sample of others; None for a single one."""
    if ours.shape[1] == 1:
        return None
    return paired_bootstrap(ours, theirs, compare=compare, environments="drawn")._asdict()


def _incomplete(claim: Cheaper | Better) -> Judgement:
    against = claim.against[0] if len(claim.against) == 1 else "the best of several"
    return Judgement(None, 0, against, "open", "No seed is complete on both sides in every environment.")


def _most_often(opponents: Mapping[int, str]) -> str:
    return Counter(opponents.values()).most_common(1)[0][0]


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
    penalty = np.where(observed, 1.0, PENALTY)
    penalty[:, short[:, other], other] = 1.0
    once = paired_bootstrap(*np.moveaxis(penalty * spent, 2, 0), compare="ratio")
    if judge(once, 1.0, len(spent), less=True)[0] != word:
        return (
            f"{where(other)}; counted as what was spent in vain, and not as twice that, it decides nothing."
        )
    return ""
