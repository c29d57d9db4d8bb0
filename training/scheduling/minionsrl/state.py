"""The scheduler's state before each round.

    s_k = (k, L_{k−1}, R̄_{k−1}, KL(π_k ‖ π_{k−1}), P^l_{k−1}, P̄^a_{k−1}, P_{k−1}, b_k)

with L the learner's loss, R̄ the mean return of the round's episodes, P^l, P̄^a and P the seconds of the learner, of
an actor on average and of the whole round, and b the remaining budget. As printed in the paper these are plain
numbers: thousands beside hundredths, into a tanh network. `normalised` brings each near 1 by scales that are known
before the first round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from training.base_model import FrozenModel
from training.engine.reports import RoundReport
from training.rl.figures import LearningFigures
from training.scheduling.decisions import PICODOLLARS

STATE_SIZE = 8
_MOST = 1e9
StateKind = Literal["printed", "normalised"]


class MinionsScales(FrozenModel):
    """The scales of a normalised state: the target return, and the rounds that a training usually takes."""

    target_return: float
    rounds: int


def state_of(
    history: Sequence[RoundReport], kind: StateKind, scales: MinionsScales
) -> npt.NDArray[np.float32]:
    """Return the state after the last round of `history`; before the first round all measurements are 0."""
    if not history:
        budget = 1.0 if kind == "normalised" else 0.0
        return np.array([0.0] * (STATE_SIZE - 1) + [budget], dtype=np.float32)
    last = history[-1]
    seen = next((report.score for report in reversed(history) if report.score is not None), 0.0)
    figures = last.figures_of(LearningFigures)
    loss = figures.update.policy_loss + figures.update.value_loss
    moved = figures.policy_shift if figures.policy_shift is not None else figures.update.approximate_kl
    usage = last.usage
    actor_s = (usage.startup_s + usage.run_s + usage.transfer_s) / max(last.actors, 1)
    left_usd, left_share = _budget_left(last)
    numbers = [float(last.round_no), loss, seen, moved, last.update_s, actor_s, last.total_s, left_usd]
    if kind == "normalised":
        aim = max(abs(scales.target_return), 1e-9)
        numbers = [
            last.round_no / scales.rounds,
            math.copysign(math.log1p(abs(loss)), loss),
            seen / aim,
            math.sqrt(max(moved, 0.0)) * 10.0,
            math.log1p(last.update_s),
            math.log1p(actor_s),
            math.log1p(last.total_s),
            left_share,
        ]
    finite = np.nan_to_num(np.array(numbers), posinf=_MOST, neginf=-_MOST)
    state: npt.NDArray[np.float32] = np.clip(finite, -_MOST, _MOST).astype(np.float32)
    return state


def _budget_left(report: RoundReport) -> tuple[float, float]:
    """Return the remaining dollars, and the remaining share of the limit. A run without a ledger has 0 dollars and
    all of it.
    """
    spend = report.spend
    if spend is None or spend.limit_picodollars <= 0:
        return 0.0, 1.0
    left = max(0, spend.limit_picodollars - spend.spent_picodollars)
    return left / PICODOLLARS, left / spend.limit_picodollars
