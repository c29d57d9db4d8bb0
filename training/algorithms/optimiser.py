"""One update's optimisation in torch: parameters in, Adam steps, parameters out. Everything around it is numpy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from training.learner import LearnerState
from training.networks import Parameters, forward
from training.spec import NetworkSpec

if TYPE_CHECKING:
    import numpy.typing as npt

Tensors = dict[str, torch.Tensor]


class BadLoss(ValueError):
    """A loss or gradient that is not a finite number."""


class Loss(Protocol):
    def __call__(self, parameters: Tensors, network: NetworkSpec, chosen: torch.Tensor) -> torch.Tensor:
        """The loss of the chosen samples, with its graph."""


class Optimisation:
    """Adam over named parameters, made from a learner's state and turned back into one.

    Adam (Kingma & Ba 2015) is torch's fused kernel: one call for all parameters, where the plain one costs half of a
    small minibatch's time in Python.
    """

    def __init__(
        self, state: LearnerState, network: NetworkSpec, learning_rate: float, epsilon: float, max_norm: float
    ) -> None:
        self.learning_rate = learning_rate
        self._network = network
        self._epsilon = epsilon
        self._max_norm = max_norm
        self._names = list(state.parameters)
        self._parameters: Tensors = {
            name: torch.tensor(array, requires_grad=True) for name, array in state.parameters.items()
        }
        self._leaves = [self._parameters[name] for name in self._names]
        self._first = [torch.tensor(state.first_moments[name]) for name in self._names]
        self._second = [torch.tensor(state.second_moments[name]) for name in self._names]
        self._steps = [torch.tensor(float(state.optimiser_steps)) for _ in self._names]
        self._norms: list[torch.Tensor] = []

    def values(self, observations: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The critic's values for normalised observations of any leading shape."""
        flat = torch.from_numpy(np.ascontiguousarray(observations.reshape(-1, observations.shape[-1])))
        with torch.no_grad():
            values = forward(flat, self._parameters, "value", self._network)
        result: npt.NDArray[np.float32] = values.numpy().reshape(observations.shape[:-1])
        return result

    def step(self, loss: Loss, chosen: npt.NDArray[np.int64]) -> None:
        """One gradient step on the chosen samples."""
        value = loss(self._parameters, self._network, torch.from_numpy(chosen))
        gradients = list(torch.autograd.grad(value, self._leaves))
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        scale = torch.clamp(self._max_norm / (norm + 1e-6), max=1.0)
        torch._foreach_mul_(gradients, scale)
        self._norms.append(norm)
        torch._foreach_add_(self._steps, 1.0)
        with torch.no_grad():
            torch._fused_adam_(
                self._leaves,
                gradients,
                self._first,
                self._second,
                [],
                self._steps,
                lr=self.learning_rate,
                beta1=0.9,
                beta2=0.999,
                weight_decay=0.0,
                eps=self._epsilon,
                amsgrad=False,
                maximize=False,
            )

    def mean_gradient_norm(self) -> float:
        """Mean norm before clipping. BadLoss if any was not finite: nothing of such an update may be kept."""
        mean = float(torch.stack(self._norms).mean()) if self._norms else 0.0
        if not math.isfinite(mean):
            raise BadLoss("the gradient is not a finite number; the update was thrown away")
        return mean

    def next_state(self, state: LearnerState) -> LearnerState:
        """`state` with the parameters and moments as they are now."""
        return replace(
            state,
            parameters=self._arrays(self._leaves),
            first_moments=self._arrays(self._first),
            second_moments=self._arrays(self._second),
            optimiser_steps=int(self._steps[0]),
        )

    def _arrays(self, tensors: list[torch.Tensor]) -> Parameters:
        return {
            name: tensor.detach().numpy().copy() for name, tensor in zip(self._names, tensors, strict=True)
        }
