"""The asynchronous loop: actors and learner never wait for each other, and each uses the newest version or data.

Data older than the staleness limit is dropped and counted. Actors pause while more data waits than the learner can
use before it gets too old: sampling it would only cost money. When no new data has arrived and the algorithm allows
it, the learner uses old data again.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from training.calls.update import UPDATE_ATTEMPTS
from training.loops.evaluation import Evaluation
from training.loops.flight import Landed
from training.loops.model import Asynchronous
from training.loops.run import Run
from training.messages import Event
from training.replay import CircularBuffer
from training.scaling.plan import Plan
from training.stopping import Halt


@dataclass(frozen=True)
class _Trajectory:
    name: str
    payload: bytes
    version: int


class _Traffic:
    """The work in progress: fragments by slot, data that waits, one update, at most one evaluation."""

    def __init__(self, run: Run, loop: Asynchronous) -> None:
        self.run = run
        self.loop = loop
        self.plan: Plan = run.plan()
        self.states = dict(run.progress.env_states)
        self.serials = dict.fromkeys(range(self.plan.actors), 0)
        self.sampling: dict[str, int] = {}
        self.idle = set(range(self.plan.actors))
        self.sampled_last: dict[int, str] = {}
        self.learned_last: tuple[str, ...] = ()
        self.ready: list[_Trajectory] = []
        self.updating: str | None = None
        self.evaluation: Evaluation | None = None
        self.started_s = run.now_s()
        self.dropped = 0
        self.failures_in_a_row = 0
        self.replay: CircularBuffer[_Trajectory] = CircularBuffer(*run.spec.algorithm.replay)

    @property
    def per_update(self) -> int:
        return self.loop.trajectories_per_update or self.plan.actors

    @property
    def oldest_allowed(self) -> int:
        return max(0, self.run.progress.version - self.loop.staleness_limit)

    def send_actors(self) -> None:
        """Send a fragment to every idle slot, unless more data already waits than the learner will use in time."""
        room = self.per_update * (1 + self.loop.staleness_limit) - len(self.ready) - len(self.sampling)
        for slot in sorted(self.idle):
            if slot < self.plan.actors and room > 0:
                room -= 1
                self.idle.remove(slot)
                serial = self.serials[slot] = self.serials.get(slot, 0) + 1
                # The version makes the serial numbers of a resumed run differ from those before.
                call = self.run.rollout(
                    slot, self.run.progress.version * 1_000_000 + serial, self.states.get(slot)
                )
                own = [self.sampled_last[slot]] if slot in self.sampled_last else []
                after = [*own, *self.learned_last]
                name = self.run.flight.launch(call, self.run.spec.rollout.attempts, after)
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
            taken = tuple(fresh[: self.per_update])
            self.ready = fresh[self.per_update :]
            self.replay.put(taken, min(trajectory.version for trajectory in taken))
            batch: tuple[_Trajectory, ...] | None = taken
        else:
            batch = self.replay.take(self.oldest_allowed)
        if batch:
            call = self.run.update([trajectory.payload for trajectory in batch])
            after = [*(trajectory.name for trajectory in batch), *self.learned_last]
            self.updating = self.run.flight.launch(call, UPDATE_ATTEMPTS, after)

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
        self.ready.append(_Trajectory(landed.name, landed.outcome.payload, version))


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
    yield from run.flight.drain(halt)
    yield from run.end(halt)


def _land(traffic: _Traffic, landed: Landed) -> Generator[Event, None, Halt | None]:
    run = traffic.run
    if landed.name in traffic.sampling:
        traffic.land_fragment(landed)
        if traffic.failures_in_a_row > 3 * traffic.plan.actors:
            return Halt("failing", f"no actor returns a result any more: {landed.reason}")
    elif landed.name == traffic.updating:
        traffic.updating = None
        if landed.outcome is None:
            return None if run.flight.halt else Halt("failing", f"an update failed: {landed.reason}")
        traffic.learned_last = (landed.name,)
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


def _new_version(traffic: _Traffic, landed: Landed) -> Iterator[Event]:
    run = traffic.run
    assert landed.outcome is not None
    learned_s = landed.outcome.finished_s - landed.outcome.started_s
    yield from run.advance(
        traffic.plan,
        landed.outcome,
        run.flight.take_tally(),
        started_s=traffic.started_s,
        collect_s=max(0.0, run.now_s() - traffic.started_s - learned_s),
        env_states=dict(traffic.states),
        dropped_trajectories=traffic.dropped,
    )
    traffic.started_s, traffic.dropped = run.now_s(), 0
    traffic.follow(run.plan())
    if run.evaluation_due and traffic.evaluation is None:
        traffic.evaluation = run.evaluation()
        for call in traffic.evaluation.calls:
            run.flight.launch(call, run.spec.rollout.attempts)
    yield from run.save_if_due()
