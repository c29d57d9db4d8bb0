"""Advantages and returns from rewards and values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


def generalised_advantages(
    rewards: Floats,
    values: Floats,
    next_values: Floats,
    terminated: Flags,
    ended: Flags,
    discount: float,
    trace_decay: float,
) -> Floats:
    """GAE(λ), Schulman et al. 2016, for arrays of [time, environment].

    δ_t = r_t + γ V(s_{t+1}) [not terminated] − V(s_t);  A_t = δ_t + γ λ A_{t+1} [episode goes on]

    `next_values` holds the value of the state that really followed, also where the episode was cut off by a time
    limit; only a true termination has no future. Nothing leaks over the end of an episode.
    """
    deltas = rewards + discount * next_values * ~terminated - values
    carry = discount * trace_decay * ~ended
    advantages = np.empty_like(deltas)
    running = np.zeros(deltas.shape[1], dtype=deltas.dtype)
    for t in range(len(deltas) - 1, -1, -1):
        running = deltas[t] + carry[t] * running
        advantages[t] = running
    return advantages
