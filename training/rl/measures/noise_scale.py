"""The gradient noise scale (McCandlish et al. 2018), estimated as in KungFu from the gradients of a round's workers.

With g_b the gradient of one actor's b samples and g_B that of all B:

    |G|² ≈ (B |g_B|² − b |g_b|²) / (B − b)        S ≈ (|g_b|² − |g_B|²) / (1/b − 1/B)        noise scale = S / |G|²

|g_b|² is the mean over all actors, where KungFu takes one.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from training.base_model import FrozenModel
from training.rl.figures import NoiseScaleReport
from training.rl.measures.curvature import standardise
from training.rl.networks import Network, Parameters
from training.rl.spaces import Spaces
from training.rl.surfaces.surface import surface_of
from training.rl.surfaces.update_samples import UpdateSamples


class NoiseScaleSpec(FrozenModel):
    """Measured with the gradient of the policy's own objective, before the update moves it."""

    kind: Literal["noise_scale"] = "noise_scale"


def measure_noise_scale(
    network: Network,
    spaces: Spaces,
    parameters: Parameters,
    update_samples: UpdateSamples,
    slices: int,
    *,
    clip: float | None,
) -> NoiseScaleReport:
    """Return the noise scale of the samples of `slices` actors, each of which has the same number of columns."""
    if slices < 2 or update_samples.columns % slices:
        note = (
            "one actor alone says nothing of noise" if slices < 2 else "samples that no actor has for itself"
        )
        return NoiseScaleReport(scale=None, note=note, slices=slices)
    update_samples = standardise(update_samples)
    gradients = []
    places = np.arange(update_samples.size).reshape(-1, slices, update_samples.columns // slices)
    for i in range(slices):
        own = update_samples.select(places[:, i].ravel())
        surface = surface_of(network, spaces, parameters, own, objective="surrogate", clip=clip)
        gradients.append(surface.gradient().astype(np.float64))
    small = float(np.mean([gradient @ gradient for gradient in gradients]))
    whole = np.mean(gradients, axis=0)
    value, note = noise_scale(small, float(whole @ whole), update_samples.size // slices, update_samples.size)
    return NoiseScaleReport(scale=value, note=note, slices=slices)


def noise_scale(small: float, large: float, b: int, total: int) -> tuple[float | None, str]:
    """Return S / |G|² from the squared norms of gradients of `b` and of `total` samples; None with a note if
    undefined.
    """
    if b >= total:
        return None, "one actor alone says nothing of noise"
    signal = (total * large - b * small) / (total - b)
    noise = (small - large) / (1.0 / b - 1.0 / total)
    if not np.isfinite(signal) or not np.isfinite(noise):
        return None, "the gradients are not finite numbers"
    if signal <= 0.0:
        return None, "the gradients are nothing but noise: the scale is undefined"
    return max(0.0, noise / signal), ""
