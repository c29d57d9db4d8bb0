"""How far an update moved the policy: KL(π_new ‖ π_old), exactly, over the states that it has just learned from."""

from __future__ import annotations

from typing import Literal

import numpy as np

from training.architectures import CNN, MLP
from training.base_model import FrozenModel
from training.networks import Parameters, TorchNetwork
from training.spaces import Spaces
from training.torch_loading import import_torch
from training.update_samples import UpdateSamples

_STATES = 1024


class PolicyShiftSpec(FrozenModel):
    """Measured on up to 1,024 states of the round."""

    kind: Literal["policy_shift"] = "policy_shift"


def measure_policy_shift(
    network: MLP | CNN, spaces: Spaces, before: Parameters, after: Parameters, update_samples: UpdateSamples
) -> tuple[float, int]:
    """Return the divergence, and how many states it is the mean of."""
    torch = import_torch()
    from training.distributions import Distribution

    stride = max(1, -(-update_samples.size // _STATES))
    observations = torch.from_numpy(np.ascontiguousarray(update_samples.observations[::stride]))
    forward = TorchNetwork(network, spaces)

    def policy_of(parameters: Parameters) -> Distribution:
        named = {name: torch.tensor(array) for name, array in parameters.items()}
        return Distribution.of(forward.policy(named, observations), named, spaces)

    with torch.no_grad():
        divergence = policy_of(before).divergence_from(policy_of(after)).mean()
    return float(divergence), len(observations)
