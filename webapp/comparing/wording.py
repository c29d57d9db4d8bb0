"""A comparison in words and in rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webapp.comparing.figures import Comparison, SideFigures
from webapp.comparing.reaching import Getting
from webapp.comparing.telling_apart import FEWEST, MOST_MORE
from webapp.jobs.models import Job
from webapp.jobs.states import ACTIVE
from webapp.jobs.telling.wording import shown_state
from webapp.money.amounts import PICODOLLARS_PER_USD, display_usd
from webapp.templatetags.look import UNKNOWN, duration, score


def row(one: SideFigures, whole: Comparison, getting: Getting | None) -> dict[str, Any]:
    """One side in the table."""
    return {
        "getting": _getting(getting) if getting else None,
        "got_there": getting is not None and getting.usd is not None,
        "one": one,
        "side": one.side,
        "score": score(one.iqm.value) if one.iqm else UNKNOWN,
        "interval": _interval(one),
        "runs": _runs(one),
        "against": _against(one),
        "offer": _offer(one, whole),
    }


def _getting(one: Getting) -> tuple[str, str]:
    """What it took to the goal, and how many of its runs got there."""
    count = f"{one.reached} of {one.runs} run{'' if one.runs == 1 else 's'}"
    if one.usd is None or one.time_s is None:
        return UNKNOWN, f"{count} got there"
    return display_usd(round(one.usd * PICODOLLARS_PER_USD)), f"{duration(one.time_s)}, {count}"


def _interval(one: SideFigures) -> str:
    if one.iqm is None:
        return "no round has ended"
    if len(one.scores) < 2:
        return "one run: no interval"
    return f"{score(one.iqm.low)} – {score(one.iqm.high)}"


def _runs(one: SideFigures) -> str:
    count = len(one.side.jobs)
    return f"{count} ({one.side.running} not over)" if one.side.running else str(count)


def _against(one: SideFigures) -> str:
    """How the best stands to this side."""
    if one.leads:
        return "the best so far"
    if one.against is None:
        return UNKNOWN
    share = f"beaten by the best in {100 * one.against.better.value:.0f} % of pairs"
    if len(one.scores) >= FEWEST:  # of fewer, the interval would promise what they cannot
        share += f" ({100 * one.against.better.low:.0f}–{100 * one.against.better.high:.0f} %)"
    return share


def _offer(one: SideFigures, whole: Comparison) -> dict[str, Any] | None:
    """How many more seeds would tell this side from the best, about what they cost, and at most."""
    leader = whole.leader
    if leader is None or one.against is None or not one.against.more:
        return None
    more = one.against.more
    return {
        "count": more,
        "about": display_usd(more * (one.cost_a_run + leader.cost_a_run)),
        "most": display_usd(more * (one.limit_a_run + leader.limit_a_run)),
        "likes": (leader.side.jobs[0].pk, one.side.jobs[0].pk),
    }


def verdicts(whole: Comparison) -> list[str]:
    """What can be said of the order, in sentences."""
    told = []
    if whole.leader is None:
        return ["No round of these runs has ended yet."]
    if len(whole.sides) > 1:
        told += [sentence for one in whole.sides if (sentence := _verdict(one, whole.leader))]
    if whole.running:
        runs = "1 of the runs is" if whole.running == 1 else f"{whole.running} of the runs are"
        told.append(f"{runs} not over: these are the figures so far.")
    return told


def _verdict(one: SideFigures, leader: SideFigures) -> str:
    if one.against is None:
        return ""
    pair = f"{leader.side.name} and {one.side.name}"
    if one.against.told:
        return f"{leader.side.name} is better than {one.side.name} (p = {one.against.p:.2g} by permutation)."
    if one.against.more is None:
        return f"{pair} are too close: more than {MOST_MORE} further seeds each would be needed to tell them apart."
    fewest = min(len(one.scores), len(leader.scores))
    seeds = f"{one.against.more} more seed{'' if one.against.more == 1 else 's'} each"
    if fewest < FEWEST:
        return (
            f"{pair} cannot be told apart by so few seeds; {seeds} would be a beginning."
            if fewest < 2
            else (f"{pair} cannot be told apart by {fewest} seeds; {seeds} likely would.")
        )
    return f"{pair} are not told apart (p = {one.against.p:.2g}); {seeds} likely would."


def chart_sentence(whole: Comparison) -> str:
    """The chart for those who do not see it."""
    ends = [f"{one.side.name} {score(one.iqm.value)}" for one in whole.sides if one.iqm]
    return f"Return at the end: {', '.join(ends)}." if ends else "Return: no rounds yet."


def member_rows(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The runs of a group."""
    return [
        {
            "job": job,
            "state": shown_state(job),
            "active": job.observed in ACTIVE,
            "seed": job.spec["training"]["seed"],
            "spent": job.account.spent_picodollars + job.account.overrun_picodollars,
        }
        for job in jobs
    ]
