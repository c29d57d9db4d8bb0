"""A loop's decisions, without payloads, clock or platform: what goes into them, and what comes out.

A loop is a state machine. In goes what landed, the plan of the next round and that the run stops; out come calls to
send with what each waits for, versions to make, and the end of a round. The engine gives it bytes (`driver.py`), the
forecast gives it times. Whatever a call returned passes through it unread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from training.engine.checkpoints import Progress
from training.engine.replay import Contribution, ReplaySlice
from training.loops.aggregation import Release
from training.scaling.plan import Plan


class NothingWorks(RuntimeError):
    """No call can bring the run further. The message is the reason, for people."""


class Landing(NamedTuple):
    """A call has ended for good: done with what it returned, or not, with the reason.

    `samples` is the progress that counts with it. Of a gradient: whether it is the `last` pass over its slice, what the
    later ones need (`prepared`), and whether all its numbers are `finite`. `failure`: why nothing better can be learned
    any more. `distances` are those of older versions from the one that was made. `origin` is the driver's own.
    """

    name: str
    done: bool
    payload: bytes = b""
    samples: int = 0
    reason: str = ""
    in_vain: bool = False
    stopping: bool = False
    failure: str = ""
    last: bool = False
    prepared: bytes | None = None
    finite: bool = True
    distances: dict[int, float] | None = None
    origin: Any = None


class Sample(NamedTuple):
    """Send a call that makes data with the newest version, for `slot`. `number` counts the slot's calls or slices.

    A slot's state is that of its call that landed last, so a slot never has two calls in flight.
    """

    name: str
    after: tuple[str, ...]
    slot: int
    number: int


class SendUpdate(NamedTuple):
    """Send a call that makes the next version of these contributions."""

    name: str
    after: tuple[str, ...]
    batch: tuple[Contribution, ...]


class ComputeGradient(NamedTuple):
    """Send a call that computes gradient `number` with the newest version, in the slice's next pass.

    `others` are the versions that other learners in flight compute with, `anchors` older ones that sampled the slice.
    """

    name: str
    after: tuple[str, ...]
    number: int
    slice: ReplaySlice
    others: tuple[int, ...]
    anchors: tuple[int, ...]


class ApplyGradients(NamedTuple):
    """Send a call that makes the next version of the gradients in `release`, of which so many were `held` before.

    `behind` are the versions whose distance from the next one it measures.
    """

    name: str
    after: tuple[str, ...]
    release: Release
    ends_round: bool
    behind: tuple[int, ...]
    held: int


class MakeVersion(NamedTuple):
    """What the call `name` returned is the next version. `replayed`: all its data had been learned from before."""

    name: str
    replayed: bool = False


class EndRound(NamedTuple):
    """All versions since the last round are a round. The driver answers with `begin_round`, unless the run ends.

    Of learners that compute gradients: how stale a release might be, and the most gradients that waited.
    """

    dropped_contributions: int = 0
    bound: float | None = None
    queue_most: int = 0


class KeepData(NamedTuple):
    """No version was made, but data waits for one, which the next checkpoint must hold: plan again."""


class PlanAgain(NamedTuple):
    """Nothing came of this attempt at a round: plan it again."""


class DropGradient(NamedTuple):
    """What a gradient's call returned is not used, for this reason."""

    landing: Landing
    reason: str
    code: str


Order = Sample | SendUpdate | ComputeGradient | ApplyGradients
Step = Order | MakeVersion | EndRound | KeepData | PlanAgain | DropGradient


@dataclass(frozen=True)
class LoopJob:
    """What a loop must know of its job. `rows_of_slice` and `calls_an_epoch` are of trainings over epochs. Of learners
    that compute gradients: `samples_of` a stored one is the progress that counts with it, `keeps_sampling_policy`
    whether it needs the policy that sampled. A limit that is None does not end the run.
    """

    progress_a_call: int
    attempts: int
    replay: tuple[int, int] = (1, 1)
    calls_an_epoch: int = 0
    rows_of_slice: Callable[[int], int] = lambda number: 0
    samples_of: Callable[[bytes], int] = lambda payload: 0
    keeps_sampling_policy: bool = False
    most_actors: int = 0
    progress_limit: int | None = None
    rounds: int | None = None


class Busy(NamedTuple):
    """What works at a moment: learners and actors, gradients in the queue, learners without data, and whether anything
    learns.
    """

    learners: int
    actors: int
    queued: int
    starved: int
    learning: bool


class LoopState(ABC):
    """The state of a run between two calls. `learned` and `versions` count since the last round. `after` names the
    tasks that the next orders depend on, `judging` says whether an evaluation is in flight: the driver sets both where
    it judges.
    """

    keeps_what_lands_late: bool = True
    """Whether what lands while a run stops is kept; else the round is repeated from its beginning."""

    def __init__(
        self, loop: Any, job: LoopJob, progress: Progress, plan: Plan, name: Callable[[str], str]
    ) -> None:
        self.loop = loop
        self.job = job
        self.plan = plan
        self.name = name
        self.version = progress.version
        self.round_no = progress.round_no
        self.total = progress.total_progress
        self.learned = self.versions = 0
        self.after: tuple[str, ...] = ()
        self.judging = False
        self.last_failure = "no actor returned a result"

    @abstractmethod
    def send(self) -> Iterator[Step]:
        """Yield what can be sent now. Raises NothingWorks."""

    @abstractmethod
    def land(self, landing: Landing) -> Iterator[Step]:
        """Take in a call that has landed, and yield what follows. Each step is done before the next is asked for.
        Raises NothingWorks.
        """

    @property
    def busy(self) -> Busy:
        """What works now, in loops whose learners compute gradients."""
        return Busy(0, 0, 0, 0, False)

    def fit_learners(self, gradient_s: float, sampling_s: float, allowed: int) -> None:
        """Decide how many learners may run at once in the next round, by the seconds of the last round's gradients and
        samples.
        """
        raise NotImplementedError(f"a {self.loop.kind} loop computes no gradients")

    def begin_round(self, plan: Plan) -> None:
        """Continue with the next round's plan."""
        self.plan = plan

    def judged(self) -> Iterator[Step]:
        """A call of an evaluation has landed: yield what follows."""
        return iter(())

    def stop(self, *, out_of_money: bool) -> Iterator[Step]:
        """Nothing is in flight any more, and the run stops: yield what is still to be sent."""
        return iter(())

    def close(self) -> Iterator[Step]:
        """That has landed too: yield the last round, if there is one."""
        return iter(())

    @property
    def waiting_for(self) -> str:
        """What the run waits for, in words."""
        return "actors and learner"

    @property
    def judges_alone(self) -> bool:
        """Whether an evaluation at this round's end has the platform for itself, so that all wait for it."""
        return not self.loop.judges_beside

    @property
    def keeps_data(self) -> bool:
        """Whether it holds data or progress that no round has reported, which a checkpoint must keep."""
        return False

    @abstractmethod
    def kept(self) -> dict[str, Any]:
        """Return what a checkpoint holds of it, as fields of the progress."""

    def _made(self, samples: int) -> None:
        """Count a version that made so much progress."""
        self.version += 1
        self.versions += 1
        self.total += samples
        self.learned += samples

    def _round_ended(self) -> None:
        self.round_no += 1
        self.learned = self.versions = 0
