"""The agent's state before each epoch.

    s_t = (t, ℓ_t, P_t, P^F_t, P^C_t, P^U_t, u_t, w_t, b_t)

with ℓ the loss, P the seconds of the epoch, P^F, P^C and P^U those of a function on average for fetching its data,
computing and handing over its result, u and w how much of its memory and of a core a function used, and b what is left
of the limit: dollars of a budget, or seconds to a deadline. As printed on the slides these are plain numbers.
`normalised` brings each near 1 by scales that are known before the first epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from training.base_model import FrozenModel
from training.engine.reports import RoundReport
from training.scheduling.decisions import PICODOLLARS

STATE_SIZE = 9
_MOST = 1e9
_LEAST_LOSS = 1e-9
StateKind = Literal["printed", "normalised"]
Objective = Literal["time", "cost"]
Numbers = npt.NDArray[np.float64]


class SirenScales(FrozenModel):
    """What normalises a state: the target, the epochs that a training usually takes, and a deadline."""

    target_loss: float
    rounds: int
    deadline_s: float | None = None


class Measured(NamedTuple):
    """Epochs as numbers, or as arrays of one shape. `left_share` is the share of the limit that is left."""

    round_no: Numbers | float
    loss: Numbers | float
    total_s: Numbers | float
    fetch_s: Numbers | float
    compute_s: Numbers | float
    push_s: Numbers | float
    memory_share: Numbers | float
    cores: Numbers | float
    left: Numbers | float
    left_share: Numbers | float


def states_of(measured: Measured, kind: StateKind, scales: SirenScales) -> npt.NDArray[np.float32]:
    """Return the states after these epochs, along a last axis."""
    m = measured
    if kind == "printed":
        numbers = [*m[:-2], m.left]
    else:
        aim = max(scales.target_loss, _LEAST_LOSS)
        numbers = [
            m.round_no / scales.rounds,
            np.log(np.maximum(m.loss, _LEAST_LOSS) / aim),
            *(np.log10(1.0 + np.maximum(seconds, 0.0)) for seconds in m[2:6]),
            m.memory_share,
            m.cores,
            m.left_share,
        ]
    finite = np.nan_to_num(np.stack(np.broadcast_arrays(*numbers), axis=-1), posinf=_MOST, neginf=-_MOST)
    states: npt.NDArray[np.float32] = np.clip(finite, -_MOST, _MOST).astype(np.float32)
    return states


def first_state(kind: StateKind) -> npt.NDArray[np.float32]:
    """Return the state before the first epoch: nothing was measured yet, and all is left."""
    left = 1.0 if kind == "normalised" else 0.0
    return np.array([0.0] * (STATE_SIZE - 1) + [left], dtype=np.float32)


def state_of(history: Sequence[RoundReport], kind: StateKind, scales: SirenScales) -> npt.NDArray[np.float32]:
    """Return the state after the last epoch of `history`."""
    if not history:
        return first_state(kind)
    last, usage, actors = history[-1], history[-1].usage, max(history[-1].actors, 1)
    loss = next((report.score for report in reversed(history) if report.score is not None), 0.0)
    left, left_share = _left(last, scales)
    measured_s = usage.fetch_s + usage.compute_s + usage.push_s
    measured = Measured(
        float(last.round_no),
        loss,
        last.total_s,
        usage.fetch_s / actors,
        usage.compute_s / actors,
        usage.push_s / actors,
        usage.most_memory_mb / max(last.memory_mb or usage.memory_mb, 1),
        usage.processor_s / measured_s if measured_s > 0 else 0.0,
        left,
        left_share,
    )
    return states_of(measured, kind, scales)


def _left(report: RoundReport, scales: SirenScales) -> tuple[float, float]:
    """Return what is left of the limit, and its share. Without a limit nothing is counted and all is left."""
    if scales.deadline_s is not None:
        left_s = scales.deadline_s - report.started_s - report.total_s
        return left_s, left_s / scales.deadline_s
    spend = report.spend
    if spend is None or spend.limit_picodollars <= 0:
        return 0.0, 1.0
    left = spend.limit_picodollars - spend.spent_picodollars
    return left / PICODOLLARS, left / spend.limit_picodollars
