"""The objective of a policy as a surface over its parameters, on fixed samples.

Sign and scale are those of what is maximised: J(θ) = E[g], with g of each sample either

    PPO's clipped ratio   min(r A, clip(r, 1−ε, 1+ε) A),   r = π_θ(a|s) / π_behaviour(a|s)
    the policy gradient   A log π_θ(a|s)                   (Theorem 1 of the Nitro paper)

Only parameters that the policy depends on are moved: its layers, a shared trunk, a free deviation. Vectors hold these
parameters one after the other, in the order of the learner's state.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from training.engine.torch_loading import import_torch
from training.rl.networks import Floats, Network, Parameters
from training.rl.spaces import Spaces
from training.rl.surfaces.dense_surface import DenseSurface
from training.rl.surfaces.update_samples import ObjectiveKind, UpdateSamples


class SurfacePoint(Protocol):
    """One point θ of the surface, on given samples."""

    size: int

    def gradient(self) -> Floats:
        """Return ∇J(θ)."""

    def product(self, vector: npt.NDArray[np.float64]) -> Floats:
        """Return ∇²J(θ) · vector."""


def surface_of(
    network: Network,
    spaces: Spaces,
    parameters: Parameters,
    update_samples: UpdateSamples,
    *,
    objective: ObjectiveKind,
    clip: float | None,
) -> SurfacePoint:
    """Return the surface: in closed form for MLPs, by torch for all others. Without `clip` the ratio is not clipped."""
    if network.has_closed_form:
        return DenseSurface(network, spaces, parameters, update_samples, objective, clip)
    import_torch()
    from training.rl.surfaces.tensor_surface import TensorSurface  # torch

    return TensorSurface(network, spaces, parameters, update_samples, objective, clip)
