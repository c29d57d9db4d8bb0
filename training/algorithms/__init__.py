"""The learning algorithms, one file each. An algorithm's fields are its form, its methods the mathematics."""

from typing import Annotated

from pydantic import Field

from training.algorithms.a2c import A2C
from training.algorithms.impact import Impact
from training.algorithms.impala import Impala
from training.algorithms.ppo import PPO

AnyAlgorithm = Annotated[PPO | A2C | Impala | Impact, Field(discriminator="kind")]
