"""What a boosted round does to its update: KL, gradient norm and gain beside rounds with the fewest actors.

Of Nitro's stored runs. Each boosted round is compared with the floor rounds next to it, as all of these change as
training goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from research.calculation import Calculation, ResultTable, Statement
from research.reports.judging import ENOUGH_SEEDS
from research.runs.archive import cells_in, find_run
from research.statistics import holm, student_tails
from training.statistics.few_seeds import Interval, student_t
from webapp.comparing.papers.figures import RESULTS

_EXPERIMENTS = {
    "nitro_rewards_fast": "first recipe, 3e-4",
    "nitro_endpoint": "the papers', 5e-5",
    "nitro_endpoint_fast": "the papers', 3e-4",
}
_FLOOR = 8
_NEAR = 3
_LEAST_SEEDS = 3
_SIGNIFICANT = 0.05
Row = dict[str, Any]


def _log(key: str) -> Callable[[Sequence[Row], int], float | None]:
    def read(rows: Sequence[Row], place: int) -> float | None:
        value = rows[place]["update"][key]
        return math.log(value) if value and value > 0 else None

    return read


def _gain(rows: Sequence[Row], place: int) -> float | None:
    """What the next round's episodes return more."""
    if place + 1 == len(rows):
        return None
    before, after = (rows[i]["episode_return_mean"] for i in (place, place + 1))
    return None if before is None or after is None else after - before


_FIGURES: dict[str, Callable[[Sequence[Row], int], float | None]] = {
    "KL, ratio": _log("approximate_kl"),
    "gradient norm, ratio": _log("gradient_norm"),
    "gain of the next round": _gain,
}


_CLAIMS = {
    "KL, ratio": "a boosted round's KL differs from",
    "gain of the next round": "what the round after a boost gains differs from",
}


def seed_difference(rows: Sequence[Row], read: Callable[[Sequence[Row], int], float | None]) -> float | None:
    """The mean over boosted rounds of what they differ by from floor rounds at most three rounds away."""
    gaps = []
    for place, row in enumerate(rows):
        near = range(max(0, place - _NEAR), min(len(rows), place + _NEAR + 1))
        floors = [one for i in near if rows[i]["actors"] <= _FLOOR and (one := read(rows, i)) is not None]
        own = read(rows, place)
        if row["actors"] > _FLOOR and own is not None and floors:
            gaps.append(own - float(np.mean(floors)))
    return float(np.mean(gaps)) if gaps else None


class BoostedFinding(NamedTuple):
    """What boosted rounds of one task differ by: a mean over seeds with Student's interval, and its p value."""

    recipe: str
    environment: str
    what: str
    seeds: int
    interval: Interval
    p_value: float


def finding(recipe: str, environment: str, what: str, values: Sequence[float]) -> BoostedFinding:
    """Ratios are of logarithms."""
    mean, seeds = float(np.mean(values)), len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(seeds)
    half = student_t(0.95, seeds - 1) * error
    interval = Interval(mean, mean - half, mean + half)
    if "ratio" in what:
        interval = Interval(*map(math.exp, interval))
    return BoostedFinding(
        recipe, environment, what, seeds, interval, student_tails(abs(mean) / error, seeds - 1)
    )


def judged(found: Sequence[BoostedFinding]) -> list[Statement]:
    """What is said of each, among so many: p values are Holm's."""
    statements = []
    for difference, p_value in zip(found, holm([difference.p_value for difference in found]), strict=True):
        alone = difference.p_value <= _SIGNIFICANT and difference.seeds >= ENOUGH_SEEDS
        holds = alone and p_value <= _SIGNIFICANT
        kind = "ratio" if "ratio" in difference.what else "difference"
        value, low, high = (f"{number:.2f}".replace("-", "−") for number in difference.interval)
        reason = f"The {kind} is {value} [{low}, {high}]."
        if alone and not holds:
            reason += f" Alone it would hold; among {len(found)} claims its p value is {p_value:.2g}."
        statements.append(
            Statement(
                f"On {difference.environment} ({difference.recipe}) {_CLAIMS[difference.what]} that of floor rounds.",
                "holds" if holds else f"not decided by {difference.seeds} seeds",
                reason,
                "learned",
            )
        )
    return statements


def _runs(name: str) -> Iterator[tuple[str, list[Row]]]:
    path = RESULTS / f"{name}.runs"
    for cell in cells_in(path):
        run = find_run(path, cell) if cell.arm == "nitro" else None
        if run is not None:
            yield cell.environment, [row for row in run.rows if row["kind"] == "round"]


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    found = []
    for name, recipe in _EXPERIMENTS.items():
        runs = list(_runs(name))
        for environment in sorted({one for one, _ in runs}):
            for what, read in _FIGURES.items():
                values = [seed_difference(rows, read) for one, rows in runs if one == environment]
                known = [value for value in values if value is not None]
                if len(known) >= _LEAST_SEEDS:
                    found.append(finding(recipe, environment, what, known))
    columns = ("recipe", "environment", "what", "seeds", "boosted against floor", "95 % from", "to")
    rows = tuple((one.recipe, one.environment, one.what, float(one.seeds), *one.interval) for one in found)
    note = (
        "Floor rounds have 8 actors; compared are those at most three rounds away. Student's interval over seeds, of"
        " each row as if it were the only one."
    )
    table = ResultTable("A boosted round beside its neighbours", columns, rows, note)
    return [table] if rows else [], judged([difference for difference in found if difference.what in _CLAIMS])


CALCULATION = Calculation(
    title="What boosting does to an update",
    question="Do a boosted round's KL and gain differ from those of a round with the fewest actors?",
    oracle="A boosted round and its neighbours share policy and recipe; more samples alone cannot raise the KL.",
    can_claim="Associations within Nitro's own runs; branching forks tell causes.",
    compute=compute,
)
