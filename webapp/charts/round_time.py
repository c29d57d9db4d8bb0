"""Where a round's time goes: collecting, updating, and all of it."""

from collections.abc import Sequence
from typing import Any

from webapp.charts.rows import EvaluationRow, RoundRow

NAME = "round_time"


def series(rounds: Sequence[RoundRow], evaluations: Sequence[EvaluationRow]) -> dict[str, Any]:
    return {
        "x": [row.round_no for row in rounds],
        "collect_s": [row.collect_s for row in rounds],
        "update_s": [row.update_s for row in rounds],
        "total_s": [row.total_s for row in rounds],
    }
