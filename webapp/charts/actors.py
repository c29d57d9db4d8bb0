"""How many functions each round used."""

from collections.abc import Sequence
from typing import Any

from webapp.charts.rows import EvaluationRow, RoundRow

NAME = "actors"


def series(rounds: Sequence[RoundRow], evaluations: Sequence[EvaluationRow]) -> dict[str, Any]:
    return {"x": [row.round_no for row in rounds], "actors": [row.actors for row in rounds]}
