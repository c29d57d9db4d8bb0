"""Which arm is done sooner by its runs' own clocks: runs whose weights depend on timing cannot be timed again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cloud.timing.numbers import stack as stacks
from research.claims import Sooner
from research.reports.judging import ONE_SIDED, Judgement, judge, judge_alike
from research.reports.outcomes import RunOutcome, Summary
from research.runs.run_file import Row
from research.statistics import paired_bootstrap, paired_p_value

_SETTLING_ROUNDS = 12
"""So many rounds may learn from what was sampled while the learner's machine started. An asynchronous learner that is
quicker than its actors uses up five rounds' data in about as many, and a quarter of what follows is delayed by an
evaluation, as in the whole run.
"""


def virtual_seconds(outcome: RunOutcome, *, startup: bool) -> float:
    """The time of all its rounds, without evaluations between them. Where a run was gone on with, its machines start
    again: that round counts as usual ones do. Without `startup` all rounds do.
    """
    whole, later, settled = [], [], []
    since_start = restarted = 0
    for row in outcome.rows:
        if row["kind"] == "resumed":
            since_start = 0
        elif row["kind"] == "round":
            since_start += 1
            if since_start == 1 and row["round"] > 1:
                restarted += 1
                continue
            whole.append(row["total_s"])
            if since_start > 1:
                later.append(row["total_s"])
            if since_start > _SETTLING_ROUNDS:
                settled.append(row["total_s"])
    usual = float(np.mean(settled or later or whole))
    return sum(whole) + usual * restarted if startup else usual * (len(whole) + restarted)


def ceiling_sentence(outcomes: Sequence[RunOutcome], ratio: float | None = None) -> str:
    """Say what part of a synchronous round is learning, and so what quicker learners could make of it at best, and how
    far from that the `ratio` is; empty if the rounds of these runs are not synchronous.
    """
    if not outcomes or any(_loop_of(outcome) != "synchronous" for outcome in outcomes):
        return ""
    rows = _later_rounds(outcomes)
    total_s = sum(row["total_s"] for row in rows)
    if not total_s:
        return ""
    share = sum(row["update_s"] for row in rows) / total_s
    words = (
        f"Learning is {100 * share:.0f} % of theirs: with learners that take no time the ratio would be"
        f" {1 - share:.2f}"
    )
    return f"{words}." if ratio is None else f"{words}; it is {ratio / (1 - share):.2f} times that."


def parts_sentence(ours: Sequence[RunOutcome], theirs: Sequence[RunOutcome]) -> str:
    """Say of what a round of learners that compute gradients consists, beside one of a synchronous learner; empty if
    these runs are others.
    """
    rows = [row for row in _later_rounds(ours) if row.get("gradients")]
    steps = [row for row in _later_rounds(theirs) if row.get("minibatches")]
    if not rows or not steps or any(_loop_of(run) != "synchronous" for run in theirs):
        return ""

    def mean(values: Iterable[float]) -> float:
        return float(np.mean(list(values)))

    parts = [row["gradients"] for row in rows]
    total_s, learning_s = mean(row["total_s"] for row in rows), mean(part["learning_s"] for part in parts)
    gradients, versions = mean(part["gradients"] for part in parts), mean(part["steps"] for part in parts)
    at_once = (
        mean(one["learners_busy"] * row["total_s"] for one, row in zip(parts, rows, strict=True)) / learning_s
    )
    each_s = at_once * learning_s / gradients
    learners = mean(part["learners"] for part in parts)
    step_s = mean(row["update_s"] / row["minibatches"] for row in steps)
    return (
        f"In {learning_s:.2f} of its round's {total_s:.2f} s learners work: {gradients:.0f} gradients of"
        f" {1000 * each_s:.0f} ms, {at_once:.1f} at once, and {versions:.0f} versions made of them one after another."
        f" With {learners:.0f} at work all the time gradients alone would take {gradients * each_s / learners:.2f} s."
        f" A step in their learner's own process takes {1000 * step_s:.0f} ms.{_coordination(ours)}"
    )


def _coordination(ours: Sequence[RunOutcome]) -> str:
    """Say what share of a round the coordinator takes for outcomes, by its software's number; empty if that is not
    known.
    """
    name = ours[0].rows[0].get("spec", {}).get("platform", {}).get("stack")
    if name is None:
        return ""
    each = stacks.load(name).coordinator_ms
    rows = [row for row in _later_rounds(ours) if row.get("gradients")]
    outcomes = [row["actors"] + row["gradients"]["gradients"] + row["gradients"]["steps"] for row in rows]
    share = sum(outcomes) * each.value / 1000 / sum(row["total_s"] for row in rows)
    return (
        f" The coordinator takes {100 * share:.0f} % of a round, {np.mean(outcomes):.0f} outcomes of {each.value:g} ms,"
        f" which is {each.kind}."
    )


def _loop_of(outcome: RunOutcome) -> str:
    spec = outcome.rows[0].get("spec", {})
    return str(spec.get("training", {}).get("loop", {}).get("kind", ""))


def _later_rounds(outcomes: Sequence[RunOutcome]) -> list[Row]:
    """All rounds but the first ones, in which machines start."""
    return [row for outcome in outcomes for row in outcome.of("round") if row["round"] > 1]


def judge_seconds(claim: Sooner, summaries: Sequence[Summary]) -> Judgement:
    """The ratio of times, paired by the seeds that are complete on both sides in every environment."""
    (against,) = claim.against
    found = {(summary.arm, summary.environment): summary.done for summary in summaries}
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
            ours_done, theirs_done = (
                [one for name in claim.environments for one in found.get((arm, name), ())]
                for arm in (claim.arm, against)
            )
            sentences = (
                why,
                ceiling_sentence(theirs_done, interval.value),
                parts_sentence(ours_done, theirs_done),
            )
            why = " ".join(filter(None, sentences))
    return Judgement(interval, len(seeds), against, word, why, "", paired_p_value(ours, theirs), claim.alike)
