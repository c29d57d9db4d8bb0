"""What a kind of call is: one object that says all that the engine, the clouds and the pages need to know of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from training.engine.codec import CodecError, Document, decode
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result

LONGEST_CALL_S = 900.0
"""No call may take longer, on any platform."""
SLACK_BYTES = 64 * 2**10
"""What an answer may have beside its numbers: names, shapes and a few figures."""
FIGURE_LIMIT = 1e100
"""No figure that an answer reports is larger, so that sums and means of them are finite."""


class BadAnswer(ValueError):
    """What came back is not what the call requested. `code` is for programs, the message for people."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True)
class BillPart:
    """A part of the bill: its key in stored bills, its name, and what it pays for."""

    key: str
    title: str
    words: str


@dataclass(frozen=True)
class Sizes:
    """Bytes of messages, and multiplications of one sample. A trajectory and a state are those of one call.
    `parameters` are the learner's without its optimiser, `gradient` is as large as all weights.
    """

    weights: int
    learner: int
    parameters: int
    gradient: int
    trajectory: int
    state: int
    policy_macs: int
    learner_macs: int
    pictures: bool


@dataclass(frozen=True)
class PlannedCall:
    """A call that has not run, and how much of the job falls to it.

    `trajectories` and other learners' `policies` come in, `gradients` become a version, `trials` of `steps` in
    all are made. `sharing` calls judge the held-out rows together; 0: as few as do. `fewer`: each trajectory stands
    for this many, where a small fleet represents one that is as many times larger and whose lines are as many times
    faster.
    """

    training: Any
    sizes: Sizes
    contributions: int = 0
    policies: int = 0
    gradients: int = 0
    trials: int = 0
    steps: int = 0
    sharing: int = 0
    fewer: int = 1


RequestOfKind = TypeVar("RequestOfKind", bound=CallRequest)


class CallKind(ABC, Generic[RequestOfKind]):
    """One kind of call. Its subclass is the one file, its instance in `training.calls.KINDS` the one row.

    `role`: calls make data, learn from it, or judge what was learned. Those that judge belong to no round.
    `makes_version`: the call returns the next version, so a round ends when its last such call has landed.
    `timed_as`: whether the work is timed by the speed of sampling (steps, inferences) or of learning (minibatches,
    samples), wherever it runs. `where` is its usual place; a call may name the other.
    `attempts` and `deadline_s` are fixed for the kind, or None where the job's own hold. `grows_with_trials`: a
    deadline grows with the number of trials that the call asks for.
    `title` names the kind in a bill, `who` its calls in the list of a round's calls, and `subject` one of them at the
    beginning of a sentence.
    """

    name: str
    request: type[RequestOfKind]
    role: Literal["sampling", "learning", "judging"]
    timed_as: Literal["sampling", "learning"]
    where: Literal["actor", "learner"]
    part: BillPart
    title: str
    who: str
    subject: str
    makes_version: bool = False
    attempts: int | None = None
    deadline_s: float | None = None
    grows_with_trials: bool = False

    @abstractmethod
    def answer_limit_bytes(self, call: Call, request: RequestOfKind) -> int:
        """Return the most bytes that an answer to this call can have, unpacked."""

    @abstractmethod
    def check(self, call: Call, request: RequestOfKind, result: Result) -> None:
        """Raise BadAnswer unless `result` can be used as the answer to this call. Actors are not trusted."""

    @abstractmethod
    def expected_work(self, planned: PlannedCall) -> Usage:
        """Return the work and the bytes of a call before it runs, by arithmetic from the spec."""

    def stepped(self, request: RequestOfKind) -> str:
        """Return the name of what the call steps; empty if it steps nothing."""
        return ""

    def copies(self, request: RequestOfKind) -> int:
        """Return how many copies of it the call steps together."""
        return 1

    def trials(self, request: RequestOfKind) -> int | None:
        """Return how many trials the call asks for, or None if their number is not its question."""
        return None


AnyKind = CallKind[Any]


def read_document(data: bytes, most_bytes: int, keys: set[str] | None, code: str) -> Document:
    """Return an answer's document, which has exactly these keys. Raises BadAnswer."""
    try:
        document = decode(data, body_limit_bytes=most_bytes)
    except (CodecError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise BadAnswer("codec", f"the result cannot be read: {error}") from None
    if keys is not None and set(document) != keys:
        odd = sorted(map(str, set(document) ^ keys))[:5]
        raise BadAnswer(code, f"the result lacks or adds: {', '.join(odd)}")
    return document
