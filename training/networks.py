"""Policy and value networks: their parameters as named arrays, and their forward pass with gradients.

Parameters are plain arrays under names like `policy.0.weight`, so they travel, are stored and are compared as they
are. Torch is imported only by whoever calls the forward pass; making the first parameters needs numpy alone.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from training.environments.model import Spaces
from training.spec import NetworkSpec

if TYPE_CHECKING:
    import torch

Floats = npt.NDArray[np.float32]
Parameters = dict[str, Floats]


def initial_parameters(network: NetworkSpec, spaces: Spaces, seed: int) -> Parameters:
    """Orthogonal weights (√2 hidden, 0.01 policy head, 1 value head), zero biases."""
    rng = np.random.Generator(np.random.PCG64(seed))
    parameters: Parameters = {}
    for tower, outputs, head_gain in (("policy", spaces.policy_outputs, 0.01), ("value", 1, 1.0)):
        sizes = (spaces.observation_size, *network.hidden, outputs)
        for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            gain = head_gain if i == len(network.hidden) else float(np.sqrt(2.0))
            parameters[f"{tower}.{i}.weight"] = _orthogonal(rng, fan_out, fan_in, gain)
            parameters[f"{tower}.{i}.bias"] = np.zeros(fan_out, dtype=np.float32)
    if not spaces.discrete:
        parameters["policy.log_std"] = np.full(
            spaces.policy_outputs, network.log_std_initial, dtype=np.float32
        )
    return parameters


def _orthogonal(rng: np.random.Generator, rows: int, columns: int, gain: float) -> Floats:
    gaussian = rng.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(gaussian)
    q *= np.sign(np.diag(r))
    return np.ascontiguousarray(gain * (q if rows >= columns else q.T), dtype=np.float32)


def forward(
    observations: torch.Tensor, parameters: dict[str, torch.Tensor], tower: str, network: NetworkSpec
) -> torch.Tensor:
    """What `tower` ("policy" or "value") makes of normalised observations."""
    import torch

    x = observations
    for i in range(len(network.hidden) + 1):
        x = torch.nn.functional.linear(x, parameters[f"{tower}.{i}.weight"], parameters[f"{tower}.{i}.bias"])
        if i < len(network.hidden):
            x = torch.relu(x) if network.activation == "relu" else torch.tanh(x)
    return x


def log_probs_and_entropy(
    outputs: torch.Tensor, log_std: torch.Tensor | None, actions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each action and the entropy of its distribution (categorical, or diagonal normal)."""
    import torch

    if log_std is None:
        log_p = torch.log_softmax(outputs, dim=1)
        entropy = -(log_p.exp() * log_p).sum(dim=1)
        return log_p.gather(1, actions[:, None]).squeeze(1), entropy
    scaled = (actions - outputs) * torch.exp(-log_std)
    normaliser = log_std.sum() + 0.5 * float(np.log(2.0 * np.pi)) * outputs.shape[1]
    log_prob = -0.5 * (scaled * scaled).sum(dim=1) - normaliser
    entropy = (log_std.sum() + 0.5 * (1.0 + float(np.log(2.0 * np.pi))) * outputs.shape[1]).expand(
        len(outputs)
    )
    return log_prob, entropy
