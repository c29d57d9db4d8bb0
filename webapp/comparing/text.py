"""A comparison as sentences and as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from webapp.comparing.curves import Getting
from webapp.comparing.figures import JobComparison, SideFigures
from webapp.comparing.significance import FEWEST, MOST_MORE
from webapp.formatting import UNKNOWN, display_usd, format_duration, format_score, plural
from webapp.job_states import ACTIVE
from webapp.jobs.models import Job
from webapp.jobs.reasons import look_of_job
from webapp.money.amounts import PICODOLLARS_PER_USD


def row(figures: SideFigures, whole: JobComparison, getting: Getting | None) -> dict[str, Any]:
    """One side in the table."""
    return {
        "getting": getting_words(getting) if getting else None,
        "one": figures,
        "side": figures.side,
        "score": format_score(figures.iqm.value, figures.side.score.decimals) if figures.iqm else UNKNOWN,
        "time": "unknown" if figures.time_s is None else format_duration(figures.time_s),
        "interval": _interval(figures),
        "runs": _runs(figures),
        "against": _against(figures),
        "offer": _offer(figures, whole),
    }


class GettingWords(NamedTuple):
    """How many of a side's runs reached the goal, and the dollars and time that took; "" if unknown."""

    reached: str
    lead: str
    usd: str = ""
    time: str = ""


def getting_words(getting: Getting) -> GettingWords:
    count = f"{getting.reached} of {plural(getting.runs, 'run')}"
    if getting.usd is None or getting.time_s is None:
        return GettingWords(count, "fewer than half: no median" if getting.reached else "")
    usd = display_usd(round(getting.usd * PICODOLLARS_PER_USD))
    return GettingWords(count, "by" if getting.runs == 1 else "half by", usd, format_duration(getting.time_s))


def _interval(one: SideFigures) -> str:
    """The interval; for equal runs their number instead, as they do not make a result certain."""
    if one.iqm is None:
        return "no round has ended"
    if len(one.scores) < 2:
        return "one run: no interval"
    decimals = one.side.score.decimals
    value, low, high = (format_score(of, decimals) for of in (one.iqm.value, one.iqm.low, one.iqm.high))
    if low == high:
        alike = sum(format_score(float(each), decimals) == value for each in one.scores)
        return f"in {alike} of {len(one.scores)} runs"
    return f"{low} – {high}"


def _runs(figures: SideFigures) -> str:
    count = len(figures.side.jobs)
    return f"{count} ({figures.side.running} not over)" if figures.side.running else str(count)


def _against(figures: SideFigures) -> str:
    """Return how the best group compares with this one."""
    if figures.leads:
        return "the best so far"
    if figures.against is None:
        return UNKNOWN
    pairs = f"{figures.against.won:g} of {plural(figures.against.pairs, 'pair')} of runs"
    share = figures.against.better
    if share is None:
        return f"beaten by the best in {pairs}"
    low, high = (f"{100 * end:.0f}" for end in (share.low, share.high))
    return f"beaten by the best in {pairs}: {100 * share.value:.0f} % ({low}–{high} %)"


def _offer(figures: SideFigures, whole: JobComparison) -> dict[str, Any] | None:
    """How many more seeds would separate this side from the best, and what they cost: about, and at most."""
    leader = whole.leader
    if leader is None or figures.against is None or not figures.against.more:
        return None
    a_run = (figures.cost_a_run or 0) + (leader.cost_a_run or 0)
    more = figures.against.more
    return {
        "count": more,
        "about": display_usd(more * a_run),
        "most": display_usd(more * (figures.limit_a_run + leader.limit_a_run)),
        "likes": (leader.side.jobs[0].pk, figures.side.jobs[0].pk),
    }


def verdicts(whole: JobComparison) -> list[str]:
    """Sentences about the order of the sides."""
    sentences = []
    if whole.leader is None:
        return ["No round of these runs has ended yet."]
    if len(whole.sides) > 1:
        sentences += [sentence for figures in whole.sides if (sentence := _verdict(figures, whole.leader))]
    if whole.running:
        runs = plural(whole.running, "of the runs is", "of the runs are")
        sentences.append(f"{runs} not over: these are the figures so far.")
    return sentences


def _verdict(figures: SideFigures, leader: SideFigures) -> str:
    if figures.against is None:
        return ""
    pair = f"{leader.side.name} and {figures.side.name}"
    if figures.against.is_significant:
        return f"{leader.side.name} is better than {figures.side.name} (p = {figures.against.p:.2g} by permutation)."
    if figures.against.more is None:
        return f"{pair} are too close: more than {MOST_MORE} further seeds each would be needed to tell them apart."
    fewest = min(len(figures.scores), len(leader.scores))
    seeds = f"{plural(figures.against.more, 'more seed')} each"
    if fewest < FEWEST:
        return (
            f"{pair} cannot be told apart by so few seeds; {seeds} would be a beginning."
            if fewest < 2
            else (f"{pair} cannot be told apart by {fewest} seeds; {seeds} likely would.")
        )
    return f"{pair} are not told apart (p = {figures.against.p:.2g}); {seeds} likely would."


def chart_sentence(whole: JobComparison) -> str:
    """The chart as a sentence for screen readers."""
    decimals, name = whole.score.decimals, whole.named
    ends = [f"{one.side.name} {format_score(one.iqm.value, decimals)}" for one in whole.sides if one.iqm]
    return f"{name} at the end: {', '.join(ends)}." if ends else f"{name}: no rounds yet."


def member_rows(jobs: Iterable[Job]) -> list[dict[str, Any]]:
    """The runs of a group."""
    return [
        {
            "job": job,
            "state": look_of_job(job),
            "active": job.observed in ACTIVE,
            "seed": job.spec["training"]["seed"],
            "spent": job.account.spent_picodollars + job.account.overrun_picodollars,
        }
        for job in jobs
    ]
