"""Parameters that move down a loss, and what moves them: the door between an algorithm and whatever takes gradients.

Every loss here is a mean over samples of something of log π(a|s), plus something of V(s), less some entropy. So an
algorithm only says how its loss changes with those two numbers of each sample (`Slopes`), and a `Descent` takes that
back through the network. There are two: `ClosedForm`, in numpy, for what small networks on a CPU do all day, and
`Autograd`, in torch, for everything else. Both give the same up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from training.networks import Parameters

Floats = npt.NDArray[np.float32]
Array = Any  # of numpy or of torch, as the descent computes
BETAS = (0.9, 0.999)
CHUNK = 2048


class Slopes(NamedTuple):
    """How a loss changes with each sample's log-probability and value ([n] each), and what to tell of it."""

    log_probs: Array
    values: Array
    measured: dict[str, Array]


# From the log-probabilities and values of some samples under the parameters of now.
Objective = Callable[[Array, Array], Slopes]


class Anchor(NamedTuple):
    """A policy not to stray from: `weight` · KL(policy of `parameters` ‖ policy of now) is added to the loss."""

    parameters: Parameters
    weight: float


class Moved(NamedTuple):
    """Where a descent has come to: parameters and Adam's moments under their names, and the steps of all time."""

    parameters: Parameters
    first_moments: Parameters
    second_moments: Parameters
    steps: int


class Descent(Protocol):
    """Parameters that move down a loss. What it takes and gives as `Array` is of its own module, `arrays`."""

    arrays: Any
    device: str

    def array(self, data: npt.NDArray[Any]) -> Array:
        """`data` where this computes."""

    def taken(self, array: Array, order: npt.NDArray[np.int64]) -> Array:
        """A copy of `array` with its samples in this order."""

    def values(self, observations: Floats) -> Floats:
        """The critic's values of [n, …] observations."""

    def log_probs(
        self, observations: Floats, actions: npt.NDArray[Any], parameters: Parameters | None
    ) -> Floats:
        """Log-probabilities of [n, …] actions under the policy with `parameters`, or as it is now."""

    def step(self, observations: Array, actions: Array, objective: Objective) -> dict[str, Array]:
        """One step. Gives what the objective measured, and the entropy, the gradient's norm and any divergence."""

    def means(self, measured: dict[str, list[Array]]) -> dict[str, float]:
        """The mean of each."""

    def moved(self) -> Moved: ...
