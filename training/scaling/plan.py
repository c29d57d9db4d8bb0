"""The interface of scaling policies: from a history to a plan with its reason."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from training.base_model import FrozenModel
from training.measures import AnyMeasure
from training.reports import RoundReport


@dataclass(frozen=True)
class Bounds:
    """The bounds of a scaling policy's choice. `because`: the reason for the bounds, if there is a special one."""

    actors_min: int = 1
    actors_max: int = 1024
    memory_mb_min: int = 128
    memory_mb_max: int = 10_240
    because: str = "by the bounds"


@dataclass(frozen=True)
class Plan:
    """How many actors the next round gets. Users see `why`."""

    actors: int
    why: str


class ScalingPolicy(Protocol):
    @property
    def measures(self) -> tuple[AnyMeasure, ...]:
        """What each update must measure for this policy's decisions."""

    @property
    def largest(self) -> int:
        """The most actors that this policy can ever request, for limits and worst cases before a launch."""

    def actor_range(self, round_no: int) -> tuple[int, int]:
        """Return the fewest and the most actors that it can request in that round, for forecasts without
        measurements.
        """

    @property
    def decision_macs(self) -> int:
        """Multiplications of the network that decides; 0 where a decision is a few sums."""

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int) -> Plan:
        """Return the plan for the round after the last of `history`, which may begin late. Deterministic."""


class PolicyBase(FrozenModel):
    """The base of all policies, with the answers of those that need no measurements and no network."""

    @property
    def decision_macs(self) -> int:
        return 0

    @property
    def measures(self) -> tuple[AnyMeasure, ...]:
        return ()

    @property
    @abstractmethod
    def largest(self) -> int: ...

    def actor_range(self, round_no: int) -> tuple[int, int]:
        return 1, self.largest


def clip_to_bounds(actors: int, bounds: Bounds, why: str) -> Plan:
    """Return a plan inside the bounds; its reason says so where they changed it."""
    allowed = max(bounds.actors_min, min(bounds.actors_max, actors))
    if allowed != actors:
        why = f"{why}; {actors} limited to {allowed} {bounds.because}"
    return Plan(allowed, why)
