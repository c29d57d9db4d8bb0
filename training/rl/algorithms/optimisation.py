"""The optimisation of one update: from a state's parameters, by Adam steps down a loss, to the next state's
parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from training.engine.torch_loading import has_gpu, import_torch
from training.rl.algorithms.closed_form import ClosedForm
from training.rl.algorithms.descent import Anchor, Array, Descent, Floats, Objective
from training.rl.figures import UpdateReport
from training.rl.learner import LearnerState
from training.rl.networks import Network, Parameters
from training.rl.networks.inference import normalise
from training.rl.spaces import Spaces
from training.rl.surfaces.update_samples import flatten_time

if TYPE_CHECKING:
    from training.rl.algorithms.algorithm import Algorithm
    from training.rl.batch import Batch


class BadLoss(ValueError):
    """A loss or gradient is not a finite number."""


# Measured on a machine with an NVIDIA H200: a GPU's minibatch is a hundred small kernels, each launched by a core.
_GPU_MINIBATCH_US = 2900.0
_CORE_MINIBATCH_US, _CORE_SAMPLE_US, _CORE_MAC_US = 300.0, 1.0, 73e-6


def is_quicker_on_gpu(macs: int, samples: int) -> bool:
    """Return whether a GPU learns from a minibatch of `samples` sooner than a core, for an MLP of so many
    multiplications. With 11 inputs 2x256 is from 236 samples on, 64x64 from 1,513.
    """
    return _CORE_MINIBATCH_US + samples * (_CORE_SAMPLE_US + macs * _CORE_MAC_US) > _GPU_MINIBATCH_US


def descent_for(network: Network, spaces: Spaces, samples: int) -> Callable[..., Descent]:
    """Return the closed form if it supports the network and no GPU would be quicker with `samples` at once, else
    autograd.
    """
    if network.has_closed_form and not (
        has_gpu() and is_quicker_on_gpu(network.learner_macs(spaces), samples)
    ):
        return ClosedForm
    import_torch()
    from training.rl.algorithms.autograd import Autograd  # torch

    return Autograd


class Optimisation:
    """One update in progress: the part that is the same for every algorithm and every descent. `samples` are
    learned from at once.
    """

    def __init__(
        self,
        state: LearnerState,
        network: Network,
        algorithm: Algorithm,
        progress: float,
        samples: int,
        anchor: Anchor | None = None,
    ) -> None:
        self.learning_rate = algorithm.rate(progress)
        descent = descent_for(network, state.spaces, samples)
        self.descent = descent(state, network, algorithm, self.learning_rate, anchor)
        self.arrays = self.descent.arrays
        self.minibatches = 0
        self._state = state
        self._measured: dict[str, list[Array]] = {}

    def observations(self, batch: Batch) -> npt.NDArray[Any]:
        """Return the batch's observations normalised as this version's actors normalised them."""
        seen: npt.NDArray[Any] = normalise(batch.observations, *self._state.normaliser())
        return seen

    def values(self, observations: npt.NDArray[Any]) -> Floats:
        """Return the critic's values for normalised observations of any leading shape."""
        shape = self._state.spaces.observation_shape
        leading = observations.shape[: observations.ndim - len(shape)]
        return self.descent.values(observations.reshape(-1, *shape)).reshape(leading)

    def next_values(self, batch: Batch, values: Floats) -> Floats:
        """Return V of the state that followed each step, also of a state that a time limit cut off."""
        normaliser = self._state.normaliser()
        last = self.values(normalise(batch.last_observations, *normaliser))
        following = np.concatenate([values[1:], last[None]], axis=0)
        if len(batch.final_index):
            steps, columns = batch.final_index[:, 0], batch.final_index[:, 1]
            following[steps, columns] = self.values(normalise(batch.final_observations, *normaliser))
        return following

    def log_probs(
        self, batch: Batch, observations: npt.NDArray[Any], parameters: Parameters | None = None
    ) -> Floats:
        """Return log-probabilities of the batch's actions, as [time, copy], under the policy with `parameters`
        or under the current one.
        """
        flat = self.descent.log_probs(flatten_time(observations), flatten_time(batch.actions), parameters)
        return flat.reshape(batch.rewards.shape)

    def to_device(self, samples: dict[str, npt.NDArray[Any]]) -> dict[str, Array]:
        """Return arrays of [time, copy, …] as [sample, …] on the descent's device; real numbers become
        float32.
        """
        return {
            name: self.descent.array(
                flatten_time(array).astype(np.float32 if array.dtype.kind == "f" else array.dtype, copy=False)
            )
            for name, array in samples.items()
        }

    def minibatches_of(
        self, samples: dict[str, Array], size: int, rng: np.random.Generator
    ) -> Iterator[dict[str, Array]]:
        """Yield all samples once, in random order. They are shuffled once, so that each minibatch is a view."""
        n = len(samples["actions"])
        order = rng.permutation(n)
        shuffled = {name: self.descent.reorder(array, order) for name, array in samples.items()}
        for begin in range(0, n, size):
            yield {name: array[begin : begin + size] for name, array in shuffled.items()}

    def step(self, observations: Array, actions: Array, objective: Objective) -> None:
        """Take one gradient step. Its measurements are read once, at the end of the update."""
        self.minibatches += 1
        for name, value in self.descent.step(observations, actions, objective).items():
            self._measured.setdefault(name, []).append(value)

    def gradient(
        self, observations: Array, actions: Array, objective: Objective, anchors: Array | None = None
    ) -> Parameters:
        """Return the gradient of one minibatch, without a step. Raises BadLoss if it is not finite."""
        self.minibatches += 1
        for name, value in self.descent.gradient(observations, actions, objective, anchors).items():
            self._measured.setdefault(name, []).append(value)
        gradient = self.descent.kept_gradient
        for array in gradient.values():
            if not np.isfinite(array).all():
                raise BadLoss("the gradient is not a finite number; it was discarded")
        return gradient

    def move(self, gradient: Mapping[str, npt.NDArray[Any]], length: float) -> None:
        """Take one step down a gradient that was computed elsewhere, `length` times as long as usual."""
        self.descent.keep(gradient)
        for name, value in self.descent.move(length).items():
            self._measured.setdefault(name, []).append(value)

    def last(self, name: str) -> float:
        return float(self._measured[name][-1])

    def means(self) -> dict[str, float]:
        """Return the means of all measurements. Raises BadLoss if one is not finite: such an update is discarded."""
        means = self.descent.means(self._measured)
        for name, mean in means.items():
            if not math.isfinite(mean):
                raise BadLoss(f"{name.replace('_', ' ')} is not a finite number; the update was discarded")
        return means

    def report(self, explained_variance: float, **instead: float) -> UpdateReport:
        """Return the report: the means, replaced by `instead` where an algorithm measures in its own way. Raises
        BadLoss.
        """
        measured = {**self.means(), **instead}
        return UpdateReport(
            **{name: measured[name] for name in UpdateReport.model_fields if name in measured},
            explained_variance=explained_variance,
            learning_rate=self.learning_rate,
            device=self.descent.device,
        )

    def next_state(self, state: LearnerState) -> LearnerState:
        """Return `state` with the current parameters and moments, as the next version."""
        result = self.descent.result()
        return replace(
            state,
            version=state.version + 1,
            parameters=result.parameters,
            first_moments=result.first_moments,
            second_moments=result.second_moments,
            optimiser_steps=result.steps,
        )
