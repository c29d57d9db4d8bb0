"""The loops that a user can choose. Each is in the file of its name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from training.loops.asynchronous import Asynchronous
from training.loops.epochs import BulkSynchronous, FullyAsynchronous, Hybrid
from training.loops.pipelined import Pipelined
from training.loops.staleness_aware import StalenessAware
from training.loops.synchronous import Synchronous

AnyLoop = Annotated[Synchronous | Pipelined | Asynchronous | StalenessAware, Field(discriminator="kind")]
AnyEpochLoop = Annotated[Hybrid | BulkSynchronous | FullyAsynchronous, Field(discriminator="kind")]
"""Loops of trainings whose rounds are epochs over the same data."""
LoopOfAnyKind = AnyLoop | AnyEpochLoop
