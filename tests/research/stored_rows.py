"""What tests read of stored results: reports, runs and their rows, by nothing of `research.reports`."""

from __future__ import annotations

import json
from statistics import fmean
from typing import Any

from research.experiment import find_experiment
from research.runs.archive import cells_in, find_run
from research.runs.run_file import RESULTS


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def runs_of(name: str, arm: str, environment: str) -> dict[int, list[dict[str, Any]]]:
    """The rows of an arm by seed, from the experiment that runs it."""
    path = RESULTS / f"{find_experiment(name).arm(arm).home or name}.runs"
    found = {}
    for cell in cells_in(path):
        run = find_run(path, cell) if (cell.arm, cell.environment) == (arm, environment) else None
        if run is not None:
            found[cell.seed] = run.rows
    return found


def middle_mean(values: list[float]) -> float:
    """What is left of sorted values without a quarter, rounded down, at each end."""
    cut = len(values) // 4
    return fmean(sorted(values)[cut : len(values) - cut])


def final_return(rows: list[dict[str, Any]]) -> float:
    (final,) = [row for row in rows if row["kind"] == "final"]
    return fmean(final["returns"])
