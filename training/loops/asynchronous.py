"""The asynchronous loop: actors and learner never wait for each other, and each uses the newest version or data.

Data older than the staleness limit is dropped and counted. Actors pause while more data waits than the learner can
use before it gets too old: sampling it would only cost money. When no new data has arrived and the algorithm allows
it, the learner uses old data again.

A checkpoint holds the data that waits, the data that may be used again, and each slot's count of fragments. A run that
stops first receives what is still in flight and keeps what was done. So a resumed run loses no data that was paid for
before its checkpoint, and learns from none more often than its uses.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from training.loops.evaluation import Evaluation
from training.loops.flight import Landed
from training.loops.model import Asynchronous
from training.loops.run import Run
from training.messages import Event
from training.replay import CircularBuffer, Trajectory
from training.scaling.plan import Plan
from training.stopping import Halt

FAILURES_ALLOWED_PER_ACTOR = 3
"""A run in which this many calls for each actor failed one after another ends."""


class _Traffic:
    """The work in progress: fragments by slot, data that waits, one update with its `batch`, at most one evaluation.

    `is_new` says whether the update learns from its batch for the first time, `kept` whether the progress of the run
    holds all of this but for what is in flight.
    """

    def __init__(self, run: Run, loop: Asynchronous) -> None:
        self.run = run
        self.loop = loop
        self.plan: Plan = run.plan()
        self.states = dict(run.progress.env_states)
        self.serials = dict(run.progress.serials)
        self.sampling: dict[str, int] = {}
        self.idle = set(range(self.plan.actors))
        self.sampled_last: dict[int, str] = {}
        self.learned_last: tuple[str, ...] = ()
        self.ready: list[Trajectory] = list(run.progress.waiting)
        self.updating: str | None = None
        self.batch: tuple[Trajectory, ...] = ()
        self.is_new = False
        self.evaluation: Evaluation | None = None
        self.started_s = run.now_s()
        self.dropped = 0
        self.failures_in_a_row = 0
        self.replay: CircularBuffer[Trajectory] = CircularBuffer(*run.task.replay, run.progress.replay)
        self.kept = True

    @property
    def per_update(self) -> int:
        return self.loop.trajectories_per_update or self.plan.actors

    @property
    def oldest_allowed(self) -> int:
        return max(0, self.run.progress.version - self.loop.staleness_limit)

    def send_actors(self) -> None:
        """Send a fragment to every idle slot, unless more data already waits than the learner will use in time. What
        is sampled while it learns is a version behind when the next update begins.
        """
        updates = self.loop.staleness_limit + (self.updating is None)
        room = self.per_update * updates - len(self.ready) - len(self.sampling)
        for slot in sorted(self.idle):
            if slot < self.plan.actors and room > 0:
                room -= 1
                self.idle.remove(slot)
                serial = self.serials[slot] = self.serials.get(slot, 0) + 1
                call = self.run.sample(
                    slot, self.run.progress.version * 1_000_000 + serial, self.states.get(slot)
                )
                own = [self.sampled_last[slot]] if slot in self.sampled_last else []
                after = [*own, *self.learned_last]
                name = self.run.flight.launch(call, self.run.attempts(call), after)
                self.sampling[name] = slot

    def send_learner(self) -> None:
        """Send an update, if none is in flight and there is data: new data if possible, old if the algorithm may
        replay it.
        """
        if self.updating is not None:
            return
        oldest = self.oldest_allowed
        fresh = [trajectory for trajectory in self.ready if trajectory.version >= oldest]
        self.dropped += len(self.ready) - len(fresh)
        self.ready = fresh
        if len(fresh) >= self.per_update:
            self.batch, self.is_new = tuple(fresh[: self.per_update]), True
            self.ready = fresh[self.per_update :]
        else:
            self.batch, self.is_new = self.replay.take(self.oldest_allowed) or (), False
        if self.batch:
            call = self.run.learn([trajectory.payload for trajectory in self.batch])
            sampled = [trajectory.name for trajectory in self.batch if trajectory.name]
            self.updating = self.run.flight.launch(
                call, self.run.attempts(call), [*sampled, *self.learned_last]
            )

    def follow(self, plan: Plan) -> None:
        """Continue with as many actors as `plan` has. A slot beyond them finishes its fragment and gets no other."""
        self.idle |= set(range(self.plan.actors, plan.actors)) - set(self.sampling.values())
        self.plan = plan

    def land_fragment(self, landed: Landed) -> None:
        slot = self.sampling.pop(landed.name)
        self.idle.add(slot)
        self.sampled_last[slot] = landed.name
        if landed.outcome is None:
            self.failures_in_a_row += 1
            return
        self.failures_in_a_row = 0
        if landed.outcome.env_state is not None:
            self.states[slot] = landed.outcome.env_state
        version = landed.call.weights.version if landed.call.weights is not None else 0
        self.ready.append(Trajectory(landed.outcome.payload, version, landed.name))
        self.kept = False

    def land_update(self, landed: Landed) -> bool:
        """Return whether the update was done. If not, its data waits again and counts as not learned from."""
        self.updating = None
        done = landed.outcome is not None
        if done:
            self.learned_last = (landed.name,)
        if done and self.is_new:
            self.replay.put(self.batch, min(trajectory.version for trajectory in self.batch))
        elif self.is_new:
            self.ready = [*self.batch, *self.ready]
        elif not done:
            self.replay.give_back(self.batch)
        self.batch = ()
        return done

    @property
    def changes(self) -> dict[str, Any]:
        """What a checkpoint holds of it, as fields of the progress."""
        return {
            "env_states": dict(self.states),
            "serials": dict(self.serials),
            "waiting": tuple(self.ready),
            "replay": self.replay.kept,
        }


def asynchronous(run: Run) -> Iterator[Event]:
    loop = run.spec.loop
    assert isinstance(loop, Asynchronous)
    traffic = _Traffic(run, loop)
    run.flight.waiting_for = "actors and learner"
    halt = run.over()
    while halt is None:
        traffic.send_learner()
        traffic.send_actors()
        landed = yield from run.flight.next()
        if landed is not None:
            halt = yield from _land(traffic, landed)
        halt = run.flight.halt or halt
    for landed in (yield from run.flight.drain(halt)):
        if landed.name in traffic.sampling:
            traffic.land_fragment(landed)
        elif landed.name == traffic.updating and traffic.land_update(landed):
            yield from _advance(traffic, landed)
    if not traffic.kept:
        run.keep(**traffic.changes)
    yield from run.end(halt)


def _land(traffic: _Traffic, landed: Landed) -> Generator[Event, None, Halt | None]:
    run = traffic.run
    if landed.name in traffic.sampling:
        traffic.land_fragment(landed)
        if traffic.failures_in_a_row > FAILURES_ALLOWED_PER_ACTOR * traffic.plan.actors:
            return Halt("failing", f"no actor returns a result any more: {landed.reason}")
    elif landed.name == traffic.updating:
        if not traffic.land_update(landed):
            return None if run.flight.halt else Halt("failing", f"an update failed: {landed.reason}")
        yield from _new_version(traffic, landed)
        return run.over()
    elif traffic.evaluation is not None and traffic.evaluation.expects(landed):
        traffic.evaluation.land(landed)
        if traffic.evaluation.complete:
            run.flight.after = traffic.evaluation.names
            yield from run.record_evaluation(traffic.evaluation)
            traffic.evaluation = None
            return run.over()
    return None


def _advance(traffic: _Traffic, landed: Landed) -> Iterator[Event]:
    run = traffic.run
    assert landed.outcome is not None
    learned_s = landed.outcome.finished_s - landed.outcome.started_s
    yield from run.advance(
        traffic.plan,
        landed.outcome,
        run.flight.take_tally(),
        started_s=traffic.started_s,
        collect_s=max(0.0, run.now_s() - traffic.started_s - learned_s),
        dropped_trajectories=traffic.dropped,
        replayed=not traffic.is_new,
        **traffic.changes,
    )
    traffic.started_s, traffic.dropped = run.now_s(), 0
    traffic.kept = True


def _new_version(traffic: _Traffic, landed: Landed) -> Iterator[Event]:
    run = traffic.run
    yield from _advance(traffic, landed)
    traffic.follow(run.plan())
    if run.evaluation_due and traffic.evaluation is None:
        traffic.evaluation = run.evaluation()
        for call in traffic.evaluation.calls:
            run.flight.launch(call, run.attempts(call))
    yield from run.save_if_due()
