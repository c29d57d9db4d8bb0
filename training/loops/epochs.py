"""The three loops over epochs: functions take slices of the data, and the learner merges what they push.

A slice is some rows of one epoch. Slices are numbered over all epochs, so each row is fetched once an epoch by one
call, whichever function makes it. A function's next call leaves when its push has been merged, with the newest
parameters. A round is an epoch.

Hybrid synchronous (Wang et al. 2019) is asynchronous within an epoch, with a barrier at its end; with one function and
one local step it is plain minibatch descent, bit for bit. In bulk synchronous all functions push, then the learner
takes one step with the mean of their gradients. Fully asynchronous functions go on to the next epoch's rows without
waiting, and judging runs beside them.

A run that stops within an epoch keeps the parameters so far, the slices that are done, and pushes that wait for their
merge. A resumed run goes on with the other slices, so that no row is learned from twice in an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, NamedTuple

from training.engine.checkpoints import Progress
from training.engine.replay import Contribution
from training.loops.loop import Loop
from training.loops.state import (
    EndRound,
    Landing,
    LoopJob,
    LoopState,
    MakeVersion,
    NothingWorks,
    Sample,
    SendUpdate,
    Step,
)
from training.scaling.plan import Plan

_FAILURES_ALLOWED_PER_FUNCTION = 3


class _Push(NamedTuple):
    """What a function pushed, which waits for its merge. One from a checkpoint has no slot."""

    contribution: Contribution
    number: int = -1
    slot: int | None = None


class EpochState(LoopState):
    """The work in progress: slices by function, pushes that wait, and one merge with its `_batch`.

    `_done` are the slices that were pushed or given up; of those before `_first` all are. `_rows_ahead` are rows of
    slices that are in flight or wait for their merge.
    """

    def __init__(
        self, loop: Any, job: LoopJob, progress: Progress, plan: Plan, name: Callable[[str], str]
    ) -> None:
        super().__init__(loop, job, progress, plan, name)
        self._first = progress.first_slice
        self._done = set(progress.slices_done)
        self._next_number = self._first
        self._idle = set(range(plan.actors))
        self._sampling: dict[str, tuple[int, int, int]] = {}
        self._waiting = [_Push(push) for push in progress.waiting]
        self._merging = ""
        self._batch: list[_Push] = []
        self._merged_last = ""
        self._rows_ahead = 0
        self._dropped = 0
        self._failures_in_a_row = 0

    @property
    def waiting_for(self) -> str:
        return "functions and learner"

    @property
    def _barrier(self) -> bool:
        """Whether no slice of the next epoch leaves before this epoch has ended."""
        return bool(self.loop.ends_epochs_together)

    @property
    def _busy(self) -> bool:
        return bool(self._sampling or self._waiting or self._merging)

    @property
    def _end_of_epoch(self) -> int:
        return (self.round_no + 1) * self.job.calls_an_epoch

    @property
    def _epoch_is_over(self) -> bool:
        merged = self._first + len(self._done) - len(self._waiting) - len(self._batch)
        if not self._barrier and merged >= self._end_of_epoch:
            return True
        return self._next_slice() is None and not self._busy

    def _next_slice(self) -> int | None:
        """Return the first slice that no function has had, if one may leave now."""
        limit = self.job.progress_limit
        if limit is not None and self.total + self._rows_ahead >= limit:
            return None
        while self._next_number in self._done:
            self._next_number += 1
        if self._barrier and self._next_number >= self._end_of_epoch:
            return None
        return self._next_number

    def send(self) -> Iterator[Step]:
        """Send a merge of all pushes that wait, and a slice to every idle function."""
        together = self.loop.steps_together
        if self._waiting and not self._merging and not (together and self._sampling):
            yield self._merge()
        if together and self._busy:
            return
        for slot in sorted(self._idle):
            number = self._next_slice() if slot < self.plan.actors else None
            if number is None:
                continue
            self._idle.remove(slot)
            name = self.name(f"s{slot}-{number}")
            self._sampling[name] = slot, number, self.version
            self._next_number += 1
            self._rows_ahead += self.job.rows_of_slice(number)
            yield Sample(name, (self._merged_last, *self.after), slot, number)

    def _merge(self) -> SendUpdate:
        self._batch, self._waiting = sorted(self._waiting, key=lambda push: push.number), []
        self._merging = self.name("update")
        contributions = tuple(push.contribution for push in self._batch)
        after = (*(contribution.name for contribution in contributions), self._merged_last, *self.after)
        return SendUpdate(self._merging, after, contributions)

    def begin_round(self, plan: Plan) -> None:
        """Continue with as many functions as the next epoch's plan has."""
        at_work = {slot for slot, _, _ in self._sampling.values()} | {
            push.slot for push in (*self._waiting, *self._batch) if push.slot is not None
        }
        self._idle |= set(range(plan.actors)) - at_work
        super().begin_round(plan)

    def land(self, landing: Landing) -> Iterator[Step]:
        self.after = (landing.name,)
        if landing.name == self._merging:
            yield from self._land_merge(landing)
        else:
            self._land_push(landing)
        if landing.failure:
            raise NothingWorks(landing.failure)
        if landing.stopping:
            return
        nothing_left = not self._busy and self._epoch_is_over and not self.learned
        if nothing_left or self._failures_in_a_row > _FAILURES_ALLOWED_PER_FUNCTION * self.plan.actors:
            raise NothingWorks(f"no function returns a result any more: {self.last_failure}")
        if self._epoch_is_over and self.learned:
            yield from self._end_epoch()

    def _land_push(self, landing: Landing) -> None:
        """Take a push, or give its slice up for this epoch, but not when the run is stopping."""
        slot, number, version = self._sampling.pop(landing.name)
        if landing.done:
            self._failures_in_a_row = 0
            contribution = Contribution(landing.payload, version, landing.name)
            self._waiting.append(_Push(contribution, number, slot))
            self._finish(number)
            return
        self.last_failure = landing.reason
        self._idle.add(slot)
        self._rows_ahead -= self.job.rows_of_slice(number)
        if not landing.stopping:
            self._finish(number)
            self._dropped += 1
            self._failures_in_a_row += 1

    def _finish(self, number: int) -> None:
        self._done.add(number)
        while self._first in self._done:
            self._done.remove(self._first)
            self._first += 1

    def _land_merge(self, landing: Landing) -> Iterator[Step]:
        """Take a version, or have its pushes wait again."""
        batch, self._batch, self._merging = self._batch, [], ""
        if not landing.done:
            self._waiting = [*batch, *self._waiting]
            raise NothingWorks(f"a merge failed: {landing.reason}")
        self._merged_last = landing.name
        for push in batch:
            if push.slot is not None:
                self._rows_ahead -= self.job.rows_of_slice(push.number)
                self._idle.add(push.slot)
        self._made(landing.samples)
        yield MakeVersion(landing.name)

    def _end_epoch(self) -> Iterator[Step]:
        self._round_ended()
        dropped, self._dropped = self._dropped, 0
        yield EndRound(dropped)

    def close(self) -> Iterator[Step]:
        if self._epoch_is_over and self.learned and not self._waiting:
            yield from self._end_epoch()

    @property
    def keeps_data(self) -> bool:
        return bool(self.learned or self._waiting)

    def kept(self) -> dict[str, Any]:
        return {
            "first_slice": self._first,
            "slices_done": tuple(sorted(self._done)),
            "waiting": tuple(push.contribution for push in self._waiting),
        }


class EpochLoop(Loop):
    """A loop of trainings whose rounds are epochs over the same data.

    `steps_together`: the pushes of all functions are merged at once. `ends_epochs_together`: no slice of the next epoch
    leaves before this epoch has ended.
    """

    decides = EpochState
    over_epochs = True
    decided_by_times = "which pushes a version is made of"
    steps_together: ClassVar[bool] = False
    ends_epochs_together: ClassVar[bool] = True
    depends_on_timing: ClassVar[bool] = True


class Hybrid(EpochLoop):
    """Hybrid synchronous: functions never wait for each other within an epoch, and all wait at its end."""

    kind: Literal["hybrid"] = "hybrid"


class BulkSynchronous(EpochLoop):
    """Bulk synchronous: all functions push together, and the learner takes one step with their mean."""

    kind: Literal["bulk_synchronous"] = "bulk_synchronous"
    steps_together = True
    depends_on_timing = False


class FullyAsynchronous(EpochLoop):
    """Fully asynchronous: functions never wait for each other, not even between two epochs."""

    kind: Literal["fully_asynchronous"] = "fully_asynchronous"
    ends_epochs_together = False

    @property
    def judges_beside(self) -> bool:
        return True
