"""How reliable R is: the correlation of two measurements of the same policy, given the round."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from research.claims import Better, Cheaper, Higher, RanksForks, Repeatable
from research.experiment import Experiment
from research.reports.judging import ENOUGH_SEEDS, Judgement, undecided
from research.reports.outcomes import Summary
from research.statistics import widened_interval
from training.statistics import Interval

_REPETITIONS = 1_000
_LEAST_ROUNDS = 10
Pairs = list[tuple[int, float, float]]
"""By round: log R of the one fleet, and of the other."""


class Setting(NamedTuple):
    """A number of samples and of products."""

    samples: int
    products: int


def pairs_of(rows: Sequence[Mapping[str, Any]]) -> dict[Setting, Pairs]:
    """What one training measured, where both R are above 0."""
    found: dict[Setting, Pairs] = {}
    for row in rows:
        for one in row.get("measured", ()) if row["kind"] == "reliability" else ():
            first, second = one["ratios"]
            if first and second and min(first, second) > 0:
                pairs = found.setdefault(Setting(one["samples"], one["products"]), [])
                pairs.append((row["round"], float(np.log(first)), float(np.log(second))))
    return found


def reliability(pairs: Pairs) -> float:
    """The correlation of both measurements, each without its straight trend over the rounds."""
    rounds, first, second = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    design = np.stack([np.ones_like(rounds), rounds], axis=1)
    left, right = (
        values - design @ np.linalg.lstsq(design, values, rcond=None)[0] for values in (first, second)
    )
    scale = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / scale if scale > 0 else 0.0


def share_of_round(rows: Sequence[Mapping[str, Any]], setting: Setting) -> float:
    """What measuring takes of a round's time: its update and its slowest actor."""
    measured = [
        (one["measure_s"], row["rollout_s"] + row["update_s"])
        for row in rows
        if row["kind"] == "reliability"
        for one in row["measured"]
        if (one["samples"], one["products"]) == setting
    ]
    return float(sum(one for one, _ in measured) / sum(whole for _, whole in measured))


def settings_table(summary: Summary) -> list[dict[str, Any]]:
    """Each setting with its reliability over seeds, the 95 % interval of that, and its share of a round."""
    runs = [outcome.rows for outcome in summary.done]
    by_run = [pairs_of(rows) for rows in runs]
    table = []
    for setting in sorted(set().union(*by_run)):
        usable = [one[setting] for one in by_run if len(one.get(setting, ())) >= _LEAST_ROUNDS]
        if usable:
            interval = _interval([reliability(pairs) for pairs in usable])
            shares = [share_of_round(rows, setting) for rows in runs]
            table.append(
                {
                    **setting._asdict(),
                    "reliability": interval._asdict(),
                    "share": float(np.mean(shares)),
                    "seeds": len(usable),
                }
            )
    return table


def _interval(values: Sequence[float]) -> Interval:
    """Of the mean over seeds."""
    drawn = np.random.default_rng(0).choice(values, (_REPETITIONS, len(values))).mean(axis=1)
    return widened_interval(float(np.mean(values)), drawn, len(values))


def judge_repeatability(
    claim: Repeatable, summaries: Sequence[Summary]
) -> tuple[Judgement, list[dict[str, Any]]]:
    """Whether any affordable setting is reliable enough, and all settings."""
    (summary,) = [one for one in summaries if (one.arm, one.environment) == (claim.arm, claim.environment)]
    table = settings_table(summary)
    if not table:
        return Judgement(None, 0, "", "open", "No training is complete."), []
    seeds = len(summary.done)
    affordable = [one for one in table if one["share"] <= claim.share]
    enough = [one for one in affordable if one["reliability"]["value"] >= claim.least]
    if enough:
        best = min(enough, key=lambda one: one["share"])
        word, why = "holds", "It is the cheapest that repeats."
    else:
        best = max(affordable or table, key=lambda one: one["reliability"]["value"])
        possible = any(one["reliability"]["high"] >= claim.least for one in affordable)
        word = undecided(seeds) if possible else "does not hold"
        why = (
            f"It is the best within {100 * claim.share:.0f} % of a round."
            if affordable
            else (f"None takes as little as {100 * claim.share:.0f} % of a round; it is the best of all.")
        )
    price = f"{best['samples']:,} samples and {best['products']} products: {100 * best['share']:.1f} % of a round."
    reason = f"{price} {why}"
    if seeds < ENOUGH_SEEDS or len(summary.done) < summary.planned:
        word = undecided(seeds)
    interval = Interval(**best["reliability"])
    return Judgement(interval, seeds, "", word, reason), table


def repeatability_tables(experiment: Experiment, summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """The settings of each such claim as a table for the page."""
    found = []
    for claim in experiment.claims:
        if isinstance(claim, Repeatable):
            _, table = judge_repeatability(claim, summaries)
            rows = [
                [
                    one["samples"],
                    one["products"],
                    one["reliability"]["value"],
                    one["reliability"]["low"],
                    one["reliability"]["high"],
                    100 * one["share"],
                ]
                for one in table
            ]
            if rows:
                columns = ["samples", "products", "reliability", "95 % from", "to", "% of a round"]
                found.append(
                    {
                        "title": f"Reliability of R on {claim.environment}",
                        "columns": columns,
                        "rows": rows,
                        "note": "The correlation of log R from two batches of the same policy, the round's trend taken"
                        " out; a round is its update and its slowest actor, on one core.",
                        "drawn": None,
                    }
                )
    return found


_CONTROLS = (
    "nitro_shuffled",
    "nitro_flipped",
    "nitro_constant",
    "nitro_spending",
    "nitro_floor",
    "nitro_released_loss",
)


def is_about_r(claim: Cheaper | Higher | Better | RanksForks) -> bool:
    """Whether a claim says that R is worth something: against a control that ignores it, or of R itself."""
    if isinstance(claim, RanksForks):
        return True
    return claim.arm.startswith("nitro") and bool(set(claim.against) & set(_CONTROLS))


def testable_price(results: Path) -> str:
    """What every verdict about R has to say first, by the stored result of `r_reliability`: nothing where R repeats at
    the price that it is measured for, or as long as that is not known.
    """
    path = results / "r_reliability.json"
    if not path.exists():
        return ""
    decided = [
        one
        for one in json.loads(path.read_text())["verdicts"]
        if one.get("asked", {}).get("kind") == "repeatable" and one["verdict"] == "does not hold"
    ]
    if not decided:
        return ""
    where = ", ".join(one["asked"]["environments"][0] for one in decided)
    return f"Not testable at this price: on {where} R is mostly sampling noise within 5 % of a round."


def stored_reliability(results: Path, environment: str, setting: tuple[int, int]) -> float | None:
    """The reliability of R from so many samples and products, by the stored result of `r_reliability`; None where that
    is not known.
    """
    path = results / "r_reliability.json"
    tables = json.loads(path.read_text()).get("tables", []) if path.exists() else []
    for table in tables:
        if table["title"].endswith(f" on {environment}"):
            for samples, products, value, *_ in table["rows"]:
                if (samples, products) == setting:
                    return float(value)
    return None
