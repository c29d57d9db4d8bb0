"""Whole trajectories under a policy of now, for algorithms that correct old data step by step along time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from training.batch import Batch
from training.distributions import Distribution

if TYPE_CHECKING:
    from training.algorithms.algorithm import Floats
    from training.algorithms.optimisation import Optimisation


def log_probs_under(
    optimisation: Optimisation, parameters: Mapping[str, torch.Tensor], batch: Batch, observations: Floats
) -> npt.NDArray[np.float32]:
    """Log-probabilities of the batch's actions under the policy with `parameters`, as [time, environment]."""
    n = batch.size
    flat = observations.reshape(n, *observations.shape[2:])
    actions = batch.actions.reshape(n, *batch.actions.shape[2:])
    parts = []
    with torch.no_grad():
        for begin in range(0, n, 2048):
            seen = optimisation.tensor(flat[begin : begin + 2048])
            outputs = optimisation.network.policy(parameters, seen)
            distribution = Distribution.of(outputs, parameters, optimisation.network.spaces)
            parts.append(distribution.log_prob(optimisation.tensor(actions[begin : begin + 2048])))
    result: npt.NDArray[np.float32] = torch.cat(parts).cpu().numpy().reshape(batch.rewards.shape)
    return result


def shuffled_parts(n: int, size: int, rng: np.random.Generator) -> Iterator[torch.Tensor]:
    """All n samples once, in random minibatches."""
    order = torch.from_numpy(rng.permutation(n))
    yield from torch.split(order, size)
