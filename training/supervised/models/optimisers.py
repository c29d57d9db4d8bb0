"""The optimisers: how a gradient moves parameters. A step is a pure function, so it can run anywhere."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from training.base_model import FrozenModel, setting
from training.supervised.models.model import Parameters


@dataclass(frozen=True)
class OptimiserState:
    """What an optimiser carries from step to step: the number of steps, and arrays by name ("velocity:weight")."""

    steps: int = 0
    arrays: Parameters = field(default_factory=dict)


class Optimiser(FrozenModel):
    """The base of all optimisers."""

    learning_rate: float = setting(0.1, "Learning rate", gt=0.0, le=100.0)

    def begin(self, parameters: Parameters) -> OptimiserState:
        """Return the state before the first step."""
        return OptimiserState()

    @abstractmethod
    def step(
        self, parameters: Parameters, gradient: Parameters, state: OptimiserState
    ) -> tuple[Parameters, OptimiserState]:
        """Return the parameters and the state after one step. The arguments stay as they are."""


class SGD(Optimiser):
    """SGD: each step goes down the gradient."""

    kind: Literal["sgd"] = "sgd"

    def step(
        self, parameters: Parameters, gradient: Parameters, state: OptimiserState
    ) -> tuple[Parameters, OptimiserState]:
        moved = {
            name: array - array.dtype.type(self.learning_rate) * gradient[name]
            for name, array in parameters.items()
        }
        return moved, OptimiserState(state.steps + 1)


class Momentum(Optimiser):
    """Momentum: a running sum of gradients, each step weighs the sum before it by the momentum."""

    kind: Literal["momentum"] = "momentum"
    momentum: float = setting(0.9, "Momentum", ge=0.0, lt=1.0)

    def begin(self, parameters: Parameters) -> OptimiserState:
        return OptimiserState(
            0, {f"velocity:{name}": np.zeros_like(array) for name, array in parameters.items()}
        )

    def step(
        self, parameters: Parameters, gradient: Parameters, state: OptimiserState
    ) -> tuple[Parameters, OptimiserState]:
        moved, arrays = {}, {}
        for name, array in parameters.items():
            velocity = array.dtype.type(self.momentum) * state.arrays[f"velocity:{name}"] + gradient[name]
            arrays[f"velocity:{name}"] = velocity
            moved[name] = array - array.dtype.type(self.learning_rate) * velocity
        return moved, OptimiserState(state.steps + 1, arrays)


class Adam(Optimiser):
    """Adam: each parameter's step is scaled by the running mean of its squared gradients."""

    kind: Literal["adam"] = "adam"
    learning_rate: float = setting(1e-3, "Learning rate", gt=0.0, le=100.0)
    first_decay: float = setting(0.9, "First decay", ge=0.0, lt=1.0, advanced=True)
    second_decay: float = setting(0.999, "Second decay", ge=0.0, lt=1.0, advanced=True)
    epsilon: float = setting(1e-8, "Epsilon", gt=0.0, le=1.0, advanced=True)

    def begin(self, parameters: Parameters) -> OptimiserState:
        zeros = {name: np.zeros_like(array) for name, array in parameters.items()}
        first = {f"first:{name}": array for name, array in zeros.items()}
        return OptimiserState(0, first | {f"second:{name}": array for name, array in zeros.items()})

    def step(
        self, parameters: Parameters, gradient: Parameters, state: OptimiserState
    ) -> tuple[Parameters, OptimiserState]:
        moved, arrays, steps = {}, {}, state.steps + 1
        first_left, second_left = 1.0 - self.first_decay**steps, 1.0 - self.second_decay**steps
        for name, array in parameters.items():
            slope, kind = gradient[name], array.dtype.type
            first = (
                kind(self.first_decay) * state.arrays[f"first:{name}"] + kind(1.0 - self.first_decay) * slope
            )
            second = kind(self.second_decay) * state.arrays[f"second:{name}"]
            second += kind(1.0 - self.second_decay) * slope * slope
            arrays[f"first:{name}"], arrays[f"second:{name}"] = first, second
            deviation = np.sqrt(second / kind(second_left)) + kind(self.epsilon)
            moved[name] = array - kind(self.learning_rate / first_left) * first / deviation
        return moved, OptimiserState(steps, arrays)


AnyOptimiser = Annotated[SGD | Momentum | Adam, Field(discriminator="kind")]
