"""Scaling policies: they decide how many actors a round gets. A policy maps a history to a plan, without state or
I/O.
"""

from typing import Annotated

from pydantic import Field

from training.scaling.boosting import Boosting
from training.scaling.chance import Chance
from training.scaling.doubling import Doubling
from training.scaling.fixed import Fixed
from training.scaling.learned import Learned
from training.scaling.noise_scale import NoiseScale
from training.scaling.ramp import Ramp
from training.scaling.reward_ratio import RewardRatio
from training.scaling.scale_in import ScaleIn
from training.scaling.schedule import ActorSchedule
from training.scaling.siren import Siren

AnyScaling = Annotated[
    Fixed
    | Ramp
    | Boosting
    | Learned
    | RewardRatio
    | NoiseScale
    | Doubling
    | ActorSchedule
    | Chance
    | Siren
    | ScaleIn,
    Field(discriminator="kind"),
]
AnyEpochScaling = Annotated[
    Fixed | Ramp | Doubling | ActorSchedule | Chance | Siren, Field(discriminator="kind")
]
"""Those that read nothing of a policy, for trainings whose rounds are epochs over the same data."""
