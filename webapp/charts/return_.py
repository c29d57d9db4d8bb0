"""Reward: what the policy earned while exploring, and what it earns when evaluated."""

from collections.abc import Sequence
from typing import Any

from webapp.charts.rows import EvaluationRow, RoundRow

NAME = "return"


def series(rounds: Sequence[RoundRow], evaluations: Sequence[EvaluationRow]) -> dict[str, Any]:
    return {
        "x": [row.total_env_steps for row in rounds],
        "episode_return_mean": [row.episode_return_mean for row in rounds],
        "evaluation": {
            "x": [row.total_env_steps for row in evaluations],
            "y": [row.return_mean for row in evaluations],
        },
    }
