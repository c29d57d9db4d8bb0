"""The convolutional network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from training.base_model import setting
from training.rl.networks.convolution import Convolution
from training.rl.networks.layer import Layer
from training.rl.networks.network import (
    Activation,
    Hidden,
    LogStd,
    LogStdInitial,
    Network,
    Orthogonal,
    Shared,
)
from training.rl.spaces import Spaces

_NATURE = ((32, 8, 4, (0, 0)), (64, 4, 2, (0, 0)), (64, 3, 1, (0, 0)))
# 84 → 21 → 11 → 1, padded as "same": 2+2 rows for the first, 1+2 for the second.
_PAPERS = ((16, 8, 4, (2, 2)), (32, 4, 2, (1, 2)), (256, 11, 1, (0, 0)))


class CNN(Network):
    """Convolutional: for stacks of Atari frames."""

    reads_pictures = True

    kind: Literal["cnn"] = "cnn"
    layers: Literal["nature", "papers"] = setting(
        "nature",
        "Convolutions",
        "Nature: Mnih et al. 2015. Papers: three layers as in the Nitro and MinionsRL papers.",
        advanced=True,
    )
    hidden: Hidden = Field((512,), max_length=4)
    activation: Activation = "relu"
    shared: Shared = True
    log_std: LogStd = "free"
    log_std_initial: LogStdInitial = 0.0
    orthogonal: Orthogonal = True

    def body(self, spaces: Spaces) -> Sequence[Layer]:
        if not spaces.pictures:
            raise ValueError(
                "a convolutional network needs pictures; this environment shows numbers: choose mlp"
            )
        body: list[Layer] = []
        shape = spaces.observation_shape
        for filters, kernel, stride, pad in _NATURE if self.layers == "nature" else _PAPERS:
            body.append(Convolution(shape, filters, kernel, stride, pad))
            shape = body[-1].output_shape
            if shape[1] < 1:
                raise ValueError(
                    f"pictures of {spaces.observation_shape} are too small for these convolutions"
                )
        return body

    def in_words(self) -> str:
        return f"{self.layers} convolutions, then {self._hidden_in_words}"
