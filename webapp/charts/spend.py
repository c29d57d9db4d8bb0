"""What the job has cost so far, over the platform's time (virtual on a simulated cloud)."""

from collections.abc import Sequence
from typing import Any

from webapp.charts.rows import EvaluationRow, RoundRow

NAME = "spend"


def series(rounds: Sequence[RoundRow], evaluations: Sequence[EvaluationRow]) -> dict[str, Any]:
    return {"x": [row.platform_s for row in rounds], "spent_usd": [row.spent_usd for row in rounds]}
