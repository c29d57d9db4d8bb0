"""The charts of a job page, one file each: rows of rounds and evaluations in, columns of numbers out.

A new chart is a new file here and a line in CHARTS; the page's JavaScript adds points by the same names.
"""

from collections.abc import Sequence
from typing import Any

from webapp.charts import actors, return_, round_time, spend
from webapp.charts.rows import EvaluationRow, RoundRow

CHARTS = {chart.NAME: chart for chart in (return_, actors, spend, round_time)}


def all_series(rounds: Sequence[RoundRow], evaluations: Sequence[EvaluationRow]) -> dict[str, dict[str, Any]]:
    """Each chart's columns by the chart's name."""
    return {name: chart.series(rounds, evaluations) for name, chart in CHARTS.items()}
