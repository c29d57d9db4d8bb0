"""The figures of a round under the names that other tools know: those of TensorBoard files, MLflow and W&B."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webapp.jobs.charts.figures import LINES, USD, spent_usd

EVALUATION = "eval/mean_reward"
SPENT = "cost/spent_usd"
SCORE = LINES["return"].tag
TAGS = {
    "train/policy_gradient_loss": ("update", "policy_loss"),
    "train/learning_rate": ("update", "learning_rate"),
    "time/collect_s": ("collect_s",),
    "time/update_s": ("update_s",),
    "time/round_s": ("total_s",),
    "functions/cold_starts": ("cold_starts",),
    "functions/failed_calls": ("failed_calls",),
}
"""Tags beside those of the page's charts: the figure's path in a round's report."""


def scalars_of(report: Mapping[str, Any], cost_so_far: int) -> Iterator[tuple[str, float]]:
    """The known figures of a round. `cost_so_far`, in picodollars, is used where the report has no spend."""
    scalars = [(line.tag, line.read(report)) for line in LINES.values()]
    scalars += [(tag, _at(report, path)) for tag, path in TAGS.items()]
    yield from ((tag, float(value)) for tag, value in scalars if value is not None and math.isfinite(value))
    spent = spent_usd(report)
    yield SPENT, cost_so_far / USD if spent is None else spent
    yield "rollout/round", float(report["round_no"])


def _at(report: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = report
    for part in path:
        value = value.get(part) if value is not None else None
    return value
