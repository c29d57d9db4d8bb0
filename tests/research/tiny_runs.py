"""Real, tiny runs of an experiment with the scores that a test wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from research.experiment import Cell
from research.reports.outcomes import RunOutcome
from research.reports.run_cost import PricedRun
from research.runs.run_file import RunFile
from tests.research.tiny_experiment import CART


def run_of(folder: Path, arm: str, returns: list[float] | None = None) -> PricedRun:
    """A run of the fixture; with `returns`, as if its evaluations had scored so."""
    file = RunFile(folder, Cell(arm, CART, 0))
    found = file.rows()
    if returns is not None:
        scores = iter(returns)
        # As many steps in each round of either arm, so that both are read after every one.
        found = [{**row, "env_steps": 100 * row["round"]} if "env_steps" in row else row for row in found]
        found = [
            {**row, "return_mean": next(scores)} if row["kind"] == "evaluation" else row for row in found
        ]
    return PricedRun(RunOutcome(file.cell, found), file.segments)


def trained_run(folder: Path, returns: list[float | None]) -> PricedRun:
    """A run of the fixture as if its training episodes had returned so; None: no episode ended in that round."""
    file = RunFile(folder, Cell("few", CART, 0))
    scores = iter(returns)
    found: list[dict[str, Any]] = []
    for row in file.rows():
        if row["kind"] == "round":
            score = next(scores)
            row = {**row, "episodes": 0 if score is None else 4, "episode_return_mean": score}
            row["env_steps"] = 100 * row["round"]
        found.append(row)
    return PricedRun(RunOutcome(file.cell, found), file.segments)
