"""Which arm ends higher: final evaluations after all rounds, whatever they cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from research.claims import Higher
from research.reports.judging import ONE_SIDED, Judgement, judge, judge_alike
from research.reports.outcomes import Summary
from research.statistics import paired_bootstrap, paired_p_value


def judge_final_returns(claim: Higher, summaries: Sequence[Summary]) -> Judgement:
    """The ratio of final returns, paired by the seeds that are complete on both sides in every environment."""
    (against,) = claim.against
    found = {(one.arm, one.environment): one.endpoints for one in summaries}
    sides = [[found.get((arm, name), {}) for name in claim.environments] for arm in (claim.arm, against)]
    seeds = sorted(set.intersection(*(set(one) for side in sides for one in side)))
    if not seeds:
        return Judgement(None, 0, against, "open", "No seed is complete on both sides in every environment.")
    ours, theirs = (np.array([[one[seed] for one in side] for seed in seeds]) for side in sides)
    if min(ours.min(), theirs.min()) <= 0:
        return Judgement(
            None, len(seeds), against, "open", "A return is not above 0, so that a ratio says nothing."
        )
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
