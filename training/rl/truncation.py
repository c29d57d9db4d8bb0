"""Global importance-sampling truncation (Stellaris, SC 2024): how much a sample counts while several learners learn.

With μ the policy that sampled and π_i the policies of all learners in flight, each sample's ratio is truncated to

    R' = min( min_i π_i / μ, ρ ),   ρ ≥ 1,   and the gradient is   E[ R' A ∇ log π ]

The paper's slides give R' and the gradient; that ρ is at least 1 is ours, because the paper's own bound has no meaning
below it. R' is a constant here, no function of the parameters, so a bad action that grew likelier keeps its push. The
released code and the literal derivative are options. The same code runs in numpy and in torch.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from training.base_model import FrozenModel, setting

Array = Any  # an array of numpy or of torch
Floats = npt.NDArray[Any]
TruncationRule = Literal["constant", "released", "differentiated", "mean_step", "off"]
_LOG_LIMIT = 20.0


class Truncation(FrozenModel):
    """How ratios are truncated, and ρ.

    `constant`: R' weighs each sample. `released`: as in the released code, min(π/μ, max(min_i π_i/μ, ρ)) over the
    other learners, inside PPO's surrogate. `differentiated`: R' itself inside the surrogate, with its derivative.
    `mean_step`: samples count as without truncation, and the mean of R' shortens the whole step. `off`: nothing.
    """

    rule: TruncationRule = "constant"
    limit: float = setting(1.0, "Ratio limit ρ", ge=1.0)

    @property
    def reads_policies(self) -> bool:
        """Whether it needs the policies of the other learners in flight."""
        return self.rule != "off"

    @property
    def weighs_samples(self) -> bool:
        """Whether it changes what single samples count."""
        return self.rule not in ("mean_step", "off")

    @property
    def is_inside_surrogate(self) -> bool:
        """Whether it changes PPO's surrogate itself, so that only PPO can have it."""
        return self.rule in ("released", "differentiated")


class Truncating(NamedTuple):
    """A truncation at work on a slice: with min_i π_i/μ of the other learners, [time, copy]; None if none flies."""

    truncation: Truncation
    others: Floats | None

    def ratios(self, own: Floats) -> Floats:
        """Return R' from a learner's own ratios."""
        truncated: Floats = truncated_ratios(np, own, self.others, self.truncation.limit)
        return truncated


def least_ratios(log_probs: list[Floats], behaviour: Floats) -> Floats | None:
    """Return min_i π_i/μ over the policies whose log-probabilities these are; None if there is none."""
    if not log_probs:
        return None
    least = np.minimum.reduce(log_probs) - behaviour
    ratios: Floats = np.exp(np.clip(least, -_LOG_LIMIT, _LOG_LIMIT))
    return ratios


def truncated_ratios(arrays: Any, ratios: Array, others: Array | None, limit: float) -> Array:
    """Return R' from a learner's own ratios π/μ and the least ratios of the others."""
    least = ratios if others is None else arrays.minimum(ratios, others)
    return least.clip(max=limit)


def capped_ratios(arrays: Any, ratios: Array, others: Array | None, limit: float) -> Array:
    """Return the ratios as the released code caps them: ρ is the least that the cap can be."""
    return ratios if others is None else arrays.minimum(ratios, others.clip(min=limit))


def importance_figures(ratios: Floats, others: Floats | None, limit: float) -> dict[str, float]:
    """Return what a slice's ratios say: the mean of R', the effective sample size as a share of the samples, and the
    share of samples that R' limits.
    """
    ratios = ratios.astype(np.float64)
    others = None if others is None else others.astype(np.float64)
    truncated = truncated_ratios(np, ratios, others, limit)
    squares = float((ratios * ratios).sum())
    return {
        "weight": float(truncated.mean()),
        "effective": float(ratios.sum()) ** 2 / (squares * len(ratios)) if squares else 0.0,
        "truncated": float((truncated < ratios).mean()),
    }
