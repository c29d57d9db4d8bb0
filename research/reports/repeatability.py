"""How reliable R is: the correlation of two measurements of the same policy, given the round."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from research.claims import Better, Cheaper, Higher, RanksForks, Repeatable
from research.experiment import Experiment
from research.reports.judging import ENOUGH_SEEDS, Judgement, undecided
from research.reports.outcomes import Summary
from research.statistics import widened_interval
from training.statistics.few_seeds import Interval

_REPETITIONS = 1_000
_LEAST_ROUNDS = 10
_REPEATS = 0.8
Pairs = list[tuple[int, float, float]]
"""By round: log R of the one fleet, and of the other."""
Floats = npt.NDArray[np.float64]


class KernelSize(NamedTuple):
    """A number of samples and of products."""

    samples: int
    products: int


def pairs_of(rows: Sequence[Mapping[str, Any]]) -> dict[KernelSize, Pairs]:
    """What one training measured, where both R are above 0."""
    found: dict[KernelSize, Pairs] = {}
    for row in rows:
        for one in row.get("measured", ()) if row["kind"] == "reliability" else ():
            first, second = one["ratios"]
            if first and second and min(first, second) > 0:
                pairs = found.setdefault(KernelSize(one["samples"], one["products"]), [])
                pairs.append((row["round"], float(np.log(first)), float(np.log(second))))
    return found


def reliability(pairs: Pairs) -> float:
    """The correlation of both measurements, each without its straight trend over the rounds."""
    left, right = _without_trend(pairs)
    scale = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / scale if scale > 0 else 0.0


def noise_of(pairs: Pairs) -> float:
    """The deviation of one measurement of log R from what the policy's is, by how far two of them are apart."""
    left, right = _without_trend(pairs)
    return float(np.sqrt(np.mean((left - right) ** 2) / 2))


def with_whole_round(pairs: Pairs, whole: Pairs) -> float:
    """What the first fleet's R says of R from all samples of the same fleet: their correlation."""
    known = {round_no: first for round_no, first, _ in whole}
    return reliability([(k, first, known[k]) for k, first, _ in pairs if k in known])


def with_next_round(pairs: Pairs) -> float:
    """What the first fleet's R says of the next round's, which is when Nitro decides by it."""
    known = {round_no: first for round_no, first, _ in pairs}
    return reliability([(k, first, known[k + 1]) for k, first, _ in pairs if k + 1 in known])


def _without_trend(pairs: Pairs) -> tuple[Floats, Floats]:
    rounds, first, second = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    design = np.stack([np.ones_like(rounds), rounds], axis=1)
    left, right = (
        values - design @ np.linalg.lstsq(design, values, rcond=None)[0] for values in (first, second)
    )
    return left, right


def share_of_round(rows: Sequence[Mapping[str, Any]], setting: KernelSize) -> float:
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
    """Each setting: its reliability over seeds with the 95 % interval, its noise, what it says of R from all samples
    and of the next round's, and its share of a round."""
    runs = [outcome.rows for outcome in summary.done]
    by_run = [
        {setting: pairs for setting, pairs in pairs_of(rows).items() if len(pairs) >= _LEAST_ROUNDS}
        for rows in runs
    ]
    settings = sorted(set().union(*by_run))
    table = []
    for setting in settings:
        whole = max(one for one in settings if one.products == setting.products)
        usable = [run for run in by_run if setting in run]
        pairs = [run[setting] for run in usable]
        table.append(
            {
                **setting._asdict(),
                "reliability": _interval([reliability(pair) for pair in pairs])._asdict(),
                "noise": float(np.mean([noise_of(pair) for pair in pairs])),
                "whole": _mean(with_whole_round(run[setting], run[whole]) for run in usable if whole in run),
                "next": float(np.mean([with_next_round(pair) for pair in pairs])),
                "share": float(np.mean([share_of_round(rows, setting) for rows in runs])),
                "seeds": len(usable),
            }
        )
    return table


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return float(np.mean(known)) if known else None


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
    affordable = [row for row in table if row["share"] <= claim.share]
    enough = [row for row in affordable if row["reliability"]["value"] >= claim.least]
    if enough:
        best = min(enough, key=lambda row: row["share"])
        word, why = "holds", "It is the cheapest that repeats."
    else:
        best = max(affordable or table, key=lambda row: row["reliability"]["value"])
        possible = any(row["reliability"]["high"] >= claim.least for row in affordable)
        word = undecided(seeds) if possible else "does not hold"
        why = (
            f"It is the best within {100 * claim.share:.0f} % of a round."
            if affordable
            else (f"None takes as little as {100 * claim.share:.0f} % of a round; it is the best of all.")
        )
    price = f"{best['samples']:,} samples and {best['products']} products: {100 * best['share']:.1f} % of a round."
    most = max(table, key=lambda row: (row["samples"], row["products"]))
    if not enough and most is not best:
        why += f" From all {most['samples']:,} samples it is {_in_words(most['reliability'])}."
    reason = f"{price} {why}"
    if seeds < ENOUGH_SEEDS or len(summary.done) < summary.planned:
        word = undecided(seeds)
    interval = Interval(**best["reliability"])
    return Judgement(interval, seeds, "", word, reason), table


def _in_words(interval: Mapping[str, float]) -> str:
    # Adding 0 takes the sign from what rounds to 0.
    value, low, high = (round(interval[name], 2) + 0.0 for name in ("value", "low", "high"))
    return f"{value:.2f} [{low:.2f}, {high:.2f}]".replace("-", "−")


def repeatability_tables(experiment: Experiment, summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """The settings of each such claim as a table for the page."""
    tables = []
    for claim in experiment.claims:
        if isinstance(claim, Repeatable):
            _, table = judge_repeatability(claim, summaries)
            rows = [
                [
                    row["samples"],
                    row["products"],
                    row["reliability"]["value"],
                    row["reliability"]["low"],
                    row["reliability"]["high"],
                    row["noise"],
                    row["whole"],
                    row["next"],
                    100 * row["share"],
                ]
                for row in table
            ]
            if rows:
                columns = ["samples", "products", "reliability", "95 % from", "to", "noise of log R"]
                columns += ["with all samples", "with the next round", "% of a round"]
                tables.append(
                    {
                        "title": f"Reliability of R on {claim.environment}",
                        "columns": columns,
                        "rows": rows,
                        "note": "Reliability: the correlation of log R from two batches of the same policy, the round's"
                        " trend taken out here and beside. Noise: the deviation of log R between batches; 0.7 is a"
                        " factor of two. With all samples: the correlation with R from the whole of the same batch."
                        " With the next round: that with the R of one round later. A round is its update and its"
                        " slowest actor, on one core.",
                        "drawn": None,
                    }
                )
    return tables


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
    document = json.loads(path.read_text())
    where = [
        verdict["asked"]["environments"][0]
        for verdict in document["verdicts"]
        if verdict.get("asked", {}).get("kind") == "repeatable" and verdict["verdict"] == "does not hold"
    ]
    if not where:
        return ""
    most = [_reliability_of_most(document, environment) for environment in where]
    whole = ", and from all of its samples" if all(one is not None and one < _REPEATS for one in most) else ""
    return (
        f"Not testable at this price: on {' and '.join(where)} R is mostly sampling noise"
        f" within 5 % of a round{whole}."
    )


def _reliability_of_most(document: Mapping[str, Any], environment: str) -> float | None:
    """The upper bound of R's reliability from most samples."""
    for table in document.get("tables", []):
        if table["title"].endswith(f" on {environment}"):
            columns = table["columns"]
            row = max(table["rows"], key=lambda cells: cells[columns.index("samples")])
            return float(row[columns.index("to")])
    return None


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
