"""From rows to figures: the outcome of each run, and each arm in each environment over its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from research.claims import Meter
from research.experiment import Cell, Experiment
from research.reports.judging import ENOUGH_SEEDS
from research.runs.recipe_match import has_other_recipe
from research.runs.run_file import Row, run_file
from research.statistics import area_under, median_time, paired_bootstrap, penalised_mean_time
from training.statistics.few_seeds import Interval, bootstrap, time_to_threshold

_LAST_EPISODES = 100
_CURVE_POINTS = 60
_MOST_SEEDS = 0.8


@dataclass(frozen=True)
class RunOutcome:
    """One run as far as it came. `endpoint` is None until its final evaluation is done."""

    cell: Cell
    rows: list[Row]

    @property
    def complete(self) -> bool:
        return bool(self.rows) and self.rows[-1]["kind"] == "end"

    @property
    def endpoint(self) -> float | None:
        final = self._last("final")
        return float(np.mean(final["returns"])) if final is not None else None

    @property
    def evaluated(self) -> tuple[list[int], list[float]]:
        """Rounds that were evaluated, and their mean returns."""
        evaluations = self.of("evaluation")
        return [row["round"] for row in evaluations], [row["return_mean"] for row in evaluations]

    @property
    def trained(self) -> tuple[list[int], list[float]]:
        """Rounds in which training episodes ended, and their mean returns."""
        ended = [row for row in self.of("round") if row.get("episodes")]
        return [row["round"] for row in ended], [row["episode_return_mean"] for row in ended]

    def metered(self, meter: Meter) -> tuple[list[int], list[float]]:
        """Rounds, and the returns that the meter reads there."""
        return self.trained if meter == "training" else self.evaluated

    def metered_every(self, meter: Meter, steps: int) -> tuple[list[int], list[float]]:
        """The same at equal distances in environment steps: the mean of what was read in each stretch of `steps`, and
        the last round that was read in it. Arms with few steps a round are read no more often than others.
        """
        kind, count = ("round", "episodes") if meter == "training" else ("evaluation", "returns")
        name = "episode_return_mean" if meter == "training" else "return_mean"
        stretches: dict[int, list[Row]] = {}
        for row in self.of(kind):
            if row.get(count):
                stretches.setdefault(-(-int(row["env_steps"]) // steps), []).append(row)
        means = []
        for rows in stretches.values():
            weights = [row[count] if meter == "training" else len(row[count]) for row in rows]
            means.append(float(np.average([row[name] for row in rows], weights=weights)))
        return [rows[-1]["round"] for rows in stretches.values()], means

    @property
    def round_steps(self) -> int:
        """Environment steps of the largest round."""
        taken = [0, *(int(row["env_steps"]) for row in self.of("round"))]
        return max((after - before for before, after in pairwise(taken)), default=0)

    @property
    def made_with(self) -> dict[str, str]:
        return dict(self.rows[0]["made_with"]) if self.rows else {}

    @property
    def env_steps(self) -> int:
        """All that were taken, also where only every so many rounds are stored."""
        return max((int(row["env_steps"]) for row in self.rows if row.get("env_steps")), default=0)

    @property
    def wall_s(self) -> float:
        return float(max((row["wall_s"] for row in self.rows if "wall_s" in row), default=0.0))

    @property
    def cost_usd(self) -> float:
        return float(max((row["cost_usd"] for row in self.rows if "cost_usd" in row), default=0.0))

    @property
    def resumed(self) -> int:
        return len(self.of("resumed"))

    @property
    def training_return(self) -> float | None:
        """The mean return of about the last 100 episodes while training (whole rounds of them); None where only every
        so many rounds are stored.
        """
        total, episodes = 0.0, 0
        rounds = self.of("round")
        numbers = [0, *(row["round"] for row in rounds)]
        if any(after - before > 1 for before, after in pairwise(numbers)):
            return None
        for row in reversed(rounds):
            if row["episodes"]:
                total += row["episodes"] * row["episode_return_mean"]
                episodes += row["episodes"]
            if episodes >= _LAST_EPISODES:
                break
        return total / episodes if episodes else None

    def curve(self) -> tuple[list[float], list[float]]:
        """Evaluations: environment steps, and their mean returns."""
        evaluations = self.of("evaluation")
        return [row["env_steps"] for row in evaluations], [row["return_mean"] for row in evaluations]

    def dollars_curve(self) -> tuple[list[float], list[float]]:
        """Evaluations again, against what had been spent by their round."""
        spent = {row["round"]: row.get("cost_usd", 0.0) for row in self.of("round")}
        evaluations = [row for row in self.of("evaluation") if row["round"] in spent]
        return [spent[row["round"]] for row in evaluations], [row["return_mean"] for row in evaluations]

    def of(self, kind: str) -> list[Row]:
        return [row for row in self.rows if row["kind"] == kind]

    def _last(self, kind: str) -> Row | None:
        return next((row for row in reversed(self.rows) if row["kind"] == kind), None)


@dataclass(frozen=True)
class Summary:
    """One arm in one environment."""

    arm: str
    environment: str
    planned: int
    outcomes: tuple[RunOutcome, ...]

    @property
    def done(self) -> list[RunOutcome]:
        return [outcome for outcome in self.outcomes if outcome.complete]

    @property
    def endpoints(self) -> dict[int, float]:
        """The endpoint of each seed that is complete."""
        return {outcome.cell.seed: outcome.endpoint for outcome in self.done if outcome.endpoint is not None}

    @property
    def fell(self) -> tuple[float, float] | None:
        """The means of the first evaluations and of the endpoints, where these are lower in four seeds of five."""
        pairs = [
            (returns[0], outcome.endpoint)
            for outcome in self.done
            if outcome.endpoint is not None and (returns := outcome.evaluated[1])
        ]
        if not pairs or sum(last < first for first, last in pairs) < _MOST_SEEDS * len(pairs):
            return None
        first, last = np.mean(pairs, axis=0)
        return float(first), float(last)

    @property
    def interval(self) -> Interval | None:
        """IQM of the endpoint and its 95 % interval; None without a complete run."""
        return bootstrap(list(self.endpoints.values())) if self.endpoints else None

    def common_curve(self) -> tuple[list[float], list[list[float]]] | None:
        """Evaluated returns of all complete seeds at the same steps: the steps, and a list for each seed."""
        curves = [curve for outcome in self.done if (curve := outcome.curve())[0]]
        if not curves:
            return None
        begin, end = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
        grid = np.linspace(begin, end, min(_CURVE_POINTS, max(len(x) for x, _ in curves)))
        lines = [[round(float(y), 1) for y in np.interp(grid, x, y)] for x, y in curves]
        return [round(float(x), 1) for x in grid], lines

    def as_dict(self, threshold: float | None) -> dict[str, Any]:
        """Everything about it that is published. Times count environment steps, so they mean the same anywhere."""
        interval = self.interval
        result: dict[str, Any] = {
            "arm": self.arm,
            "environment": self.environment,
            "seeds_planned": self.planned,
            "seeds_complete": len(self.done),
            "endpoint_by_seed": {str(seed): value for seed, value in self.endpoints.items()},
            "iqm": interval._asdict() if interval is not None else None,
            "training_return_by_seed": {str(one.cell.seed): one.training_return for one in self.done},
            "wall_s_by_seed": {str(outcome.cell.seed): outcome.wall_s for outcome in self.done},
            "cost_usd_by_seed": {str(outcome.cell.seed): outcome.cost_usd for outcome in self.done},
            "resumed": sum(outcome.resumed for outcome in self.outcomes),
            "area_under_steps": _areas([(outcome.curve(), outcome.env_steps) for outcome in self.done]),
            "area_under_dollars": _areas([(one.dollars_curve(), one.cost_usd) for one in self.done]),
        }
        if threshold is not None:
            times = [time_to_threshold(*one.curve(), threshold) for one in self.done if one.curve()[0]]
            result["to_threshold"] = {
                "threshold": threshold,
                "reached": sum(time.observed for time in times),
                "of": len(times),
                "kaplan_meier_median_steps": median_time(times),
                "par2_steps": penalised_mean_time(times) if times else None,
            }
        return result


def _areas(curves: Sequence[tuple[tuple[list[float], list[float]], float]]) -> list[float]:
    return [area_under(x, y, until) for (x, y), until in curves if x and until > 0]


def read_summaries(experiment: Experiment, folder: Path, *, quick: bool) -> list[Summary]:
    """Every arm in every environment, in declared order, with whatever is there of its runs by today's recipe."""

    def rows(cell: Cell) -> list[Row]:
        found = run_file(experiment, folder, cell).rows()
        return [] if has_other_recipe(experiment, cell, found, quick=quick) else found

    cells: dict[tuple[str, str], list[Cell]] = {}
    for cell in experiment.cells(quick=quick):
        cells.setdefault((cell.environment, cell.arm), []).append(cell)
    return [
        Summary(
            arm,
            environment,
            len(group),
            tuple(RunOutcome(cell, rows(cell)) for cell in group),
        )
        for (environment, arm), group in cells.items()
    ]


def training_sentence(arms: Sequence[str], environments: Sequence[str], summaries: Sequence[Summary]) -> str:
    """Say where episodes of training tell two arms apart and final evaluations do not, or say the opposite, and what
    they say where an evaluation has no return that ratios could be of. Training acts as a policy is drawn, evaluations
    by its mean, and a policy may be better by the one alone.
    """
    by_arm = {(summary.arm, summary.environment): summary.done for summary in summaries}
    said = []
    for name in environments:
        sides = [{outcome.cell.seed: outcome for outcome in by_arm.get((arm, name), ())} for arm in arms]
        seeds = sorted(set.intersection(*(set(side) for side in sides)))
        trained, ended = (
            [[getattr(side[seed], figure) for seed in seeds] for side in sides]
            for figure in ("training_return", "endpoint")
        )
        if len(seeds) < ENOUGH_SEEDS or not _above_0(trained):
            continue
        by_training = paired_bootstrap(*trained)
        if not _above_0(ended) or _side(by_training) not in (0, _side(paired_bootstrap(*ended))):
            said.append(
                f"By the last {_LAST_EPISODES} episodes of training on {name} the ratio is {by_training.value:.2f}"
                f" [{by_training.low:.2f}, {by_training.high:.2f}]."
            )
    return " ".join(said)


def _above_0(sides: Sequence[Sequence[float | None]]) -> bool:
    return all(score is not None and score > 0 for side in sides for score in side)


def _side(interval: Interval) -> int:
    """1 where a ratio is above 1, -1 where it is below, 0 where that is not decided."""
    return int(interval.low > 1.0) - int(interval.high < 1.0)


def decline_sentence(arms: Sequence[str], environments: Sequence[str], summaries: Sequence[Summary]) -> str:
    """Say where the returns of both arms fell while they trained: there the higher end is no better learned. Empty
    where they did not.
    """
    by_arm = {(summary.arm, summary.environment): summary for summary in summaries}
    said = []
    for name in environments:
        fell = [by_arm[arm, name].fell for arm in arms if (arm, name) in by_arm]
        if len(fell) == len(arms) and all(fell):
            readings = " and ".join(f"from {one[0]:,.0f} to {one[1]:,.0f}" for one in fell if one)
            said.append(
                f"On {name} the evaluated returns of both fell while they trained, {readings}: to end higher there is"
                " not to have learned more."
            )
    return " ".join(said)
