"""One update's optimisation in torch: parameters in, Adam steps, parameters out. Everything around it is numpy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from training.architectures import CNN, MLP
from training.batch import Batch
from training.distributions import Distribution
from training.inference import normalised
from training.learner import LearnerState
from training.networks import Parameters, TorchNetwork

if TYPE_CHECKING:
    from training.algorithms.algorithm import Algorithm

_CHUNK = 2048
_BETAS = (0.9, 0.999)


class BadLoss(ValueError):
    """A loss or gradient that is not a finite number."""


class Optimisation:
    """Adam over named parameters, made from a learner's state and turned back into one.

    Adam (Kingma & Ba 2015) is torch's fused kernel: one call for all parameters, where the plain one costs half of a
    small minibatch's time in Python. What is measured on the way is kept as tensors and read once, at the end.
    """

    def __init__(
        self, state: LearnerState, network: MLP | CNN, algorithm: Algorithm, progress: float
    ) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network = TorchNetwork(network, state.spaces)
        self.learning_rate = algorithm.rate(progress)
        self._algorithm = algorithm
        self._state = state
        self.kl_coefficient = state.kl_coefficient
        self._names = list(state.parameters)
        self.parameters = {
            name: self.tensor(array).requires_grad_() for name, array in state.parameters.items()
        }
        self._leaves = [self.parameters[name] for name in self._names]
        self._first = [self.tensor(state.first_moments[name]) for name in self._names]
        self._second = [self.tensor(state.second_moments[name]) for name in self._names]
        self._steps = [torch.tensor(float(state.optimiser_steps), device=self.device) for _ in self._names]
        free = state.parameters.get("policy.log_std")
        self._log_std_at_start = None if free is None else self.tensor(free)
        self._measured: dict[str, list[torch.Tensor]] = {}
        self.minibatches = 0

    def tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """A copy of `array` where this update computes."""
        return torch.tensor(array, device=self.device)

    def distribution(self, outputs: torch.Tensor) -> Distribution:
        return Distribution.of(outputs, self.parameters, self._state.spaces)

    def distribution_at_start(self, outputs: torch.Tensor) -> Distribution:
        """What the policy with which this update began made of the same outputs' states."""
        free = self._log_std_at_start
        return Distribution.of(outputs, {} if free is None else {"policy.log_std": free}, self._state.spaces)

    def observations(self, batch: Batch) -> npt.NDArray[Any]:
        """The batch's observations as the networks see them: normalised as the state's actors did."""
        seen: npt.NDArray[Any] = normalised(batch.observations, *self._state.normaliser())
        return seen

    def values(self, observations: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The critic's values for normalised observations of any leading shape."""
        shape = self._state.spaces.observation_shape
        leading = observations.shape[: observations.ndim - len(shape)]
        flat = torch.from_numpy(np.ascontiguousarray(observations).reshape(-1, *shape))
        with torch.no_grad():
            parts = [
                self.network.value(self.parameters, part.to(self.device))
                for part in torch.split(flat, _CHUNK)
            ]
        values: npt.NDArray[np.float32] = torch.cat(parts).cpu().numpy().reshape(leading)
        return values

    def next_values(self, batch: Batch, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """V of the state that really followed each step: also of the one that a time limit cut off."""
        normaliser = self._state.normaliser()
        last = self.values(normalised(batch.last_observations, *normaliser))
        following = np.concatenate([values[1:], last[None]], axis=0)
        if len(batch.final_index):
            steps, columns = batch.final_index[:, 0], batch.final_index[:, 1]
            following[steps, columns] = self.values(normalised(batch.final_observations, *normaliser))
        return following

    def step(self, loss: torch.Tensor, **measured: torch.Tensor) -> None:
        """One gradient step down `loss`; `measured` values are averaged into the report."""
        gradients = list(torch.autograd.grad(loss, self._leaves))
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        torch._foreach_mul_(
            gradients, torch.clamp(self._algorithm.max_gradient_norm / (norm + 1e-6), max=1.0)
        )
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
                beta1=_BETAS[0],
                beta2=_BETAS[1],
                weight_decay=0.0,
                eps=self._algorithm.adam_epsilon,
                amsgrad=False,
                maximize=False,
            )
        self.minibatches += 1
        for name, value in {**measured, "gradient_norm": norm}.items():
            self._measured.setdefault(name, []).append(value.detach())

    def means(self) -> dict[str, float]:
        """Means of what was measured. BadLoss if any is not finite: nothing of such an update may be kept."""
        stacked = torch.stack([torch.stack(values).mean() for values in self._measured.values()]).tolist()
        means = dict(zip(self._measured, stacked, strict=True))
        for name, mean in means.items():
            if not math.isfinite(mean):
                raise BadLoss(f"{name.replace('_', ' ')} is not a finite number; the update was thrown away")
        return means

    def last(self, name: str) -> float:
        return float(self._measured[name][-1])

    def next_state(self, state: LearnerState) -> LearnerState:
        """`state` with the parameters and moments as they are now, as the next version."""
        return replace(
            state,
            version=state.version + 1,
            parameters=self._arrays(self._leaves),
            first_moments=self._arrays(self._first),
            second_moments=self._arrays(self._second),
            optimiser_steps=int(self._steps[0]),
        )

    def _arrays(self, tensors: list[torch.Tensor]) -> Parameters:
        return {
            name: tensor.detach().cpu().numpy().copy()
            for name, tensor in zip(self._names, tensors, strict=True)
        }
