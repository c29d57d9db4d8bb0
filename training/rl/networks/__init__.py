"""The policy's network: a network is one file and one row here.

A network declares its layers (`network.py`). Each kind of layer knows its parameters, its multiplications, and how
numpy, torch and ONNX compute it (`layer.py`). Actors act in numpy (`inference.py`). Gradients and curvature of
networks whose layers are all dense are in closed form, those of all others are torch's (`torch_network.py`).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from training.rl.networks.cnn import CNN
from training.rl.networks.layer import LOG_STD, Floats, Parameters
from training.rl.networks.mlp import MLP
from training.rl.networks.network import Network

AnyNetwork = Annotated[MLP | CNN, Field(discriminator="kind")]

__all__ = ["CNN", "LOG_STD", "MLP", "AnyNetwork", "Floats", "Network", "Parameters"]
