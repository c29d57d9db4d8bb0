"""What every network that a user can choose declares: its layers for given spaces, and their first parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from training.base_model import FrozenModel
from training.rl.networks.dense import Dense
from training.rl.networks.layer import LOG_STD, Layer, Parameters, Towers
from training.rl.spaces import Spaces

ADVANCED: dict[str, Any] = {"advanced": True}
# The fields of all networks, whose defaults are their own.
Hidden = Annotated[
    tuple[int, ...],
    Field(title="Hidden layers", description="Sizes of the hidden layers.", json_schema_extra=ADVANCED),
]
Activation = Annotated[Literal["tanh", "relu"], Field(title="Activation", json_schema_extra=ADVANCED)]
Shared = Annotated[bool, Field(title="Policy and value share their layers", json_schema_extra=ADVANCED)]
LogStd = Annotated[
    Literal["free", "state"],
    Field(
        title="Deviation of continuous actions",
        description="Free: one number an action. State: the network says.",
        json_schema_extra=ADVANCED,
    ),
]
LogStdInitial = Annotated[
    float,
    Field(
        ge=-5.0,
        le=2.0,
        title="Initial log standard deviation",
        description="Of continuous actions.",
        json_schema_extra=ADVANCED,
    ),
]
Orthogonal = Annotated[bool, Field(title="Orthogonal first weights", json_schema_extra=ADVANCED)]


class Network(FrozenModel):
    """A network: hidden layers after a body of its own, and a head each for policy and value."""

    reads_pictures: ClassVar[bool] = False
    has_closed_form: ClassVar[bool] = False
    """Whether all its layers are dense: their gradients and curvature are known in closed form, without torch."""

    if TYPE_CHECKING:  # Each network declares them as fields, with defaults of its own.
        kind: str
        hidden: tuple[int, ...]
        activation: Literal["tanh", "relu"]
        shared: bool
        log_std: Literal["free", "state"]
        log_std_initial: float
        orthogonal: bool

    @field_validator("hidden", check_fields=False)
    @classmethod
    def sizes_in_range(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(not 1 <= size <= 4096 for size in value):
            raise ValueError("each hidden layer must have between 1 and 4096 units")
        return value

    @abstractmethod
    def body(self, spaces: Spaces) -> Sequence[Layer]:
        """Return the layers before the hidden ones; those of pictures begin with a convolution. Raises ValueError where
        the network does not fit these spaces.
        """

    @abstractmethod
    def in_words(self) -> str:
        """Return its layers for a model card."""

    def layout(self, spaces: Spaces) -> Towers:
        """Return the layers for these spaces. Raises ValueError where the two do not fit."""
        body = list(self.body(spaces))

        def dense(units: int) -> Dense:
            return Dense(body[-1].output_shape if body else spaces.observation_shape, units)

        for units in self.hidden:
            body.append(dense(units))
        outputs = spaces.policy_outputs * (2 if self.log_std == "state" and not spaces.discrete else 1)
        policy, value = dense(outputs), dense(1)
        if self.shared:
            return Towers.of(body, [policy], [value])
        return Towers.of([], [*body, policy], [*body, value])

    def policy_macs(self, spaces: Spaces) -> int:
        """Return the multiplications of one forward pass of the policy for one observation, without biases and
        activations.
        """
        return sum(named.layer.macs for named in self.layout(spaces).actor)

    def learner_macs(self, spaces: Spaces) -> int:
        """Return the multiplications of one forward pass of policy and value for one observation; shared layers count
        once.
        """
        return sum(named.layer.macs for named in self.layout(spaces).learner)

    def initial_parameters(self, spaces: Spaces, seed: int) -> Parameters:
        """Return orthogonal weights (√2 hidden, 0.01 policy head, 1 value head) or uniform ones, and zero biases."""
        rng = np.random.Generator(np.random.PCG64(seed))
        layout = self.layout(spaces)
        gains = {layout.policy[-1].name: 0.01, layout.value[-1].name: 1.0}
        parameters: Parameters = {}
        for named in layout.learner:
            gain = gains.get(named.name, float(np.sqrt(2.0)))
            arrays = named.layer.initial_parameters(rng, gain, orthogonal=self.orthogonal)
            parameters |= zip(named.parameters, arrays, strict=True)
        if not spaces.discrete:
            if self.log_std == "free":
                size = len(spaces.action_low)
                parameters[LOG_STD] = np.full(size, self.log_std_initial, dtype=np.float32)
            else:
                parameters[f"{layout.policy[-1].name}.bias"][len(spaces.action_low) :] = self.log_std_initial
        return parameters

    @property
    def _hidden_in_words(self) -> str:
        return " × ".join(map(str, self.hidden)) or "no hidden layer"


@lru_cache(maxsize=16)
def parameter_shapes(network: Network, spaces: Spaces) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter, in the order of `initial_parameters`."""
    shapes: dict[str, tuple[int, ...]] = {}
    for named in network.layout(spaces).learner:
        shapes |= zip(named.parameters, named.layer.shapes, strict=True)
    if not spaces.discrete and network.log_std == "free":
        shapes[LOG_STD] = (len(spaces.action_low),)
    return shapes
