"""The curvature of a policy's objective at its current parameters: Nitro's ratio R of extreme Hessian eigenvalues.

One sign convention: λ are the eigenvalues of the Hessian of what is *maximised*. λ_max > 0 says how convex the
surface is in its most convex direction, λ_min < 0 how concave in its most concave one, and

    R = −λ_max / λ_min                                         (Nitro, equation 2)

It is measured on a bounded part of the samples that the update has just learned from; none are sampled for it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from training.base_model import FrozenModel, setting
from training.engine.torch_loading import import_torch
from training.rl.figures import CurvatureReport
from training.rl.networks import Network, Parameters
from training.rl.spaces import Spaces
from training.rl.surfaces.lanczos import spectrum_ends
from training.rl.surfaces.surface import SurfacePoint, surface_of
from training.rl.surfaces.update_samples import LossWeights, ObjectiveKind, UpdateSamples

RATIO_LIMIT = 1e6
_FLAT = 1e-8
_STANDARDISED_FLOOR = 1e-8


class CurvatureSpec(FrozenModel):
    """What is measured, and how much work it may take."""

    kind: Literal["curvature"] = "curvature"
    objective: ObjectiveKind | Literal["total_loss"] = setting(
        "surrogate",
        "Curvature of",
        "Surrogate: the clipped ratio that PPO climbs. Policy gradient: E[A log π]. Total loss: the critic's"
        " and the entropy's too, over all parameters, as Nitro's released code has it.",
        advanced=True,
    )
    samples: int = setting(
        256,
        "Samples for the curvature",
        "At most so many of a round's own samples.",
        ge=16,
        le=65_536,
        advanced=True,
    )
    products: int = setting(20, "Hessian products", "At most so many a round.", ge=2, le=200, advanced=True)
    tolerance: float = setting(
        0.005,
        "Tolerance of the eigenvalues",
        "No more products once both are known this well.",
        gt=0,
        le=0.5,
        advanced=True,
    )


def measure_curvature(
    spec: CurvatureSpec,
    network: Network,
    spaces: Spaces,
    parameters: Parameters,
    update_samples: UpdateSamples,
    *,
    clip: float | None,
    weights: LossWeights,
    seed: int,
) -> CurvatureReport:
    """Return the eigenvalues and R at `parameters`. An unknown value is None, and `note` gives the reason."""
    rng = np.random.Generator(np.random.PCG64(seed))
    if update_samples.size > spec.samples:
        update_samples = update_samples.select(
            np.sort(rng.choice(update_samples.size, spec.samples, replace=False))
        )
    surface: SurfacePoint
    if spec.objective == "total_loss":
        import_torch()
        from training.rl.surfaces.loss_surface import LossSurface  # torch

        # Nitro's released code takes advantages as they are, beside a critic whose errors are in the same units.
        surface = LossSurface(network, spaces, parameters, update_samples, clip, weights)
    else:
        update_samples = standardise(update_samples)
        surface = surface_of(network, spaces, parameters, update_samples, objective=spec.objective, clip=clip)
    ends = spectrum_ends(
        surface.product, surface.size, seed=seed, most_products=spec.products, tolerance=spec.tolerance
    )
    value, note = ratio(ends.largest, ends.smallest)
    finite = math.isfinite(ends.largest) and math.isfinite(ends.smallest)
    return CurvatureReport(
        largest=ends.largest if finite else None,
        smallest=ends.smallest if finite else None,
        ratio=value,
        note=note,
        error=ends.error if math.isfinite(ends.error) else None,
        products=ends.products,
        samples=update_samples.size,
    )


def ratio(largest: float, smallest: float) -> tuple[float | None, str]:
    """Return R. Where equation 2 is not defined, return the value used instead and the reason."""
    if not (math.isfinite(largest) and math.isfinite(smallest)):
        return None, "the eigenvalues are not finite numbers"
    magnitude = max(abs(largest), abs(smallest))
    if magnitude < _FLAT:
        return None, "the surface is flat: both eigenvalues are 0"
    if largest <= 0.0:
        return 0.0, "concave in every direction: R is 0"
    if smallest >= -_FLAT * magnitude:
        return RATIO_LIMIT, f"convex in every direction: R is taken as {RATIO_LIMIT:,.0f}"
    value = -largest / smallest
    if value > RATIO_LIMIT:
        return RATIO_LIMIT, f"hardly concave anywhere: R is taken as {RATIO_LIMIT:,.0f}"
    return value, ""


def standardise(update_samples: UpdateSamples) -> UpdateSamples:
    """Return the advantages with mean 0 and deviation 1, as the surrogate uses them. Their scale does not change R."""
    advantages = update_samples.advantages
    centred = advantages - advantages.mean()
    scaled = (centred / (advantages.std() + _STANDARDISED_FLOOR)).astype(np.float32)
    return replace(update_samples, advantages=scaled)
