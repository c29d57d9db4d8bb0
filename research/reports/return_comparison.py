"""Which arm ends higher: by final evaluations after all rounds, whatever they cost, or in the time that both had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from research.claims import Higher, HigherInTime, NotWorse
from research.reports.clock_comparison import virtual_seconds
from research.reports.judging import ONE_SIDED, Judgement, judge, judge_alike, judge_at_least, undecided
from research.reports.outcomes import RunOutcome, Summary
from research.statistics import paired_bootstrap, paired_p_value
from training.statistics.few_seeds import probability_of_improvement

_NOT_ABOVE_0 = "A return is not above 0, so that a ratio says nothing."


def judge_final_returns(claim: Higher, summaries: Sequence[Summary]) -> Judgement:
    """The ratio of final returns, paired by the seeds that are complete on both sides in every environment."""
    (against,) = claim.against
    by_arm = {(summary.arm, summary.environment): summary.endpoints for summary in summaries}
    return _judge(
        claim, [[by_arm.get((arm, name), {}) for name in claim.environments] for arm in (claim.arm, against)]
    )


def judge_not_worse(claim: NotWorse, summaries: Sequence[Summary]) -> Judgement:
    """The ratio of final returns against the claim's margin; nothing is said before all declared seeds are there.

    Its p value is that of the margin: what speaks against a ratio of just that.
    """
    by_arm = {(summary.arm, summary.environment): summary for summary in summaries}
    sides = [by_arm.get((arm, claim.environment)) for arm in (claim.arm, claim.against)]
    present = [side for side in sides if side is not None]
    seeds = sorted(set.intersection(*(set(side.endpoints) for side in present))) if len(present) == 2 else []
    if not seeds or any(len(side.endpoints) < side.planned for side in present):
        why = "It is judged once all are." if seeds else "No seed is complete on both sides."
        return Judgement(None, len(seeds), claim.against, "open", why)
    ours, theirs = (np.array([side.endpoints[seed] for seed in seeds]) for side in present)
    if min(ours.min(), theirs.min()) <= 0:
        return Judgement(None, len(seeds), claim.against, undecided(len(seeds)), _NOT_ABOVE_0)
    interval = paired_bootstrap(ours, theirs)
    word, why = judge_at_least(interval, claim.margin, len(seeds))
    better = (
        f"A seed of ours beats one of theirs with probability {probability_of_improvement(ours, theirs):.2f}."
    )
    p_value = paired_p_value(ours, claim.margin * theirs)
    reason = " ".join(filter(None, (better, why)))
    return Judgement(interval, len(seeds), claim.against, word, reason, p_value=p_value)


def judge_returns_in_time(claim: HigherInTime, summaries: Sequence[Summary]) -> Judgement:
    """The ratio of the returns that each side had when the quicker one had done all its rounds, seed by seed."""
    (against,) = claim.against
    by_arm = {
        (one.arm, one.environment): {outcome.cell.seed: outcome for outcome in one.done} for one in summaries
    }
    sides: list[list[dict[int, float]]] = [[], []]
    for name in claim.environments:
        ours, theirs = (by_arm.get((arm, name), {}) for arm in (claim.arm, against))
        for side in sides:
            side.append({})
        for seed in ours.keys() & theirs.keys():
            pair = ours[seed], theirs[seed]
            within_s = min(virtual_seconds(one, startup=False) for one in pair)
            for side, one in zip(sides, pair, strict=True):
                side[-1][seed] = return_within(one, within_s)
    return _judge(claim, sides)


def return_within(outcome: RunOutcome, seconds: float) -> float:
    """What its evaluations say of the policy that it had after so many seconds of its own clock, without the start of
    machines: on a straight line between two of them.
    """
    rounds = max(row["round"] for row in outcome.of("round"))
    done = seconds / virtual_seconds(outcome, startup=False) * rounds
    return float(np.interp(done, *outcome.evaluated))


def _judge(claim: Higher | HigherInTime, sides: Sequence[Sequence[Mapping[int, float]]]) -> Judgement:
    """The ratio of both sides' returns, by environment and seed."""
    (against,) = claim.against
    seeds = sorted(set.intersection(*(set(one) for side in sides for one in side)))
    if not seeds:
        return Judgement(None, 0, against, "open", "No seed is complete on both sides in every environment.")
    ours, theirs = (np.array([[one[seed] for one in side] for seed in seeds]) for side in sides)
    if min(ours.min(), theirs.min()) <= 0:
        return Judgement(None, len(seeds), against, undecided(len(seeds)), _NOT_ABOVE_0)
    interval = paired_bootstrap(ours, theirs)
    if claim.alike:
        narrow = paired_bootstrap(ours, theirs, level=ONE_SIDED)
        word, why = judge_alike(interval, narrow, (1.0 / claim.margin, claim.margin), 1.0, len(seeds))
    else:
        word, why = judge(interval, 1.0, len(seeds), less=False)
    drawn = paired_bootstrap(ours, theirs, environments="drawn")
    more = {"over_environments": drawn._asdict() if len(claim.environments) > 1 else None}
    p_value = paired_p_value(ours, theirs)
    return Judgement(interval, len(seeds), against, word, why, "", p_value, claim.alike, more)
