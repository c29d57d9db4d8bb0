"""Gradient descent on a loss: the interface between an algorithm and the code that takes gradients.

Every loss here is a mean over samples of a function of log π(a|s), plus a function of V(s), minus a weighted entropy.
So an algorithm only returns how its loss changes with those two numbers of each sample (`Slopes`), and a `Descent`
propagates that back through the network. There are two: `ClosedForm`, in numpy, for small networks on a CPU, and
`Autograd`, in torch, for all others. Both give the same results up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from training.rl.networks import Parameters

Floats = npt.NDArray[np.float32]
Array = Any  # an array of numpy or of torch, depending on the descent
BETAS = (0.9, 0.999)
CHUNK = 2048


class Slopes(NamedTuple):
    """The loss's derivatives by each sample's log-probability and value ([n] each), and measurements for the report."""

    log_probs: Array
    values: Array
    measured: dict[str, Array]


# Maps the log-probabilities and values of some samples, under the current parameters, to slopes.
Objective = Callable[[Array, Array], Slopes]


class Anchor(NamedTuple):
    """A penalty for leaving a policy: `weight` · KL(that policy ‖ current policy) is added to the loss.

    `policies` are the parameters of those that samples are held to; where there are several, each sample says which.
    """

    policies: tuple[Parameters, ...]
    weight: float


# Which of the measured norms bound a step, by the algorithm's field `gradient_clip`.
CLIPPED_NORMS: dict[str, tuple[str, ...]] = {
    "joint": ("gradient_norm",),
    "separate": ("policy_gradient_norm", "critic_gradient_norm"),
    "none": (),
}


def is_of_critic(name: str) -> bool:
    """Whether the parameter is the critic's alone. Layers that both share are the policy's."""
    return name.startswith("value.")


class DescentResult(NamedTuple):
    """The state after a descent: parameters and Adam's moments by name, and the number of steps over the whole run."""

    parameters: Parameters
    first_moments: Parameters
    second_moments: Parameters
    steps: int


class Descent(Protocol):
    """Parameters that move down a loss. Its `Array` is the array type of the module `arrays`."""

    arrays: Any
    device: str

    def array(self, data: npt.NDArray[Any]) -> Array:
        """Return `data` as an array on the device that computes."""

    def reorder(self, array: Array, order: npt.NDArray[np.int64]) -> Array:
        """Return a copy of `array` with its samples in this order."""

    def values(self, observations: Floats) -> Floats:
        """Return the critic's values of [n, …] observations."""

    def log_probs(
        self, observations: Floats, actions: npt.NDArray[Any], parameters: Parameters | None
    ) -> Floats:
        """Return log-probabilities of [n, …] actions under the policy with `parameters`, or under the current one."""

    def gradient(
        self, observations: Array, actions: Array, objective: Objective, anchors: Array | None = None
    ) -> dict[str, Array]:
        """Compute the loss's gradient and keep it. Return the objective's measurements, the entropy, and the KL
        divergence, if any. `anchors` are the numbers of the samples' anchors, where there are several.
        """

    @property
    def kept_gradient(self) -> Parameters:
        """A copy of the gradient that is kept, by name."""

    def keep(self, gradient: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keep this gradient instead."""

    def move(self, length: float = 1.0) -> dict[str, Array]:
        """Clip the gradient that is kept and take one step down it, `length` times as long as usual. Return the norms
        of the gradient and of its two parts before clipping.
        """

    def step(self, observations: Array, actions: Array, objective: Objective) -> dict[str, Array]:
        """Take one step down the loss: `gradient` and `move`. Return what both return."""

    def means(self, measured: dict[str, list[Array]]) -> dict[str, float]:
        """Return the mean of each measurement."""

    def result(self) -> DescentResult: ...
