"""Advantages and returns from rewards and values. All arrays are [time, environment]."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]
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
    """Return GAE(λ), Schulman et al. 2016.

        δ_t = r_t + γ V(s_{t+1}) [not terminated] − V(s_t);  A_t = δ_t + γ λ A_{t+1} [episode goes on]

    `next_values` holds the value of the state that really followed, also where a time limit cut the episode off; only
    a true termination has no future. No value crosses the end of an episode.
    """
    deltas = rewards + discount * next_values * ~terminated - values
    return _accumulated(deltas, discount * trace_decay * ~ended)


def vtrace(
    ratios: Floats,
    rewards: Floats,
    values: Floats,
    next_values: Floats,
    terminated: Flags,
    ended: Flags,
    discount: float,
    trace_decay: float = 1.0,
    rho_limit: float = 1.0,
    c_limit: float = 1.0,
    truncated: Floats | None = None,
    advantage_decay: float = 1.0,
) -> tuple[Floats, Floats]:
    """Return V-trace targets and policy-gradient advantages, Espeholt et al. 2018, for ratios π/μ.

        ρ_t = min(ρ̄, π/μ), c_t = λ min(c̄, π/μ), δ_t = ρ_t (r_t + γ V(s_{t+1}) − V(s_t))
        v_t = V(s_t) + δ_t + γ c_t (v_{t+1} − V(s_{t+1}))
        advantage_t = ρ_t (r_t + γ (κ v_{t+1} + (1 − κ) V(s_{t+1})) − V(s_t))

    On-policy and with λ = 1 the targets are n-step returns; with any λ they are those of GAE. So are the advantages
    where κ, the `advantage_decay`, is λ; the paper, which has no λ here, has κ = 1. `truncated` are ratios that limit
    each ρ_t further (`training.rl.truncation`).
    """
    rho = np.minimum(ratios, rho_limit)
    if truncated is not None:
        rho = np.minimum(rho, truncated)
    c = trace_decay * np.minimum(ratios, c_limit)
    deltas = rho * (rewards + discount * next_values * ~terminated - values)
    excess = _accumulated(deltas, discount * c * ~ended)
    targets = values + excess
    # v of the state that really followed: the next target inside an episode, the critic's value where it was cut off.
    following = next_values.copy()
    later = advantage_decay * targets[1:] + (1.0 - advantage_decay) * next_values[:-1]
    following[:-1] = np.where(ended[:-1], next_values[:-1], later)
    advantages = rho * (rewards + discount * following * ~terminated - values)
    return targets, advantages


def _accumulated(deltas: Floats, carry: Floats) -> Floats:
    """Return x_t = δ_t + carry_t x_{t+1}, from the last step backwards."""
    result = np.empty_like(deltas)
    running = np.zeros(deltas.shape[1:], dtype=deltas.dtype)
    for t in range(len(deltas) - 1, -1, -1):
        running = deltas[t] + carry[t] * running
        result[t] = running
    return result
