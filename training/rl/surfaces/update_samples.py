"""The samples of an update, and the derivatives of its objective by them. All surfaces use these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from training.rl.networks import Floats, Parameters

ObjectiveKind = Literal["surrogate", "policy_gradient"]


class LossWeights(NamedTuple):
    """The weights of an update's loss beside its surrogate: of the critic's ½ E[(V − R)²], and of the policy's
    entropy.
    """

    value: float
    entropy: float


@dataclass(frozen=True)
class UpdateSamples:
    """The samples of an update: [sample, …] each, observations as the network gets them. `targets` are the critic's.

    Samples flattened from [time, copy] are in rows of `columns` copies.
    """

    observations: npt.NDArray[Any]
    actions: npt.NDArray[Any]
    log_probs: Floats
    advantages: Floats
    targets: Floats
    columns: int = 1

    @property
    def size(self) -> int:
        return len(self.advantages)

    def select(self, chosen: npt.NDArray[np.int64] | slice) -> UpdateSamples:
        return UpdateSamples(
            self.observations[chosen],
            self.actions[chosen],
            self.log_probs[chosen],
            self.advantages[chosen],
            self.targets[chosen],
        )


def flatten_time(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return [time, copy, …] as [sample, …]."""
    return array.reshape(-1, *array.shape[2:])


def policy_part(parameters: Parameters) -> Parameters:
    """Return the parameters that the policy depends on."""
    return {name: array for name, array in parameters.items() if not name.startswith("value.")}


def slopes_of(
    log_probs: Floats, update_samples: UpdateSamples, objective: ObjectiveKind, clip: float | None
) -> tuple[Floats, Floats]:
    """Return the first and second derivative of J by each sample's log π.

    As dr / d log π = r, both are r A of the clipped ratio, or 0 where the clipped side is the smaller one.
    """
    advantages = update_samples.advantages
    share = np.float32(1.0 / len(advantages))
    if objective == "policy_gradient":
        return advantages * share, np.zeros_like(advantages)
    ratios = np.exp(np.clip(log_probs - update_samples.log_probs, -20.0, 20.0))
    free = ratios * advantages
    if clip is not None:
        free = np.where(free <= ratios.clip(1.0 - clip, 1.0 + clip) * advantages, free, 0.0)
    free = free * share
    return free, free
