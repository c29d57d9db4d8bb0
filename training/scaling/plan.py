"""What every scaling policy speaks: history in, a plan with its reason out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from training.base_model import Frozen
from training.measures import AnyMeasure
from training.reports import RoundReport


@dataclass(frozen=True)
class Bounds:
    """What a scaling policy may choose from. `because`: why so few, if there is more to say than that they are few."""

    actors_min: int = 1
    actors_max: int = 1024
    memory_mb_min: int = 128
    memory_mb_max: int = 10_240
    because: str = "by the bounds"


@dataclass(frozen=True)
class Plan:
    """How many actors the next round gets. `why` is shown to people."""

    actors: int
    why: str


class ScalingPolicy(Protocol):
    @property
    def measures(self) -> tuple[AnyMeasure, ...]:
        """What each update has to measure for this policy's decisions."""

    @property
    def largest(self) -> int:
        """The most actors this policy can ever ask for, for limits and worst cases before a launch."""

    def between(self, round_no: int) -> tuple[int, int]:
        """The fewest and the most actors that it can ask for in that round, for forecasts: nothing is measured yet."""

    @property
    def decision_macs(self) -> int:
        """Multiplications of the network that a decision asks; 0 where a decision is a few sums."""

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int) -> Plan:
        """The plan for the round after the last of `history`, which may begin late. Equal arguments, equal plans."""


class Deciding(Frozen):
    """The base of all policies."""

    @property
    def decision_macs(self) -> int:
        return 0


class Unmeasured(Deciding):
    """The base of policies that decide without asking the learner for more than it reports anyway."""

    @property
    def measures(self) -> tuple[AnyMeasure, ...]:
        return ()

    @property
    @abstractmethod
    def largest(self) -> int: ...

    def between(self, round_no: int) -> tuple[int, int]:
        return 1, self.largest


def within(actors: int, bounds: Bounds, why: str) -> Plan:
    """A plan held inside the bounds, saying so where they changed it."""
    allowed = max(bounds.actors_min, min(bounds.actors_max, actors))
    if allowed != actors:
        why = f"{why}; {actors} held to {allowed} {bounds.because}"
    return Plan(allowed, why)
