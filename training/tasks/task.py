"""The port between the engine and a kind of training: how a run begins, what its calls ask for, how it is judged and
what it reports.

The engine knows calls, versions, rounds, money and time. All that it would have to know of what is learned, it asks a
task. A run's data is opaque to it: bytes that calls return and later calls take.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from training.engine.codec import Document
from training.engine.memory_needs import ACTOR_PROCESS, JOB_PROCESS, MemoryNeeds, Need
from training.tasks.training import Training, TrainingFacts

if TYPE_CHECKING:
    from training.engine.checkpoints import Progress
    from training.engine.reports import EvaluationFigures, Figures
    from training.engine.unfinished import Unfinished

SpecOfKind = TypeVar("SpecOfKind", bound=Training)


@dataclass(frozen=True)
class Judging:
    """One call that judges a version. Its deadline grows with its `share`."""

    request: Any
    share: int


@dataclass(frozen=True)
class Mismatch:
    """A part of a spec that does not fit weights which another spec learned. `path` leads to its field. `learned` says
    how the weights were learned instead; empty if they were learned with another such part.
    """

    part: str
    path: str
    learned: str = ""


class Task(ABC, Generic[SpecOfKind]):
    """One kind of training, for one spec. Its subclass is the one file, its row is in `training.tasks.kinds`.

    `sampling`, `learning` and `judging` are its kinds of calls, `spec_model` is the model of its specs;
    `round_figures` and `evaluation_figures` are what it reports of a round and of an evaluation beside what every kind
    reports.
    """

    kind: str
    sampling: str
    learning: str
    judging: str
    spec_model: type[SpecOfKind]
    round_figures: type[Figures]
    evaluation_figures: type[EvaluationFigures]

    def __init__(self, spec: SpecOfKind) -> None:
        self.spec = spec

    @classmethod
    def facts_of(cls, stored: Mapping[str, Any]) -> TrainingFacts:
        """Return the facts of a spec as it is stored. Raises ValueError if it cannot be read."""
        return cls.spec_model.model_validate(stored).facts

    @abstractmethod
    def begin(self) -> Progress:
        """Return the progress before the first round."""

    @abstractmethod
    def fork(self, progress: Progress) -> Progress:
        """Return the start of a run that begins with the weights of another. Raises CheckpointError."""

    def incompatible_part(self, other: SpecOfKind) -> tuple[str, object] | None:
        """Return the name and value of a part in which `other` learns something else, so that its checkpoints do not
        fit; None if they do.
        """
        return None

    def unfinished_reason(self, other: SpecOfKind, unfinished: Unfinished) -> str:
        """Return how learners of `other` began what this spec cannot finish; empty if it can."""
        return ""

    def mismatches(self, other: SpecOfKind) -> list[Mismatch]:
        """Return all parts of this spec that do not fit the weights which `other` learned."""
        part = self.incompatible_part(other)
        return [] if part is None else [Mismatch(part[0], part[0])]

    def notes(self) -> tuple[str, ...]:
        """Return what a user should know before the first round."""
        return ()

    def memory_needs(self, spaces: Any, workers: int) -> MemoryNeeds:
        """Return what a job needs. `spaces` are those of what it steps, None where it has none; `workers` are the
        processes that the job's process sends its calls to directly.
        """
        return MemoryNeeds((Need("process", JOB_PROCESS),), (Need("process", ACTOR_PROCESS),))

    def stepping(self) -> str:
        """Return who computes what is sampled, in one sentence; empty if there is nothing to say."""
        return ""

    @abstractmethod
    def sample(self, slot: int) -> Any:
        """Return the request of a call that makes data with the newest version, for `slot`."""

    @abstractmethod
    def learn(self, fraction_done: float) -> Any:
        """Return the request of a call that makes the next version. Its inputs are the learner's state and the data.

        Its payload is a document with at least `state`, `weights`, `version` and `env_steps`, the progress it made.
        """

    @property
    def passes(self) -> int:
        """How many passes learners that compute gradients make over a slice of the data."""
        return 1

    @property
    def keeps_sampling_policy(self) -> bool:
        """Whether a gradient needs the weights of the policy that sampled its slice."""
        return False

    def parameters(self, learner: bytes) -> bytes:
        """Return what a gradient needs of the learner's state, to publish."""
        raise NotImplementedError(f"{self.kind} does not learn by gradients")

    def gradient(self, fraction_done: float, pass_no: int, policies: int, *, anchors: int) -> Any:
        """Return the request of a call that computes a gradient in a slice's pass.

        Its inputs are the slice's data, as many policies of other learners in flight, and as many `anchors`, older
        policies that sampled the slice. Its `slot_state` is what the first pass returned for the later ones. Its
        payload is a document with at least `last`, whether no pass follows, and `env_steps`, the progress that counts
        once it is applied.
        """
        raise NotImplementedError(f"{self.kind} does not learn by gradients")

    def apply(
        self, fraction_done: float, weights: tuple[float, ...], *, ends_round: bool, policies: int = 0
    ) -> Any:
        """Return the request of a call that makes the next version from gradients with these weights.

        Its inputs are the learner's state, the gradients, and as many `policies` whose distances from the next version
        its payload tells as `distances`, pairs of a version and a number. Else its payload is like that of `learn`, and
        holds the next version's `parameters`.
        """
        raise NotImplementedError(f"{self.kind} does not learn by gradients")

    @property
    def calls_an_epoch(self) -> int:
        """How many calls go over all data once, where there is a fixed set of it."""
        raise NotImplementedError

    def slice(self, number: int, slot: int) -> Any:
        """Return the request of a call that learns from slice `number` of the data, counted over all epochs."""
        raise NotImplementedError

    def rows_of_slice(self, number: int) -> int:
        """Return how much progress slice `number` is."""
        raise NotImplementedError

    def inputs_of(self, request: Any) -> tuple[bytes, ...]:
        """Return the data that a call needs beside the published version, where its platform does not hold it."""
        return ()

    def failure_in(self, payload: bytes) -> str:
        """Return in one sentence why no later version can be better than the one in `payload`; empty as a rule."""
        return ""

    @property
    def replay(self) -> tuple[int, int]:
        """How many batches an asynchronous loop keeps, and how many times each batch may be learned from in all."""
        return 1, 1

    @abstractmethod
    def judge(self, round_no: int, actors: int) -> Sequence[Judging]:
        """Return the calls of an evaluation after `round_no`."""

    def most_judgings(self) -> tuple[int, int]:
        """Return the most calls of an evaluation, and the largest share of one of them, for prices beforehand."""
        calls = self.judge(0, 1)
        return len(calls), max(call.share for call in calls)

    @abstractmethod
    def round_figures_of(self, learned: Sequence[Document]) -> Figures:
        """Return the figures of a round from the payloads of its updates, of which there is at least one."""

    @abstractmethod
    def evaluation_figures_of(self, judged: Sequence[Document]) -> EvaluationFigures:
        """Return the figures of an evaluation from the payloads of its calls, of which there is at least one."""
