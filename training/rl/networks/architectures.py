"""The network architectures that a user can choose, and their layers. Only sizes: no arrays."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from training.base_model import FrozenModel
from training.rl.spaces import Spaces

_ADVANCED: dict[str, Any] = {"advanced": True}


class Network(FrozenModel):
    """What every network says of itself: its layers for given spaces, and what may compute it.

    All have hidden layers after a body of their own, and a head each for policy and value.
    """

    reads_pictures: ClassVar[bool] = False
    has_closed_form: ClassVar[bool] = False
    """Whether its gradients and curvature are known in closed form, so that no torch is needed."""

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
    def body(self, spaces: Spaces) -> tuple[list[Layer], int]:
        """Return the layers before the hidden ones, and how many features they give. Raises ValueError where the
        network does not fit these spaces.
        """

    @abstractmethod
    def in_words(self) -> str:
        """Return its layers for a model card."""

    def layout(self, spaces: Spaces) -> Towers:
        """Return the layers for these spaces. Raises ValueError where the two do not fit."""
        body, features = self.body(spaces)
        for units in self.hidden:
            body.append(Dense(features, units))
            features = units
        outputs = spaces.policy_outputs * (2 if self.log_std == "state" and not spaces.discrete else 1)
        policy, value = Dense(features, outputs), Dense(features, 1)
        if self.shared:
            return Towers(tuple(body), (policy,), (value,))
        return Towers((), (*body, policy), (*body, value))

    def policy_macs(self, spaces: Spaces) -> int:
        """Return the multiplications of one forward pass of the policy for one observation, without biases and
        activations.
        """
        layout = self.layout(spaces)
        return _macs((*layout.trunk, *layout.policy), spaces)

    def learner_macs(self, spaces: Spaces) -> int:
        """Return the multiplications of one forward pass of policy and value for one observation; shared layers count
        once.
        """
        return self.policy_macs(spaces) + _macs(self.layout(spaces).value, spaces)

    @property
    def _hidden_in_words(self) -> str:
        return " × ".join(map(str, self.hidden)) or "no hidden layer"


class MLP(Network):
    """Fully connected: for vectors of numbers."""

    kind: Literal["mlp"] = "mlp"
    has_closed_form = True
    hidden: tuple[int, ...] = Field(
        (64, 64),
        min_length=1,
        max_length=6,
        title="Hidden layers",
        description="Sizes of the hidden layers.",
        json_schema_extra=_ADVANCED,
    )
    activation: Literal["tanh", "relu"] = Field("tanh", title="Activation", json_schema_extra=_ADVANCED)
    shared: bool = Field(False, title="Policy and value share their layers", json_schema_extra=_ADVANCED)
    log_std: Literal["free", "state"] = Field(
        "free",
        title="Deviation of continuous actions",
        description="Free: one number an action. State: the network says.",
        json_schema_extra=_ADVANCED,
    )
    log_std_initial: float = Field(
        0.0,
        ge=-5.0,
        le=2.0,
        title="Initial log standard deviation",
        description="Of continuous actions.",
        json_schema_extra=_ADVANCED,
    )
    orthogonal: bool = Field(True, title="Orthogonal first weights", json_schema_extra=_ADVANCED)

    def body(self, spaces: Spaces) -> tuple[list[Layer], int]:
        if spaces.pictures:
            raise ValueError("a fully connected network cannot look at pictures: choose cnn")
        return [], spaces.observation_size

    def in_words(self) -> str:
        return f"MLP, {self._hidden_in_words}"


class CNN(Network):
    """Convolutional: for stacks of Atari frames."""

    kind: Literal["cnn"] = "cnn"
    reads_pictures = True
    layers: Literal["nature", "papers"] = Field(
        "nature",
        title="Convolutions",
        description="Nature: Mnih et al. 2015. Papers: three layers as in the Nitro and MinionsRL papers.",
        json_schema_extra=_ADVANCED,
    )
    hidden: tuple[int, ...] = Field((512,), max_length=4, title="Hidden layers", json_schema_extra=_ADVANCED)
    activation: Literal["tanh", "relu"] = Field("relu", title="Activation", json_schema_extra=_ADVANCED)
    shared: bool = Field(True, title="Policy and value share their layers", json_schema_extra=_ADVANCED)
    log_std: Literal["free", "state"] = Field(
        "free", title="Deviation of continuous actions", json_schema_extra=_ADVANCED
    )
    log_std_initial: float = Field(
        0.0, ge=-5.0, le=2.0, title="Initial log standard deviation", json_schema_extra=_ADVANCED
    )
    orthogonal: bool = Field(True, title="Orthogonal first weights", json_schema_extra=_ADVANCED)

    def body(self, spaces: Spaces) -> tuple[list[Layer], int]:
        if not spaces.pictures:
            raise ValueError(
                "a convolutional network needs pictures; this environment shows numbers: choose mlp"
            )
        body: list[Layer] = []
        channels, size = spaces.observation_shape[0], spaces.observation_shape[1]
        for filters, kernel, stride, pad in _NATURE if self.layers == "nature" else _PAPERS:
            layer = Convolution(channels, filters, kernel, stride, pad)
            body.append(layer)
            channels, size = filters, layer.size_after(size)
            if size < 1:
                raise ValueError(
                    f"pictures of {spaces.observation_shape} are too small for these convolutions"
                )
        return body, channels * size * size

    def in_words(self) -> str:
        return f"{self.layers} convolutions, then {self._hidden_in_words}"


AnyNetwork = Annotated[MLP | CNN, Field(discriminator="kind")]


@dataclass(frozen=True)
class Convolution:
    """A square convolution; `pad` is (before, after) on both axes."""

    inputs: int
    filters: int
    kernel: int
    stride: int
    pad: tuple[int, int] = (0, 0)

    def size_after(self, size: int) -> int:
        return (size + sum(self.pad) - self.kernel) // self.stride + 1


@dataclass(frozen=True)
class Dense:
    inputs: int
    outputs: int


Layer = Convolution | Dense


@dataclass(frozen=True)
class Towers:
    """The layers of a network: a trunk that policy and value share (it may be empty), then the layers of each."""

    trunk: tuple[Layer, ...]
    policy: tuple[Layer, ...]
    value: tuple[Layer, ...]


def _macs(layers: tuple[Layer, ...], spaces: Spaces) -> int:
    """Return the multiplications of consecutive layers. Convolutions come first, because they read the picture."""
    total, size = 0, spaces.observation_shape[-1]
    for layer in layers:
        if isinstance(layer, Convolution):
            size = layer.size_after(size)
            total += size * size * layer.filters * layer.inputs * layer.kernel**2
        else:
            total += layer.inputs * layer.outputs
    return total


_NATURE = ((32, 8, 4, (0, 0)), (64, 4, 2, (0, 0)), (64, 3, 1, (0, 0)))
# 84 → 21 → 11 → 1, padded as "same": 2+2 rows for the first, 1+2 for the second.
_PAPERS = ((16, 8, 4, (2, 2)), (32, 4, 2, (1, 2)), (256, 11, 1, (0, 0)))
