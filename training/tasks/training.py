"""What every kind of training declares: the base of their specs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from training.base_model import FrozenModel
from training.tasks.score import Declaration, Score

if TYPE_CHECKING:
    from training.loops.model import LoopOfAnyKind
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
    `memory_mb`: the memory of one call's place; 0 if it is not stored.
    """

    kind: str
    subject: str
    method: str
    progress_unit: str
    score: Score
    progress_limit: int | None
    rounds_limit: int | None
    minutes_limit: float | None
    memory_mb: int


class Training(FrozenModel):
    """A spec of one kind of training. Each kind lists all its fields itself, in the order of its form.

    `progress_unit` is what its progress counts, `score` what it is judged by, `learned` what people take away of it: a
    policy, a model. `actor_name` and `round_name` are its words for an actor and a round, `reviewed` the fields that
    sum a new run up, each a word and its path. `limit_field` is the path of the limit of its progress, `memory_field`
    that of the memory of a call's place.
    """

    progress_unit: ClassVar[str]
    score: ClassVar[Score]
    learned: ClassVar[str]
    actor_name: ClassVar[str] = "actor"
    round_name: ClassVar[str] = "round"
    reviewed: ClassVar[tuple[tuple[str, str], ...]]
    limit_field: ClassVar[str]
    memory_field: ClassVar[str]

    if TYPE_CHECKING:
        kind: str
        scaling: AnyScaling
        loop: LoopOfAnyKind
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
    def declaration(self) -> Declaration:
        return self.declare()

    @classmethod
    def declare(cls) -> Declaration:
        """Return what this kind of training declares."""
        return Declaration(cls.progress_unit, cls.score, cls.learned, cls.actor_name, cls.round_name)

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
            memory_mb=self.memory_mb,
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
