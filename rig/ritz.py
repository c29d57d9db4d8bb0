"""PyHessian's Ritz ends of a policy's surrogate: `python -m rig.ritz FILE` prints them as JSON.

Runs in `.venv-bench` and imports nothing of ours: network, distribution and surrogate are written down here once more,
so that what agrees has been derived twice. FILE is an .npz: `weight_i` and `bias_i` of the policy's layers with tanh
between them, `log_std` (continuous actions), `observations`, `actions`, `log_probs`, `advantages`, and `clip`.

PyHessian looks at a loss, which is the surrogate's negative: the largest eigenvalue of the one is the smallest of the
other with its sign changed.
"""

import json
import math
import sys
from typing import Any

import numpy as np
import torch

PRODUCTS = 100


class Policy(torch.nn.Module):
    """Outputs of a continuous policy: means, and the free deviation beside each of them."""

    def __init__(self, given: Any) -> None:
        super().__init__()
        count = sum(name.startswith("weight_") for name in given.files)

        def parameter(name: str) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.tensor(given[name], dtype=torch.float64))

        self.weights = torch.nn.ParameterList(parameter(f"weight_{i}") for i in range(count))
        self.biases = torch.nn.ParameterList(parameter(f"bias_{i}") for i in range(count))
        self.log_std = parameter("log_std")

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        inner = observations
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            inner = inner @ weight.T + bias
            if i + 1 < len(self.weights):
                inner = torch.tanh(inner)
        return torch.cat([inner, self.log_std.expand_as(inner)], dim=1)


def loss_of(clip: float, actions_wide: int) -> Any:
    """The negative of E[min(r A, clip(r) A)]; targets hold actions, the behaviour's log-probabilities, advantages."""

    def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        mean, log_std = outputs.chunk(2, dim=1)
        actions, old, advantages = targets[:, :actions_wide], targets[:, -2], targets[:, -1]
        scaled = (actions - mean) / log_std.exp()
        new = (-0.5 * scaled**2 - log_std - 0.5 * math.log(2 * math.pi)).sum(dim=1)
        ratio = (new - old).exp()
        clipped = ratio.clamp(1 - clip, 1 + clip)
        return -torch.minimum(ratio * advantages, clipped * advantages).mean()

    return loss


def _eig(matrix: torch.Tensor, eigenvectors: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """`torch.eig`, which PyHessian 0.1 calls and torch has no more. Its matrix is symmetric."""
    values, vectors = torch.linalg.eigh(matrix)
    return torch.stack([values, torch.zeros_like(values)], dim=1), vectors


def main(path: str) -> dict[str, Any]:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    torch.eig = _eig  # type: ignore[attr-defined]
    from pyhessian import hessian

    with np.load(path) as given:
        policy = Policy(given)
        columns = [given["actions"], given["log_probs"][:, None], given["advantages"][:, None]]
        targets = torch.tensor(np.concatenate(columns, axis=1), dtype=torch.float64)
        observations = torch.tensor(given["observations"], dtype=torch.float64)
        loss = loss_of(float(given["clip"]), given["actions"].shape[1])
    spectrum = hessian(policy, loss, data=(observations, targets), cuda=False)
    values, _ = spectrum.density(iter=PRODUCTS, n_v=1)
    return {"largest": -float(min(values[0])), "smallest": -float(max(values[0])), "products": PRODUCTS}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
