"""Sentences about a job's progress and cost. Pure functions of figures; empty if nothing is known.

The sentences about its limit are in webapp/jobs/billing/burn_rate.py, those about other clouds in
bill_text.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cloud.billing.parts import bill_parts
from training.tasks.score import RETURN, Score
from webapp.formatting import (
    display_usd,
    format_percent,
    format_rough_duration,
    format_score,
    format_short_duration,
    plural,
)

LISTED_PARTS = 5
ROUNDS_WITHOUT_NEWS = 10
EVALUATIONS_WITHOUT_NEWS = 3
STALLED_AFTER_S = 10.0
STALLED_BEYOND_USUAL = 3.0
UNANSWERED_AFTER_S = 10.0

# Student's t, 97.5 %, for 1 degree of freedom and more; beyond the table within 2 % of its last value.
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 2.0),
)


class PolicyScore(NamedTuple):
    """One evaluation. `std` is the standard deviation of its `episodes` returns."""

    round_no: int
    mean: float
    std: float
    episodes: int


def mean_interval(one: PolicyScore) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the mean return, by Student's t; None for a single episode."""
    if one.episodes < 2:
        return None
    t = _T[min(one.episodes - 1, len(_T)) - 1]
    half = t * one.std / (one.episodes - 1) ** 0.5
    return one.mean - half, one.mean + half


def progress_sentence(
    latest: float | None,
    judged: PolicyScore | None,
    reference: tuple[float, str] | None,
    score: Score = RETURN,
) -> str:
    """ "Return 1,840 (20 deterministic episodes, 95 % 1,790–1,880); reference 2,383 (where that is from)." """
    name = score.name.capitalize()
    if judged is not None and not judged.episodes:
        words = f"{name} {format_score(judged.mean, score.decimals)}"
    elif judged is not None:
        span = mean_interval(judged)
        inside = plural(judged.episodes, "deterministic episode")
        if span is not None:
            low, high = (format_score(end, score.decimals) for end in span)
            inside = f"{inside}, 95 % {low}–{high}"
        words = f"{name} {format_score(judged.mean, score.decimals)} ({inside})"
    elif latest is not None:
        while_learning = "while exploring" if score == RETURN else "in training"
        words = f"{name} {format_score(latest, score.decimals)} {while_learning}, not evaluated yet"
    else:
        words = f"No {score.name} yet"
    return f"{words}; reference {format_score(reference[0])} ({reference[1]})." if reference else f"{words}."


def parts_sentence(parts: Mapping[str, int], total: int) -> str:
    """ "Of $1.27: learner 77 %, actors 17 %, cold starts 2 %, failed calls 2 %, evaluation 2 %." """
    if total <= 0:
        return ""
    titles: dict[str, str] = {part.key: part.title.lower() for part in bill_parts()}
    dearest = sorted((key for key in parts if parts[key] > 0), key=lambda key: -parts[key])
    shares = [f"{titles.get(key, key)} {format_percent(parts[key], total)}" for key in dearest[:LISTED_PARTS]]
    rest = sum(parts[key] for key in dearest[LISTED_PARTS:])
    if rest:
        shares.append(f"the rest {format_percent(rest, total)}")
    return f"Of {display_usd(total)}: {', '.join(shares)}."


def plan_sentence(round_no: int, actors: int, most: int | None, why: str) -> str:
    """ "Round 12 used 22 of 64 actors: R 1.8 is mid-range of the last 6 rounds." `most` is None if unknown."""
    if not round_no or not why:
        return ""
    used = f"{actors:,} of {plural(most, 'actor')}" if most and most >= actors else plural(actors, "actor")
    return f"Round {round_no:,} used {used}: {why}."


def no_news_sentence(
    judged: Sequence[PolicyScore],
    round_no: int,
    picodollars_since: int,
    kept_round: int | None,
    score: Score = RETURN,
) -> str:
    """ "No improvement in 25 rounds ($0.38): stopping now keeps checkpoint 41."

    Empty until several evaluations in a row, some rounds apart, were no better than the best.
    """
    if not judged:
        return ""
    means = [one.mean for one in judged]
    best = means.index(score.best(means))
    rounds = round_no - judged[best].round_no
    if len(judged) - 1 - best < EVALUATIONS_WITHOUT_NEWS or rounds < ROUNDS_WITHOUT_NEWS:
        return ""
    kept = f"stopping now keeps checkpoint {kept_round:,}" if kept_round else "there is no checkpoint yet"
    return f"No improvement in {rounds:,} rounds ({display_usd(picodollars_since)}): {kept}."


def simulated_sentence(profile: str, words: str, count: int) -> str:
    """ "No money was spent: profile lambda, of its 18 numbers 7 measured and 11 assumed." """
    return f"No money is spent: profile {profile}, of its {plural(count, 'number')} {words}."


def queued_sentence(waits_s: float, ahead: int, running: int, places: int) -> str:
    """Return why a queued job waits."""
    if running >= places:
        before = (
            f"{plural(ahead, 'job')} {'is' if ahead == 1 else 'are'} ahead of this one"
            if ahead
            else "it is next"
        )
        return f"All {places:,} places for running jobs are taken; {before}."
    if waits_s >= UNANSWERED_AFTER_S:
        return (
            f"No worker has taken it for {format_rough_duration(waits_s)}, though {running:,} of {places:,} places are"
            " taken: the worker may be away. The request is repeated every few seconds."
        )
    return "Waiting for a worker to take it."


def stalled_sentence(
    round_no: int, passed_s: float, usual_s: float | None, in_flight: int, oldest_s: float | None
) -> str:
    """Return why a running job seems stalled; empty while its round takes about as long as earlier ones."""
    if passed_s < max(STALLED_AFTER_S, STALLED_BEYOND_USUAL * (usual_s or 0.0)):
        return ""
    usual = f"; rounds before it took {format_short_duration(usual_s)}" if usual_s else ""
    if in_flight and oldest_s is not None:
        are = "is" if in_flight == 1 else "are"
        what = f"{plural(in_flight, 'call')} {are} still running, the oldest for {format_rough_duration(oldest_s)}"
    else:
        what = "no call is running: the learner is working, or a restart is being prepared"
    return f"Round {round_no:,} has taken {format_rough_duration(passed_s)} so far{usual}: {what}."
