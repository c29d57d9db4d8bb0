"""The fully connected network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

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


class MLP(Network):
    """Fully connected: for vectors of numbers."""

    has_closed_form = True

    kind: Literal["mlp"] = "mlp"
    hidden: Hidden = Field((64, 64), min_length=1, max_length=6)
    activation: Activation = "tanh"
    shared: Shared = False
    log_std: LogStd = "free"
    log_std_initial: LogStdInitial = 0.0
    orthogonal: Orthogonal = True

    def body(self, spaces: Spaces) -> Sequence[Layer]:
        if spaces.pictures:
            raise ValueError("a fully connected network cannot look at pictures: choose cnn")
        return ()

    def in_words(self) -> str:
        return f"MLP, {self._hidden_in_words}"
