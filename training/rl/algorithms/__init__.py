"""The learning algorithms, one file each. An algorithm's fields are its form, its methods the mathematics."""

from typing import Annotated

from pydantic import Field

from training.rl.algorithms.a2c import A2C
from training.rl.algorithms.impact import Impact
from training.rl.algorithms.impala import Impala
from training.rl.algorithms.ppo import PPO

AnyAlgorithm = Annotated[PPO | A2C | Impala | Impact, Field(discriminator="kind")]
