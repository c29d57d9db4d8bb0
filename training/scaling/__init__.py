"""Who decides how many actors a round gets. History in, plan out; no state, clock or I/O."""

from typing import Annotated

from pydantic import Field

from training.scaling.fixed import Fixed
from training.scaling.ramp import Ramp

AnyScaling = Annotated[Fixed | Ramp, Field(discriminator="kind")]
