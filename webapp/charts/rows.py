"""What charts are drawn from: the few figures of a round or an evaluation that any chart shows."""

from typing import NamedTuple


class RoundRow(NamedTuple):
    round_no: int
    total_env_steps: int
    actors: int
    episode_return_mean: float | None
    platform_s: float
    """The platform's time at the end of the round."""
    collect_s: float
    update_s: float
    total_s: float
    spent_usd: float


class EvaluationRow(NamedTuple):
    round_no: int
    total_env_steps: int
    return_mean: float
