"""The interface of scaling policies: from a history to a plan with its reason."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pydantic import ConfigDict, model_validator

from training.base_model import FrozenModel
from training.engine.reports import RoundReport
from training.rl.measures.measures import AnyMeasure
from training.tasks.score import USUAL, Score


@dataclass(frozen=True)
class Bounds:
    """The bounds of a scaling policy's choice. `because`: the reason for the bounds, if there is a special one.

    `learners_share` is the share of its learners that a job may have, where their number is fitted.

    `memory_mb` is what the job asks for an actor. `memory_sizes_mb` are the sizes there are, smallest first; if empty,
    there is that one alone.
    """

    actors_min: int = 1
    actors_max: int = 1024
    memory_mb: int = 1024
    memory_sizes_mb: Sequence[int] = ()
    because: str = "by the bounds"
    learners_share: float = 1.0

    def nearest_memory_mb(self, wished_mb: int) -> int:
        """Return the size nearest to a wish, of two alike the smaller."""
        sizes = self.memory_sizes_mb or (self.memory_mb,)
        place = bisect_left(sizes, wished_mb)
        return min(sizes[max(0, place - 1) : place + 1] or sizes[-1:], key=lambda size: abs(size - wished_mb))


@dataclass(frozen=True)
class Plan:
    """How many actors the next round gets, and how much memory each of them has. Users see `why`. `drawn` is the pair
    of real numbers that an agent wished for, which it learns from.
    """

    actors: int
    memory_mb: int
    why: str
    drawn: tuple[float, float] | None = None


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
    def reads_times(self) -> bool:
        """Whether its decisions depend on how long calls took, so that it would decide otherwise elsewhere."""

    @property
    def memory_range_mb(self) -> tuple[int, int] | None:
        """The least and the most memory that it wishes for; None if it leaves memory as the job asks for it."""

    @property
    def decision_macs(self) -> int:
        """Multiplications of the network that decides; 0 where a decision is a few sums."""

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        """Return the plan for the round after the last of `history`, which may begin late. Deterministic.

        `score` says what the reports' scores are, and whether a higher one is better.
        """


def _in_usual_words(schema: dict[str, Any]) -> None:
    for part in (schema, *schema["properties"].values()):
        part |= {name: USUAL.say(text) for name, text in part.items() if isinstance(text, str)}


class PolicyBase(FrozenModel):
    """The base of all policies, with the answers of those that need no measurements and no network.

    `within_most` are fields that are no more than the most actors, `actors_max`. People who set only that one need not
    know of them: where they are more, they become as many.

    Titles, descriptions and reasons of policies that several kinds of training share name actors and rounds by the
    placeholders of `Declaration.say`.
    """

    model_config = ConfigDict(json_schema_extra=_in_usual_words)

    within_most: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def limit_to_most(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not cls.within_most:
            return data
        fields = cls.model_fields
        most = data.get("actors_max", fields["actors_max"].default)
        if not isinstance(most, int) or most < 1:
            return data
        given = {name: data.get(name, fields[name].default) for name in cls.within_most}
        return {**data, **{name: most for name, one in given.items() if isinstance(one, int) and one > most}}

    @property
    def reads_times(self) -> bool:
        return False

    @property
    def memory_range_mb(self) -> tuple[int, int] | None:
        return None

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


def clip_to_bounds(actors: int, bounds: Bounds, why: str, memory_mb: int | None = None) -> Plan:
    """Return a plan inside the bounds; its reason says so where they changed it. Without a wish for memory actors have
    what the job asks for.
    """
    allowed = max(bounds.actors_min, min(bounds.actors_max, actors))
    if allowed != actors:
        why = f"{why}; {actors} limited to {allowed} {bounds.because}"
    if memory_mb is None:
        return Plan(allowed, bounds.memory_mb, why)
    size_mb = bounds.nearest_memory_mb(memory_mb)
    if size_mb != memory_mb:
        why = f"{why}; {size_mb:,} MB, the size nearest to {memory_mb:,} MB"
    return Plan(allowed, size_mb, why)
