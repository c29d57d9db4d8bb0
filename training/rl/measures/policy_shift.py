"""How far one policy is from another: KL(π_new ‖ π_old), exactly, over states that were just learned from."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from training.base_model import FrozenModel
from training.engine.torch_loading import import_torch
from training.rl.algorithms.dense import DenseNetwork
from training.rl.algorithms.heads import head_of
from training.rl.networks import Network, Parameters
from training.rl.spaces import Spaces
from training.rl.surfaces.update_samples import UpdateSamples

_STATES = 1024


class PolicyShiftSpec(FrozenModel):
    """Measured on up to 1,024 states of the round."""

    kind: Literal["policy_shift"] = "policy_shift"


def measure_policy_shift(
    network: Network, spaces: Spaces, before: Parameters, after: Parameters, update_samples: UpdateSamples
) -> tuple[float, int]:
    """Return the divergence, and how many states it is the mean of."""
    stride = max(1, -(-update_samples.size // _STATES))
    observations = update_samples.observations[::stride]
    return _divergence_in_torch(network, spaces, before, after, observations), len(observations)


def divergence(
    network: Network, spaces: Spaces, before: Parameters, after: Parameters, observations: npt.NDArray[Any]
) -> float:
    """Return KL(π_after ‖ π_before) over observations as the network gets them. An MLP needs no torch."""
    if not network.has_closed_form:
        return _divergence_in_torch(network, spaces, before, after, observations)

    forward = DenseNetwork(network, spaces)
    # No action is asked about, but heads are made for some.
    actions = np.zeros(
        (len(observations), len(spaces.action_counts) or len(spaces.action_low)),
        dtype=np.int64 if spaces.discrete else np.float32,
    )
    older, newer = (
        head_of(forward.policy(parameters, observations), actions, parameters, spaces)
        for parameters in (before, after)
    )
    return float(older.divergence_from(newer))


def _divergence_in_torch(
    network: Network, spaces: Spaces, before: Parameters, after: Parameters, states: npt.NDArray[Any]
) -> float:
    torch = import_torch()
    from training.rl.networks.distributions import Distribution  # torch
    from training.rl.networks.torch_network import TorchNetwork  # torch

    observations = torch.tensor(states)
    forward = TorchNetwork(network, spaces)

    def policy_of(parameters: Parameters) -> Distribution:
        named = {name: torch.tensor(array) for name, array in parameters.items()}
        return Distribution.of(forward.policy(named, observations), named, spaces)

    with torch.no_grad():
        return float(policy_of(before).divergence_from(policy_of(after)).mean())
