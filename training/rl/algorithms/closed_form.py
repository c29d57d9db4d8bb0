"""Gradient descent in numpy for fully connected networks on a CPU: gradients in closed form, Adam over one vector.

Equal inputs give bit-equal results on every machine, so it computes in one thread.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from training.rl.algorithms.dense import DenseNetwork, NamedVector
from training.rl.algorithms.descent import (
    BETAS,
    CHUNK,
    CLIPPED_NORMS,
    Anchor,
    DescentResult,
    Objective,
    is_of_critic,
)
from training.rl.algorithms.heads import Head, head_of
from training.rl.learner import LearnerState
from training.rl.networks import LOG_STD, Floats, Network, Parameters

if TYPE_CHECKING:
    from training.rl.algorithms.algorithm import Algorithm


class ClosedForm:
    """A `Descent` for MLPs."""

    arrays: Any = np
    device = "cpu"

    def __init__(
        self,
        state: LearnerState,
        network: Network,
        algorithm: Algorithm,
        learning_rate: float,
        anchor: Anchor | None,
    ) -> None:
        compute_in_one_thread()
        _keep_freed_memory()
        self._spaces = state.spaces
        self._network = DenseNetwork(network, state.spaces)
        self._algorithm = algorithm
        self._anchor = anchor
        self._parameters = NamedVector(state.parameters)
        self._gradients = NamedVector(state.parameters)
        self._parts = {
            "gradient_norm": [self._gradients.vector],
            "policy_gradient_norm": self._gradients.views_of(lambda name: not is_of_critic(name)),
            "critic_gradient_norm": self._gradients.views_of(is_of_critic),
        }
        self._state = state
        self._learning_rate = learning_rate

    @cached_property
    def _adam(self) -> _Adam:
        """Made for the first move: a state for gradients has no moments."""
        return _Adam(self._state, self._learning_rate, self._algorithm.adam_epsilon)

    def array(self, data: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return data

    def reorder(self, array: npt.NDArray[Any], order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return np.take(array, order, axis=0)

    def values(self, observations: Floats) -> Floats:
        parts = range(0, len(observations), CHUNK)
        named = self._parameters.named
        return np.concatenate([self._network.value(named, observations[i : i + CHUNK]) for i in parts])

    def log_probs(
        self, observations: Floats, actions: npt.NDArray[Any], parameters: Parameters | None
    ) -> Floats:
        named = self._parameters.named if parameters is None else parameters
        parts = []
        for i in range(0, len(observations), CHUNK):
            outputs = self._network.policy(named, observations[i : i + CHUNK])
            parts.append(head_of(outputs, actions[i : i + CHUNK], named, self._spaces).log_probs)
        return np.concatenate(parts)

    def step(self, observations: Floats, actions: npt.NDArray[Any], objective: Objective) -> dict[str, Any]:
        measured = self.gradient(observations, actions, objective)
        return {**measured, **self.move()}

    def gradient(
        self,
        observations: Floats,
        actions: npt.NDArray[Any],
        objective: Objective,
        anchors: npt.NDArray[np.int64] | None = None,
    ) -> dict[str, Any]:
        # An overflow gives a loss that is not finite. `Optimisation.means` rejects such an update.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._propagate(observations, actions, objective, anchors)

    @property
    def kept_gradient(self) -> Parameters:
        return self._gradients.copies()

    def keep(self, gradient: Mapping[str, npt.NDArray[Any]]) -> None:
        for name, view in self._gradients.named.items():
            view[...] = gradient[name]

    def move(self, length: float = 1.0) -> dict[str, Any]:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            norms = self._clip()
            self._adam.move(self._parameters.vector, self._gradients.vector, length)
        return norms

    def _clip(self) -> dict[str, float]:
        """Clip the gradient in place. Return the norms before that."""
        norms = {name: math.sqrt(sum(view @ view for view in views)) for name, views in self._parts.items()}
        longest = self._algorithm.max_gradient_norm
        for name in CLIPPED_NORMS[self._algorithm.gradient_clip]:
            if norms[name] + 1e-6 > longest:
                for view in self._parts[name]:
                    view *= longest / (norms[name] + 1e-6)
        return norms

    def _propagate(
        self,
        observations: Floats,
        actions: npt.NDArray[Any],
        objective: Objective,
        anchors: npt.NDArray[np.int64] | None,
    ) -> dict[str, Any]:
        """Compute the loss's gradient, in place, and return the measurements."""
        named, into = self._parameters.named, self._gradients.named
        passed = self._network.forward(named, observations)
        head = head_of(passed.outputs, actions, named, self._spaces)
        slopes = objective(head.log_probs, passed.values)
        measured = {**slopes.measured, "entropy": head.entropy}
        outputs = head.backward(slopes.log_probs, -self._algorithm.entropy_coefficient, into)
        if self._anchor is not None:
            theirs = self._held_to(self._anchor.policies, anchors, observations, actions)
            measured["divergence"], more = head.backward_from(theirs, self._anchor.weight, into)
            outputs += more
        self._network.backward(named, passed, outputs, slopes.values, into)
        return measured

    def _held_to(
        self,
        policies: tuple[Parameters, ...],
        anchors: npt.NDArray[np.int64] | None,
        observations: Floats,
        actions: npt.NDArray[Any],
    ) -> Head:
        """Return the head of the policy that each sample is held to."""
        if anchors is None:
            (older,) = policies
            return head_of(self._network.policy(older, observations), actions, older, self._spaces)
        outputs = np.stack([self._network.policy(older, observations) for older in policies])
        own = outputs[anchors, np.arange(len(anchors))]
        free = {}
        if LOG_STD in policies[0]:
            free[LOG_STD] = np.stack([older[LOG_STD] for older in policies])[anchors]
        return head_of(own, actions, free, self._spaces)

    def means(self, measured: dict[str, list[Any]]) -> dict[str, float]:
        return {name: float(np.mean(values)) for name, values in measured.items()}

    def result(self) -> DescentResult:
        adam = self._adam
        return DescentResult(self._parameters.copies(), adam.first.copies(), adam.second.copies(), adam.steps)


class _Adam:
    """Adam (Kingma & Ba 2015) over one vector: m and v follow g and g², and the step is m̂ / (√v̂ + ε)."""

    def __init__(self, state: LearnerState, learning_rate: float, epsilon: float) -> None:
        self.first = NamedVector({name: state.first_moments[name] for name in state.parameters})
        self.second = NamedVector({name: state.second_moments[name] for name in state.parameters})
        self.steps = state.optimiser_steps
        self._learning_rate = learning_rate
        self._epsilon = epsilon
        self._scratch = np.empty_like(self.first.vector)

    def move(self, parameters: Floats, gradient: Floats, length: float) -> None:
        """Move `parameters` by one step, in place, `length` times as long as usual. `gradient` is overwritten."""
        self.steps += 1
        first, second, scratch = self.first.vector, self.second.vector, self._scratch
        np.multiply(gradient, gradient, out=scratch)
        scratch *= 1.0 - BETAS[1]
        second *= BETAS[1]
        second += scratch
        gradient *= 1.0 - BETAS[0]
        first *= BETAS[0]
        first += gradient
        np.sqrt(second, out=scratch)
        scratch *= 1.0 / math.sqrt(1.0 - BETAS[1] ** self.steps)
        scratch += self._epsilon
        np.divide(first, scratch, out=scratch)
        scratch *= length * self._learning_rate / (1.0 - BETAS[0] ** self.steps)
        parameters -= scratch


@cache
def compute_in_one_thread() -> None:
    """Limit BLAS to one thread, once for the process: more threads slow down products this small and starve the
    actors.
    """
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, user_api="blas")


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _LARGEST_KEPT_BYTES = 2**26, 2**25


@cache
def _keep_freed_memory() -> None:
    """Have glibc keep freed arrays for the next ones, once for the process.

    By default it returns large ones to the kernel at once, so that every minibatch of 1,024 through 256x256 waits for
    thousands of new pages: a third of its time.
    """
    if not sys.platform.startswith("linux"):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        set_option(_TRIM_THRESHOLD, _KEPT_BYTES)
