"""Sentences about a job's progress, plan and waiting: pure functions of figures; empty if nothing is known. They name
actors and rounds by the placeholders of `Declaration.say`.

What queries their figures is in job_summary.py. The sentences about its limit are in webapp/jobs/billing/burn_rate.py,
those about other clouds in bill_text.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from cloud.money.billing.parts import bill_parts
from training.loops.aggregation import fitting_learners
from training.loops.staleness_aware import StalenessAware
from training.tasks.score import USUAL, Score
from webapp.formatting import (
    display_usd,
    format_percent,
    format_rough_duration,
    format_score,
    format_short_duration,
    plural,
)
from webapp.jobs.charts.history import EvaluationPoint

_MANY = 10_000
LISTED_PARTS = 5
ROUNDS_WITHOUT_NEWS = 10
EVALUATIONS_WITHOUT_NEWS = 3
STALLED_AFTER_S = 10.0
STALLED_BEYOND_USUAL = 3.0
UNANSWERED_AFTER_S = 10.0


def judged_words(judged: EvaluationPoint | None, score: Score = USUAL.score) -> str:
    """ "evaluated, 95 % 1,790–1,880": how the figure of the score came about."""
    if judged is None:
        return "in training, not evaluated yet"
    span = judged.mean_interval
    if span is None:
        return "evaluated"
    low, high = (format_score(end, score.decimals) for end in span)
    return f"evaluated, 95 % {low}–{high}"


def progress_sentence(
    latest: float | None, judged: EvaluationPoint | None, reference: float | None, score: Score = USUAL.score
) -> str:
    """ "97 below the reference of 2,383, evaluated after round 140." The score itself is in the figures."""
    if judged is not None:
        when = f"evaluated after {{round}} {judged.round_no:,}"
        if reference is None:
            return f"{when.capitalize()}; no reference is known."
        apart = judged.mean - reference
        if not apart:
            return f"At the reference of {format_score(reference, score.decimals)}, {when}."
        side = "above" if apart > 0 else "below"
        by = format_score(abs(apart), score.decimals)
        return f"{by} {side} the reference of {format_score(reference, score.decimals)}, {when}."
    against = f"; the reference is {format_score(reference, score.decimals)}" if reference is not None else ""
    return f"No {score.name} yet{against}." if latest is None else f"Not evaluated yet{against}."


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
    used = (
        f"{actors:,} of {plural(most, '{actor}')}" if most and most >= actors else plural(actors, "{actor}")
    )
    return f"{{Round}} {round_no:,} used {used}: {why}."


def learner_sentence(report: Mapping[str, Any], *, simulated: bool) -> str:
    """ "Round 12 was learned from on a GPU." Empty before the first round."""
    update = report.get("update")
    if not update:
        return ""
    where = "a GPU" if update.get("device") == "cuda" else "a core"
    timed = "; its time is the simulated cloud's" if simulated else ""
    return f"{{Round}} {report['round_no']:,} was learned from on {where}{timed}."


def useful_learners(report: Mapping[str, Any], loop: StalenessAware) -> int:
    """Return how many learners the round's data was enough for: as many as it had slices if actors waited for them,
    else as many as kept up with the actors.
    """
    if loop.goes_by_waves:
        return ceil(int(report["actors"]) / loop.trajectories_per_gradient)
    gradients, lasted_s = report["gradients"], report["total_s"]
    gradient_s, sampled_s = gradients["learners_busy"] * lasted_s, gradients["actors_busy"] * lasted_s
    return fitting_learners(gradient_s, sampled_s / report["actors"], _MANY)


def learners_sentence(report: Mapping[str, Any], useful: int, price: str) -> str:
    """Return why so many learners were allowed where a round decides that, which side limited the round, how many
    learners its data was enough for, and what they cost.
    """
    gradients = report["gradients"]
    there, waited = gradients["learners"], format_percent(gradients["starved_share"])
    if useful < there:
        limits = f"{useful:,} of {there:,} would suffice"
    elif useful == there:
        limits = f"{'a second' if there == 1 else f'more than {there:,}'} would bring nothing"
    else:
        limits = f"{useful:,} in place of {there:,} would shorten its {{rounds}}"
    why = gradients.get("learners_why")
    allowed = f"{plural(there, 'learner')} allowed: {why}. " if why else ""
    return f"{allowed}Learners waited for data {waited} of the time: {limits}. {price}".rstrip()


def no_news_sentence(
    judged: Sequence[EvaluationPoint],
    round_no: int,
    picodollars_since: int,
    kept_round: int | None,
    score: Score = USUAL.score,
) -> str:
    """ "No improvement in 25 rounds ($0.38): stopping now keeps checkpoint 41."

    Empty until several evaluations in a row, some rounds apart, were no better than the best.
    """
    if not judged:
        return ""
    means = [evaluation.mean for evaluation in judged]
    best = means.index(score.best(means))
    rounds = round_no - judged[best].round_no
    if len(judged) - 1 - best < EVALUATIONS_WITHOUT_NEWS or rounds < ROUNDS_WITHOUT_NEWS:
        return ""
    kept = f"stopping now keeps checkpoint {kept_round:,}" if kept_round else "there is no checkpoint yet"
    return f"No improvement in {rounds:,} {{rounds}} ({display_usd(picodollars_since)}): {kept}."


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
    usual = f"; {{rounds}} before it took {format_short_duration(usual_s)}" if usual_s else ""
    if in_flight and oldest_s is not None:
        what = f"{plural(in_flight, 'call')} in flight, the oldest for {format_rough_duration(oldest_s)}"
    else:
        what = "no call is running: the learner is working, or a restart is being prepared"
    return f"{{Round}} {round_no:,} has taken {format_rough_duration(passed_s)} so far{usual}: {what}."
