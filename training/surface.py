"""The objective of a policy as a surface over its parameters, on samples that stand still.

Sign and scale are those of what is maximised: J(θ) = E[g], with g of each sample either

    PPO's clipped ratio   min(r A, clip(r, 1−ε, 1+ε) A),   r = π_θ(a|s) / π_behaviour(a|s)
    the policy gradient   A log π_θ(a|s)                   (Theorem 1 of the Nitro paper)

Only what the policy depends on is moved: its layers, a shared trunk, a free deviation. Vectors hold these parameters
one after the other, in the order of the learner's state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from training.architectures import CNN, MLP
from training.environments.spaces import Spaces
from training.networks import Floats, Parameters

ObjectiveKind = Literal["surrogate", "policy_gradient"]


@dataclass(frozen=True)
class Evidence:
    """What an update learned from: [sample, …] each, observations as the network sees them.

    Samples that were laid flat from [time, environment] stand in rows of `columns` environments.
    """

    observations: npt.NDArray[Any]
    actions: npt.NDArray[Any]
    log_probs: Floats
    advantages: Floats
    columns: int = 1

    @property
    def size(self) -> int:
        return len(self.advantages)

    def some(self, chosen: npt.NDArray[np.int64] | slice) -> Evidence:
        return Evidence(
            self.observations[chosen], self.actions[chosen], self.log_probs[chosen], self.advantages[chosen]
        )


class Surface(Protocol):
    """One point θ of the surface, on some evidence."""

    size: int

    def gradient(self) -> Floats:
        """∇J(θ)."""

    def product(self, vector: npt.NDArray[np.float64]) -> Floats:
        """∇²J(θ) · vector."""


def policy_part(parameters: Parameters) -> Parameters:
    """The parameters that the policy depends on."""
    return {name: array for name, array in parameters.items() if not name.startswith("value.")}


def surface_of(
    network: MLP | CNN,
    spaces: Spaces,
    parameters: Parameters,
    evidence: Evidence,
    *,
    objective: ObjectiveKind,
    clip: float | None,
) -> Surface:
    """In closed form for MLPs; by torch for everything else. No `clip`: the ratio is free."""
    if isinstance(network, MLP):
        from training.dense_surface import DenseSurface

        return DenseSurface(network, spaces, parameters, evidence, objective, clip)
    from training.tensor_surface import TensorSurface

    return TensorSurface(network, spaces, parameters, evidence, objective, clip)


def slopes_of(
    log_probs: Floats, evidence: Evidence, objective: ObjectiveKind, clip: float | None
) -> tuple[Floats, Floats]:
    """First and second derivative of J by each sample's log π.

    As dr / d log π = r, both are r A of the clipped ratio, or nothing where the clipped side is the smaller one.
    """
    advantages = evidence.advantages
    share = np.float32(1.0 / len(advantages))
    if objective == "policy_gradient":
        return advantages * share, np.zeros_like(advantages)
    ratios = np.exp(np.clip(log_probs - evidence.log_probs, -20.0, 20.0))
    free = ratios * advantages
    if clip is not None:
        free = np.where(free <= ratios.clip(1.0 - clip, 1.0 + clip) * advantages, free, 0.0)
    free = free * share
    return free, free
