"""What a run says whose rounds were stored thinned, and what it leaves open."""

from __future__ import annotations

from typing import Any

import pytest

from research.experiment import Cell
from research.reports.outcomes import RunOutcome

CELL = Cell("a", "CartPole-v1", 0)


def rows_of(rounds: range) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {"kind": "round", "round": k, "env_steps": 100 * k, "episodes": 60, "episode_return_mean": float(k)}
        for k in rounds
    ]
    return [*made, {"kind": "end", "round": 25, "env_steps": 2500}]


@pytest.mark.parametrize(
    ("rounds", "trained"), [(range(1, 26), 24.5), (range(10, 26, 10), None), (range(20, 21), None)]
)
def test_returns_of_training_need_every_round(rounds: range, trained: float | None) -> None:
    """One stored round has no gap beside it, and is not all there was."""
    assert RunOutcome(CELL, rows_of(rounds)).training_return == trained


def test_steps_are_all_that_were_taken() -> None:
    """The last stored round is the 20th of 25."""
    assert RunOutcome(CELL, rows_of(range(10, 26, 10))).env_steps == 2500
