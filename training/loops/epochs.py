"""The three loops over epochs: functions take slices of the data, and the learner merges what they push.

A slice is some rows of one epoch. Slices are numbered over all epochs, so each row is fetched once an epoch by one
call, whichever function makes it. A function's next call leaves when its push has been merged, with the newest
parameters. A round is an epoch.

A run that stops within an epoch keeps the parameters so far, the slices that are done, and pushes that wait for their
merge. A resumed run goes on with the other slices, so that no row is learned from twice in an epoch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from training.data.shard import BadShard
from training.data.store import MissingData
from training.loops.evaluation import Evaluation
from training.loops.flight import Landed
from training.loops.run import Run
from training.messages import Event
from training.replay import Trajectory
from training.stopping import Halt


class _Pushed:
    """A push that waits for its merge. One from a checkpoint has no slot."""

    def __init__(self, trajectory: Trajectory, number: int = -1, slot: int | None = None) -> None:
        self.trajectory, self.number, self.slot = trajectory, number, slot


class _Traffic:
    """The work in progress: slices by function, pushes that wait, one merge with its `batch`, at most one evaluation.

    `together`: the pushes of all functions are merged at once. `barrier`: no slice of the next epoch leaves before
    this epoch has ended. `done` are the slices that were pushed or given up; of those before `first` all are.
    """

    def __init__(self, run: Run, *, together: bool, barrier: bool) -> None:
        self.run = run
        self.together, self.barrier = together, barrier
        self.an_epoch = run.task.calls_an_epoch
        self.plan = run.plan()
        self.started_s = run.now_s()
        self.states = dict(run.progress.env_states)
        self.first = run.progress.first_slice
        self.done = set(run.progress.slices_done)
        self.next_number = self.first
        self.idle = set(range(self.plan.actors))
        self.sampling: dict[str, tuple[int, int]] = {}
        self.waiting = [_Pushed(one) for one in run.progress.waiting]
        self.merging: str | None = None
        self.batch: list[_Pushed] = []
        self.merged_last: tuple[str, ...] = ()
        self.rows_ahead = 0
        self.dropped = 0
        self.failures_in_a_row = 0
        self.evaluation: Evaluation | None = None

    @property
    def busy(self) -> bool:
        return bool(self.sampling or self.waiting or self.merging)

    @property
    def epoch_is_over(self) -> bool:
        merged = self.first + len(self.done) - len(self.waiting) - len(self.batch)
        if not self.barrier and merged >= (self.run.progress.round_no + 1) * self.an_epoch:
            return True
        return self.next_slice() is None and not self.busy

    def next_slice(self) -> int | None:
        """Return the first slice that no function has had, if one may leave now."""
        limit = self.run.spec.stop.progress_limit
        if limit is not None and self.run.progress.total_env_steps + self.rows_ahead >= limit:
            return None
        while self.next_number in self.done:
            self.next_number += 1
        if self.barrier and self.next_number >= (self.run.progress.round_no + 1) * self.an_epoch:
            return None
        return self.next_number

    def send(self) -> None:
        """Send a merge of all pushes that wait, and a slice to every idle function."""
        if self.waiting and self.merging is None and not (self.together and self.sampling):
            self._send_merge()
        if self.together and self.busy:
            return
        for slot in sorted(self.idle):
            number = self.next_slice() if slot < self.plan.actors else None
            if number is None:
                continue
            self.idle.remove(slot)
            call = self.run.descend(slot, number, self.states.get(slot))
            name = self.run.flight.launch(call, self.run.attempts(call), self.merged_last)
            self.sampling[name] = slot, number
            self.next_number += 1
            self.rows_ahead += self.run.task.rows_of_slice(number)

    def _send_merge(self) -> None:
        self.batch, self.waiting = sorted(self.waiting, key=lambda pushed: pushed.number), []
        call = self.run.learn([pushed.trajectory.payload for pushed in self.batch])
        names = [pushed.trajectory.name for pushed in self.batch if pushed.trajectory.name]
        self.merging = self.run.flight.launch(call, self.run.attempts(call), [*names, *self.merged_last])

    def follow(self) -> None:
        """Plan the next epoch and continue with as many functions as it has."""
        plan = self.run.plan()
        at_work = {slot for slot, _ in self.sampling.values()} | {
            pushed.slot for pushed in (*self.waiting, *self.batch) if pushed.slot is not None
        }
        self.idle |= set(range(plan.actors)) - at_work
        self.plan, self.started_s = plan, self.run.now_s()

    def judge(self) -> None:
        """Judge the newest version beside everything else, unless another is still being judged."""
        if self.evaluation is None:
            self.evaluation = self.run.evaluation()
            for call in self.evaluation.calls:
                self.run.flight.launch(call, self.run.attempts(call))

    def land_push(self, landed: Landed, *, stopping: bool = False) -> str:
        """Take a push, or give its slice up for this epoch, but not when the run is stopping. Return why no more can be
        learned, or an empty text.
        """
        slot, number = self.sampling.pop(landed.name)
        rows = self.run.task.rows_of_slice(number)
        if landed.outcome is None:
            self.run.last_failure = landed.reason
            self.idle.add(slot)
            self.rows_ahead -= rows
            if not stopping:
                self._finish(number)
                self.dropped += 1
                self.failures_in_a_row += 1
            return ""
        self.failures_in_a_row = 0
        if landed.outcome.env_state is not None:
            self.states[slot] = landed.outcome.env_state
        version = landed.call.weights.version if landed.call.weights is not None else 0
        self.waiting.append(_Pushed(Trajectory(landed.outcome.payload, version, landed.name), number, slot))
        self._finish(number)
        return self.run.task.failure_in(landed.outcome.payload)

    def _finish(self, number: int) -> None:
        self.done.add(number)
        while self.first in self.done:
            self.done.remove(self.first)
            self.first += 1

    def land_merge(self, landed: Landed) -> str:
        """Take a version, or have its pushes wait again. Return why no more can be learned, or an empty text."""
        batch, self.batch, self.merging = self.batch, [], None
        if landed.outcome is None:
            self.waiting = [*batch, *self.waiting]
            return ""
        self.merged_last = (landed.name,)
        self.run.new_version(landed.outcome)
        for pushed in batch:
            if pushed.slot is not None:
                self.rows_ahead -= self.run.task.rows_of_slice(pushed.number)
                self.idle.add(pushed.slot)
        return self.run.task.failure_in(landed.outcome.payload)

    def end_epoch(self) -> Iterator[Event]:
        run = self.run
        merging_s = run.learning_s_in_round
        yield from run.end_round(
            self.plan,
            run.flight.take_tally(),
            started_s=self.started_s,
            collect_s=max(0.0, run.now_s() - self.started_s - merging_s),
            dropped_trajectories=self.dropped,
            **self.changes,
        )
        self.dropped = 0

    @property
    def changes(self) -> dict[str, Any]:
        """What a checkpoint holds of it, as fields of the progress."""
        return {
            "env_states": dict(self.states),
            "first_slice": self.first,
            "slices_done": tuple(sorted(self.done)),
            "waiting": tuple(pushed.trajectory for pushed in self.waiting),
        }


def hybrid(run: Run) -> Iterator[Event]:
    """The hybrid synchronous loop (Wang et al. 2019): asynchronous within an epoch, a barrier at its end.

    With one function and one local step it is plain minibatch descent, bit for bit.
    """
    yield from _with_readable_data(run, together=False, barrier=True)


def bulk_synchronous(run: Run) -> Iterator[Event]:
    """All functions push, then the learner takes one step with the mean of their gradients."""
    yield from _with_readable_data(run, together=True, barrier=True)


def fully_asynchronous(run: Run) -> Iterator[Event]:
    """Functions go on to the next epoch's rows without waiting; judging runs beside them."""
    yield from _with_readable_data(run, together=False, barrier=False)


def _with_readable_data(run: Run, *, together: bool, barrier: bool) -> Iterator[Event]:
    """Run a loop over epochs to its end. Rows that are not there any more, or were changed, end it."""
    try:
        yield from _over_epochs(run, together=together, barrier=barrier)
    except (MissingData, BadShard) as error:
        halt = Halt("failing", f"the data cannot be read: {error}")
        yield from run.flight.drain(halt)
        yield from run.end(halt)


def _over_epochs(run: Run, *, together: bool, barrier: bool) -> Iterator[Event]:
    halt = run.over()
    if halt is not None:
        yield from run.end(halt)
        return
    traffic = _Traffic(run, together=together, barrier=barrier)
    run.flight.waiting_for = "functions and learner"
    while halt is None:
        traffic.send()
        if len(run.flight):
            landed = yield from run.flight.next()
            if landed is not None:
                halt = yield from _land(traffic, landed)
        halt = run.flight.halt or halt or _stuck(traffic)
        if halt is None and traffic.epoch_is_over and run.learned_in_round:
            halt = yield from _next_epoch(traffic)
    for landed in (yield from run.flight.drain(halt)):
        if landed.name in traffic.sampling:
            traffic.land_push(landed, stopping=True)
        elif landed.name == traffic.merging:
            traffic.land_merge(landed)
    if traffic.epoch_is_over and run.learned_in_round and not traffic.waiting:
        yield from traffic.end_epoch()
    elif run.learned_in_round or traffic.waiting:
        run.keep(**traffic.changes)
    yield from run.end(halt)


def _stuck(traffic: _Traffic) -> Halt | None:
    """Return why nothing goes on any more, or None."""
    run = traffic.run
    nothing_left = not len(run.flight) and traffic.epoch_is_over and not run.learned_in_round
    if nothing_left or traffic.failures_in_a_row > 3 * traffic.plan.actors:
        return Halt("failing", f"no function returns a result any more: {run.last_failure}")
    return None


def _land(traffic: _Traffic, landed: Landed) -> Generator[Event, None, Halt | None]:
    run = traffic.run
    reason = ""
    if landed.name in traffic.sampling:
        reason = traffic.land_push(landed, stopping=run.flight.halt is not None)
    elif landed.name == traffic.merging:
        reason = traffic.land_merge(landed)
        if landed.outcome is None and run.flight.halt is None:
            return Halt("failing", f"a merge failed: {landed.reason}")
    elif traffic.evaluation is not None and traffic.evaluation.expects(landed):
        traffic.evaluation.land(landed)
        if traffic.evaluation.complete:
            run.flight.after = traffic.evaluation.names
            yield from run.record_evaluation(traffic.evaluation)
            traffic.evaluation = None
            return run.over()
    return Halt("failing", reason) if reason else None


def _next_epoch(traffic: _Traffic) -> Generator[Event, None, Halt | None]:
    run = traffic.run
    yield from traffic.end_epoch()
    if run.evaluation_due and traffic.barrier:
        yield from run.evaluate()
        run.flight.waiting_for = "functions and learner"
    yield from run.save_if_due()
    halt = run.flight.halt or run.over()
    if halt is None:
        traffic.follow()
        if run.evaluation_due and not traffic.barrier:
            traffic.judge()
    return halt
