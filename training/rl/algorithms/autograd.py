"""Gradient descent in torch, for any network, on a GPU if there is one.

Adam (Kingma & Ba 2015) is torch's fused kernel: one call for all parameters. The plain optimiser would spend half of
a small minibatch's time in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from training.engine.torch_loading import device
from training.rl.algorithms.descent import (
    BETAS,
    CHUNK,
    CLIPPED_NORMS,
    Anchor,
    DescentResult,
    Floats,
    Objective,
    is_of_critic,
)
from training.rl.learner import LearnerState
from training.rl.networks import LOG_STD, Network, Parameters
from training.rl.networks.distributions import Distribution
from training.rl.networks.torch_network import TorchNetwork

if TYPE_CHECKING:
    from training.rl.algorithms.algorithm import Algorithm


class Autograd:
    """A `Descent` with torch's automatic gradients. Measurements stay on the device until `means` reads them."""

    arrays: Any = torch

    def __init__(
        self,
        state: LearnerState,
        network: Network,
        algorithm: Algorithm,
        learning_rate: float,
        anchor: Anchor | None,
    ) -> None:
        self.device = device()
        self._network = TorchNetwork(network, state.spaces)
        self._algorithm = algorithm
        self._learning_rate = learning_rate
        self._names = list(state.parameters)
        self._parameters = self._named(state.parameters)
        self._leaves = [self._parameters[name].requires_grad_() for name in self._names]
        # A state for gradients has no moments, and is never moved.
        moved = self._names if state.first_moments else []
        self._first = [self.array(state.first_moments[name]) for name in moved]
        self._second = [self.array(state.second_moments[name]) for name in moved]
        self._gradients: list[torch.Tensor] = []
        self._steps = [torch.tensor(float(state.optimiser_steps), device=self.device) for _ in self._names]
        self._held_to = [] if anchor is None else [self._named(policy) for policy in anchor.policies]
        self._anchor_weight = 0.0 if anchor is None else anchor.weight

    def array(self, data: npt.NDArray[Any]) -> torch.Tensor:
        return torch.tensor(data, device=self.device)

    def reorder(self, array: torch.Tensor, order: npt.NDArray[np.int64]) -> torch.Tensor:
        return array[torch.from_numpy(order).to(self.device)]

    def values(self, observations: Floats) -> Floats:
        flat = torch.from_numpy(np.ascontiguousarray(observations))
        with torch.no_grad():
            parts = [
                self._network.value(self._parameters, part.to(self.device))
                for part in torch.split(flat, CHUNK)
            ]
        values: Floats = torch.cat(parts).cpu().numpy()
        return values

    def log_probs(
        self, observations: Floats, actions: npt.NDArray[Any], parameters: Parameters | None
    ) -> Floats:
        named = self._parameters if parameters is None else self._named(parameters)
        parts = []
        with torch.no_grad():
            for begin in range(0, len(observations), CHUNK):
                seen = self.array(observations[begin : begin + CHUNK])
                distribution = self._distribution(self._network.policy(named, seen), named)
                parts.append(distribution.log_prob(self.array(actions[begin : begin + CHUNK])))
        log_probs: Floats = torch.cat(parts).cpu().numpy()
        return log_probs

    def step(
        self, observations: torch.Tensor, actions: torch.Tensor, objective: Objective
    ) -> dict[str, torch.Tensor]:
        measured = self.gradient(observations, actions, objective)
        return {**measured, **self.move()}

    @property
    def kept_gradient(self) -> Parameters:
        return self._copied(self._gradients)

    def keep(self, gradient: Mapping[str, npt.NDArray[Any]]) -> None:
        self._gradients = [self.array(gradient[name]) for name in self._names]

    def gradient(
        self,
        observations: torch.Tensor,
        actions: torch.Tensor,
        objective: Objective,
        anchors: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        outputs, values = self._network.policy_and_value(self._parameters, observations)
        distribution = self._distribution(outputs, self._parameters)
        log_probs, entropy = distribution.log_prob(actions), distribution.entropy()
        with torch.no_grad():
            slopes = objective(log_probs.detach(), values.detach())
        measured = {**slopes.measured, "entropy": entropy.detach()}
        down = [log_probs, values, entropy]
        steepness = [slopes.log_probs, slopes.values, torch.full_like(entropy, -self._entropy_weight)]
        if self._held_to:
            with torch.no_grad():
                theirs = self._older(observations, anchors)
            divergence = distribution.divergence_from(theirs).mean()
            measured["divergence"] = divergence.detach()
            down.append(divergence)
            steepness.append(torch.full_like(divergence, self._anchor_weight))
        # A GPU gives gradients of convolutions in another layout than their weights; Adam's kernel wants the same.
        computed = torch.autograd.grad(down, self._leaves, steepness)
        self._gradients = [gradient.contiguous() for gradient in computed]
        return measured

    def means(self, measured: dict[str, list[torch.Tensor]]) -> dict[str, float]:
        stacked = torch.stack([torch.stack(values).float().mean() for values in measured.values()])
        return dict(zip(measured, stacked.tolist(), strict=True))

    def result(self) -> DescentResult:
        return DescentResult(
            self._copied(self._leaves),
            self._copied(self._first),
            self._copied(self._second),
            int(self._steps[0]),
        )

    @property
    def _entropy_weight(self) -> float:
        return self._algorithm.entropy_coefficient

    def _clip(self, gradients: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        """Clip the gradients in place. Return the norms before that."""
        named = dict(zip(self._names, gradients, strict=True))
        parts = {
            "gradient_norm": gradients,
            "policy_gradient_norm": [gradient for name, gradient in named.items() if not is_of_critic(name)],
            "critic_gradient_norm": [gradient for name, gradient in named.items() if is_of_critic(name)],
        }
        norms: dict[str, torch.Tensor] = {
            name: torch.linalg.vector_norm(torch.stack(torch._foreach_norm(part)))
            for name, part in parts.items()
        }
        for name in CLIPPED_NORMS[self._algorithm.gradient_clip]:
            factor = torch.clamp(self._algorithm.max_gradient_norm / (norms[name] + 1e-6), max=1.0)
            torch._foreach_mul_(parts[name], factor)
        return norms

    def move(self, length: float = 1.0) -> dict[str, torch.Tensor]:
        gradients = self._gradients
        norms = self._clip(gradients)
        torch._foreach_add_(self._steps, 1.0)
        with torch.no_grad():
            torch._fused_adam_(
                self._leaves,
                gradients,
                self._first,
                self._second,
                [],
                self._steps,
                lr=length * self._learning_rate,
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=0.0,
                eps=self._algorithm.adam_epsilon,
                amsgrad=False,
                maximize=False,
            )
        return norms

    def _older(self, observations: torch.Tensor, anchors: torch.Tensor | None) -> Distribution:
        """Return the distribution of the policy that each sample is held to."""
        if anchors is None:
            (older,) = self._held_to
            return self._distribution(self._network.policy(older, observations), older)
        outputs = torch.stack([self._network.policy(older, observations) for older in self._held_to])
        own = outputs[anchors, torch.arange(len(anchors), device=self.device)]
        free = {}
        if LOG_STD in self._held_to[0]:
            free[LOG_STD] = torch.stack([older[LOG_STD] for older in self._held_to])[anchors]
        return self._distribution(own, free)

    def _distribution(self, outputs: torch.Tensor, parameters: dict[str, torch.Tensor]) -> Distribution:
        return Distribution.of(outputs, parameters, self._network.spaces)

    def _named(self, parameters: Parameters) -> dict[str, torch.Tensor]:
        return {name: self.array(array) for name, array in parameters.items()}

    def _copied(self, tensors: list[torch.Tensor]) -> Parameters:
        return {
            name: tensor.detach().cpu().numpy().copy()
            for name, tensor in zip(self._names, tensors, strict=True)
        }
