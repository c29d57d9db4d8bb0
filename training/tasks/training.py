"""What every kind of training is asked: the base of their specs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from training.base_model import FrozenModel
from training.tasks.score import Score

if TYPE_CHECKING:
    from training.loops.model import AnyLoop
    from training.scaling import AnyScaling


class StopLimits(Protocol):
    """A stop rule: when a run is over. None: no such limit."""

    @property
    def progress_limit(self) -> int | None:
        """How much to learn from, in the task's unit of progress."""

    @property
    def target_score(self) -> float | None: ...

    @property
    def rounds(self) -> int | None: ...

    @property
    def minutes(self) -> float | None: ...

    @property
    def no_progress_evaluations(self) -> int | None: ...


class EveryRounds(Protocol):
    @property
    def every_rounds(self) -> int: ...


@dataclass(frozen=True)
class TrainingFacts:
    """What pages, lists and reports say of a training, whatever its kind.

    `subject`: what is learned, in a few words. `method`: the name of the algorithm. `progress_unit`: what its
    progress counts. `score`: what it is judged by. The limits are those of its stop rule, None where it has none.
    """

    kind: str
    subject: str
    method: str
    progress_unit: str
    score: Score
    progress_limit: int | None
    rounds_limit: int | None
    minutes_limit: float | None


class Training(FrozenModel):
    """A spec of one kind of training. Each kind lists all its fields itself, in the order of its form.

    `progress_unit` is what its progress counts, `score` what it is judged by.
    """

    progress_unit: ClassVar[str]
    score: ClassVar[Score]

    if TYPE_CHECKING:
        kind: str
        scaling: AnyScaling
        loop: AnyLoop
        seed: int

        @property
        def evaluation(self) -> EveryRounds: ...

        @property
        def checkpoints(self) -> EveryRounds: ...

        @property
        def stop(self) -> StopLimits: ...

    @property
    def subject(self) -> str:
        """What is learned, in a few words."""
        raise NotImplementedError

    @property
    def method(self) -> str:
        """The name of the algorithm that learns."""
        raise NotImplementedError

    @property
    def facts(self) -> TrainingFacts:
        return TrainingFacts(
            kind=self.kind,
            subject=self.subject,
            method=self.method,
            progress_unit=self.progress_unit,
            score=self.score,
            progress_limit=self.stop.progress_limit,
            rounds_limit=self.stop.rounds,
            minutes_limit=self.stop.minutes,
        )

    @property
    def memory_mb(self) -> int:
        """The memory of one call's place."""
        raise NotImplementedError

    @property
    def copies_a_call(self) -> int:
        """How many copies a call works on side by side: its cores share them."""
        return 1

    @property
    def progress_a_call(self) -> int:
        """How much data one call makes, in the unit of progress."""
        raise NotImplementedError

    @property
    def longest_call_s(self) -> float:
        """The deadline of a call before any was seen."""
        raise NotImplementedError

    @property
    def attempts(self) -> int:
        """How often a failed call is tried."""
        raise NotImplementedError
