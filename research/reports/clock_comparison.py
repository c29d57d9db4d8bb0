"""Which arm is done sooner by its runs' own clocks: runs whose weights depend on timing cannot be timed again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from research.claims import Sooner
from research.reports.judging import ONE_SIDED, Judgement, judge, judge_alike
from research.reports.outcomes import Outcome, Summary
from research.statistics import paired_bootstrap, paired_p_value


def virtual_seconds(outcome: Outcome, *, startup: bool) -> float:
    """The time of all its rounds, without evaluations between them. The first round has the start of machines in it;
    without `startup`, and where a run was gone on with, it counts as the others do.
    """
    first, others = 0.0, []
    begins = True
    for row in outcome.rows:
        if row["kind"] == "resumed":
            begins = True
        elif row["kind"] == "round":
            if not begins:
                others.append(row["total_s"])
            elif row["round"] == 1:
                first = row["total_s"]
            begins = False
    rounds = len(outcome.of("round"))
    usual = float(np.mean(others)) if others else first
    return first + usual * (rounds - 1) if startup else usual * rounds


def ceiling_sentence(outcomes: Sequence[Outcome]) -> str:
    """Say what part of a synchronous round is learning, and so what quicker learners could make of it at best; empty if
    the rounds of these runs are not synchronous.
    """
    learning_s = total_s = 0.0
    for outcome in outcomes:
        spec = outcome.rows[0].get("spec", {})
        if spec.get("training", {}).get("loop", {}).get("kind") != "synchronous":
            return ""
        for row in outcome.of("round"):
            if row["round"] > 1:
                learning_s += row["update_s"]
                total_s += row["total_s"]
    if not total_s:
        return ""
    share = learning_s / total_s
    return (
        f"Learning is {100 * share:.0f} % of theirs: with learners that take no time the ratio would be"
        f" {1 - share:.2f}."
    )


def judge_seconds(claim: Sooner, summaries: Sequence[Summary]) -> Judgement:
    """The ratio of times, paired by the seeds that are complete on both sides in every environment."""
    (against,) = claim.against
    found = {(one.arm, one.environment): one.done for one in summaries}
    sides = [
        [
            {one.cell.seed: virtual_seconds(one, startup=claim.startup) for one in found.get((arm, name), ())}
            for name in claim.environments
        ]
        for arm in (claim.arm, against)
    ]
    seeds = sorted(set.intersection(*(set(one) for side in sides for one in side)))
    if not seeds:
        return Judgement(None, 0, against, "open", "No seed is complete on both sides in every environment.")
    ours, theirs = (np.array([[one[seed] for one in side] for seed in seeds]) for side in sides)
    interval = paired_bootstrap(ours, theirs)
    if claim.alike:
        narrow = paired_bootstrap(ours, theirs, level=ONE_SIDED)
        word, why = judge_alike(interval, narrow, (1.0 / claim.margin, claim.margin), 1.0, len(seeds))
    else:
        word, why = judge(interval, 1.0, len(seeds), less=True)
        if not claim.startup:
            theirs_done = [one for name in claim.environments for one in found.get((against, name), ())]
            why = " ".join(filter(None, (why, ceiling_sentence(theirs_done))))
    return Judgement(interval, len(seeds), against, word, why, "", paired_p_value(ours, theirs), claim.alike)
