"""Predictions in words: before they are applied, on the job's page, and once they are judged."""

from __future__ import annotations

from typing import Any

from training.tasks.score import Declaration
from webapp.comparing.predictions.models import Prediction, PredictionState
from webapp.comparing.predictions.predict import WhatIf
from webapp.formatting import display_usd, format_duration, format_score, plural
from webapp.jobs.models import Job
from webapp.money.amounts import PICODOLLARS_PER_USD

ENDS = {
    "steps": "at its last step",
    "rounds": "at its last {round}",
    "minutes": "when its time is over",
    "budget": "when its limit is reached",
}


def figures(job: Job, what_if: WhatIf) -> list[dict[str, str]]:
    """Return the prediction's figures: what, the middle, and the band."""
    end, score = what_if.end, job.training_facts.score
    rows = [
        _row(
            "Ends after", *(format_duration(one) for one in (end.time_s.p50, end.time_s.p10, end.time_s.p90))
        ),
        _row("Costs", *(display_dollars(dollars) for dollars in (end.usd.p50, end.usd.p10, end.usd.p90))),
    ]
    if what_if.score is None:
        rows.append({"what": f"Training {score.name}", "middle": "–", "band": "too early to tell"})
    else:
        low, high = sorted((what_if.score.p10, what_if.score.p90))
        words = (format_score(value, score.decimals) for value in (what_if.score.p50, low, high))
        rows.append(_row(f"Training {score.name}", *words))
    return rows


def _row(what: str, middle: str, low: str, high: str) -> dict[str, str]:
    return {"what": what, "middle": middle, "band": f"{low} to {high}"}


def display_dollars(amount: float) -> str:
    return display_usd(round(amount * PICODOLLARS_PER_USD))


def ending(job: Job, what_if: WhatIf) -> str:
    return f"It ends {job.declaration.say(ENDS[what_if.end.ends_by])}."


def kept(row: Prediction, declared: Declaration) -> str:
    """Return a kept prediction and its outcome as sentences, in the words of the job's kind of training."""
    score_name, decimals = f"training {declared.score.name}", declared.score.decimals
    setting = (
        f"with {plural(row.actors, '{actor}')}" if row.actors is not None else "with the policy's {actors}"
    )
    when = declared.say(f"after {{round}} {row.round_no:,} {setting}")
    said = (
        f"Predicted {when}: ends after {format_duration(row.time_p10_s)} to"
        f" {format_duration(row.time_p90_s)}, costs {display_usd(row.cost_p10_picodollars)} to"
        f" {display_usd(row.cost_p90_picodollars)}"
    )
    if row.score_p10 is not None and row.score_p90 is not None:
        low, high = sorted((row.score_p10, row.score_p90))
        said += f", {score_name} {format_score(low, decimals)} to {format_score(high, decimals)}"
    if row.state == PredictionState.OPEN:
        return f"{said}."
    if row.state == PredictionState.VOID:
        return f"{said}. Not judged: {row.reason}"
    return f"{said}. {verdict(row, score_name, decimals)}"


def verdict(row: Prediction, score_name: str, decimals: int) -> str:
    """Return what came of a judged prediction: each figure, inside or outside its band."""
    parts = []
    for what, shown, held in outcomes(row, score_name, decimals):
        parts.append(f"{what} {shown} ({'inside' if held else 'outside'} its band)")
    return f"It came to {', '.join(parts)}."


def outcomes(row: Prediction, score_name: str, decimals: int) -> list[tuple[str, str, bool]]:
    """Return by figure: its name, what it came to, and whether that is inside the band of 80 %."""
    rows = []
    if row.time_s is not None:
        rows.append(("time", format_duration(row.time_s), row.time_p10_s <= row.time_s <= row.time_p90_s))
    if row.cost_picodollars is not None:
        held = row.cost_p10_picodollars <= row.cost_picodollars <= row.cost_p90_picodollars
        rows.append(("cost", display_usd(row.cost_picodollars), held))
    if row.score is not None and row.score_p10 is not None and row.score_p90 is not None:
        low, high = sorted((row.score_p10, row.score_p90))
        rows.append((score_name, format_score(row.score, decimals), low <= row.score <= high))
    return rows


def mark(row: Prediction | None) -> dict[str, Any] | None:
    """Return what the chart of returns draws of a prediction; None without one."""
    if row is None or row.score_p10 is None or row.score_p90 is None:
        return None
    low, high = sorted((row.score_p10, row.score_p90))
    return {"round": row.round_no, "steps": row.steps_p50, "low": low, "middle": row.score_p50, "high": high}
