"""The staleness-aware loop (Stellaris, Yu et al., SC 2024): learners are functions too, and none waits for another.

Actors sample. Some trajectories make a slice, which a learner takes in several passes: each pass is a call that
returns a gradient, computed with the newest version. Gradients wait in a queue until they are recent enough on average;
then one call makes the next version of all of them. No data, no learner, no pay. The clock counts versions. A round is
a number of samples that were learned from in all their passes, however many versions that makes.

With waiting actors a round is what all of them sampled once. If its gradients are taken in the order of launch, between
two versions, then nothing depends on timing: the same seed gives the same weights everywhere.

A checkpoint holds slices with their passes left, the queue, and the bound. A run that stops first receives what is in
flight and keeps what was done; what was not done is the only thing lost.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import Any

from training.loops.evaluation import Evaluation
from training.loops.flight import Landed
from training.loops.learners import Learners
from training.loops.model import StalenessAware
from training.loops.run import Run
from training.loops.synchronous import BARREN_ROUNDS_ALLOWED
from training.messages import Event
from training.replay import Trajectory
from training.scaling.plan import Plan
from training.stopping import Halt


class _Actors:
    """Fragments in flight by task, with slot and version, and trajectories that are in no slice yet.

    `left_over` are those of earlier waves, which come first; `landed` those of this one, by slot.
    """

    def __init__(self, run: Run, loop: StalenessAware) -> None:
        self._run = run
        self._loop = loop
        self.plan: Plan = run.plan()
        self.states = dict(run.progress.env_states)
        self.serials = dict(run.progress.serials)
        self.sampling: dict[str, tuple[int, int]] = {}
        self._sampled_last: dict[int, str] = {}
        self.left_over: list[Trajectory] = list(run.progress.waiting)
        self.landed: list[tuple[int, Trajectory]] = []
        self.failures_in_a_row = 0

    @property
    def waiting(self) -> list[Trajectory]:
        return [
            *self.left_over,
            *(trajectory for _, trajectory in sorted(self.landed, key=lambda one: one[0])),
        ]

    @property
    def sampled_versions(self) -> list[int]:
        """The versions whose data is in flight, or in no slice yet."""
        flying = [version for _, version in self.sampling.values()]
        return flying + [trajectory.version for trajectory in self.waiting]

    def send_wave(self) -> None:
        """Let every actor sample once. All fragments of a wave have one number."""
        self.left_over, self.landed = self.waiting, []
        wave = max(self.serials.values(), default=0) + 1
        for slot in range(self.plan.actors):
            self._send(slot, wave, wave)

    def send(self, room: int) -> None:
        """Let idle actors sample, so many at most."""
        busy = {slot for slot, _ in self.sampling.values()}
        idle = [slot for slot in range(self.plan.actors) if slot not in busy]
        for slot in idle[: max(0, room)]:
            serial = self.serials.get(slot, 0) + 1
            self._send(slot, serial, self._run.progress.version * 1_000_000 + serial)

    def _send(self, slot: int, serial: int, number: int) -> None:
        self.serials[slot] = serial
        call = self._run.sample(slot, number, self.states.get(slot))
        after = [self._sampled_last[slot]] if slot in self._sampled_last else []
        name = self._run.flight.launch(call, self._run.attempts(call), after)
        self.sampling[name] = slot, self._run.progress.version

    def land(self, landed: Landed) -> None:
        slot, version = self.sampling.pop(landed.name)
        self._sampled_last[slot] = landed.name
        if landed.outcome is None:
            self.failures_in_a_row += 1
            self._run.last_failure = landed.reason or self._run.last_failure
            return
        self.failures_in_a_row = 0
        if landed.outcome.env_state is not None:
            self.states[slot] = landed.outcome.env_state
        self.landed.append((slot, Trajectory(landed.outcome.payload, version, landed.name)))

    def take_slices(self, *, all_of_it: bool) -> Iterator[tuple[Trajectory, ...]]:
        """Yield what makes a slice each, from what waits; with `all_of_it` also a last one that is smaller."""
        size, waiting = self._loop.trajectories_per_gradient, self.waiting
        whole = len(waiting) if all_of_it else len(waiting) - len(waiting) % size
        if whole:
            self.left_over, self.landed = waiting[whole:], []
        for begin in range(0, whole, size):
            yield tuple(waiting[begin : min(begin + size, whole)])


class _Traffic:
    """All that is in flight, and the rounds that come of it."""

    def __init__(self, run: Run, loop: StalenessAware) -> None:
        self.run = run
        self.loop = loop
        self.learners = Learners(run, loop)
        self.actors = _Actors(run, loop)
        self.evaluation: Evaluation | None = None
        self.started_s = run.now_s()
        self._barren_waves = 0
        self._before_wave = self._gained
        self._kept = True

    @property
    def _a_round(self) -> int:
        return self.loop.samples_per_round or self.actors.plan.actors * self.run.spec.progress_a_call

    @property
    def _under_way(self) -> int:
        """The samples that are not counted yet: in flight, waiting, or in passes."""
        slices = self.learners.unfinished_slices
        trajectories = sum(len(one.trajectories) for one in slices)
        trajectories += len(self.actors.waiting) + len(self.actors.sampling)
        return trajectories * self.run.spec.progress_a_call + self.learners.uncounted_steps

    @property
    def _enough(self) -> bool:
        """Whether what is under way is all that the run will still learn from."""
        stop, progress = self.run.spec.stop, self.run.progress
        if (
            stop.progress_limit is not None
            and progress.total_env_steps + self._under_way >= stop.progress_limit
        ):
            return True
        if stop.rounds is None:
            return False
        if self.loop.goes_by_waves:
            return progress.round_no + 1 >= stop.rounds
        left = (stop.rounds - progress.round_no) * self._a_round
        return self.run.learned_in_round + self._under_way >= left

    @property
    def _gained(self) -> tuple[int, int]:
        """What a wave that was not in vain has changed: the version, or how much data waits."""
        return self.run.progress.version, len(self.actors.waiting)

    @property
    def _quiet(self) -> bool:
        return not (self.actors.sampling or self.learners.busy)

    def look(self) -> None:
        learners = self.learners
        learners.occupancy.look(
            self.run.now_s(),
            learners=learners.flying,
            actors=len(self.actors.sampling),
            queued=learners.queued,
            starved=learners.idle,
            learning=learners.flying > 0 or learners.applying,
        )

    def act(self) -> Halt | None:
        """Send all that can be sent now. A wave that brought nothing is followed by the next, for a few times."""
        self._cut_slices()
        self._learn()
        if not self.loop.actors_wait:
            self.actors.send(0 if self._enough else self._room)
        elif self._quiet:
            self._barren_waves = 1 + (self._barren_waves if self._gained == self._before_wave else 0)
            if self._barren_waves > BARREN_ROUNDS_ALLOWED:
                return Halt("failing", self.run.last_failure)
            self._before_wave = self._gained
            self.actors.send_wave()
        return None

    @property
    def _room(self) -> int:
        """How many more fragments learners can use soon: two slices each, and no more than a round is large."""
        size = self.loop.trajectories_per_gradient
        begun = len(self.learners.unfinished_slices) * size
        return 2 * size * self.learners.most - begun - len(self.actors.waiting) - len(self.actors.sampling)

    def _cut_slices(self) -> None:
        everything_landed = not self.actors.sampling
        in_turn = self.loop.actors_wait and self.loop.order == "launch"
        if not self.actors.waiting or (in_turn and not everything_landed):
            return
        for trajectories in self.actors.take_slices(all_of_it=everything_landed and self._enough):
            self.learners.cut(trajectories)

    def _learn(self) -> None:
        wanted = self._a_round - self.run.learned_in_round
        rest = self.loop.goes_by_waves and not self.actors.sampling
        self.learners.release(all_of_round=rest, wanted_steps=math.inf if self.loop.goes_by_waves else wanted)
        self.learners.send()

    def land(self, landed: Landed, before: tuple[str, ...]) -> Generator[Event, None, Halt | None]:
        """Take in a call that has landed. `before` are the tasks that had landed before it."""
        run, halt = self.run, None
        if landed.name in self.actors.sampling:
            self.actors.land(landed)
            self._kept = False
        elif self.learners.expects(landed):
            self.learners.arrive(landed)
        elif self.learners.applies(landed):
            if landed.outcome is None:
                return (
                    None if run.flight.halt else Halt("failing", f"a version was not made: {landed.reason}")
                )
            self.learners.land_version(landed.name, landed.outcome)
            self.learners.forget_policies(self.actors.sampled_versions)
            if not self.loop.goes_by_waves and run.learned_in_round >= self._a_round:
                halt = yield from self._end_round()
        elif self.evaluation is not None and self.evaluation.expects(landed):
            halt = yield from self._land_evaluation(self.evaluation, landed)
        if halt is None and run.flight.halt is None:
            yield from self._take_gradients(before)
        by_itself = self._quiet and run.versions_in_round and (self.loop.goes_by_waves or self._enough)
        if halt is None and by_itself:
            halt = yield from self._end_round()
        return halt or self._hopeless()

    def _take_gradients(self, before: tuple[str, ...]) -> Iterator[Event]:
        while True:
            self._cut_slices()
            self._learn()
            held_up = self.loop.order == "launch" and self.evaluation is not None
            landed = None if held_up else self.learners.turn()
            if landed is None:
                return
            queued = self.learners.queued
            yield from self.learners.take(landed)
            dropped = landed.outcome is not None and self.learners.queued == queued
            if dropped and self.run.flight.after == (landed.name,):
                # Nothing that is sent now was made of it.
                self.run.flight.after = before
            self._kept = False

    def _hopeless(self) -> Halt | None:
        if not self.loop.actors_wait:
            if self.actors.failures_in_a_row > BARREN_ROUNDS_ALLOWED * self.actors.plan.actors:
                return Halt("failing", f"no actor returns a result any more: {self.run.last_failure}")
            lost = self.learners.lost_in_a_row * self.run.spec.progress_a_call
            if lost >= BARREN_ROUNDS_ALLOWED * self._a_round:
                return Halt("failing", f"no learner returns a gradient any more: {self.run.last_failure}")
        return None

    def _end_round(self) -> Generator[Event, None, Halt | None]:
        run = self.run
        yield from self._report()
        if self._quiet and self.evaluation is None:
            if run.evaluation_due:
                yield from run.evaluate()
            yield from run.save_if_due()
            self.started_s = run.now_s()
            self.learners.occupancy.begin(self.started_s)
            halt = run.flight.halt or run.over()
        else:
            if run.evaluation_due and self.evaluation is None:
                self.evaluation = run.evaluation()
                for call in self.evaluation.calls:
                    run.flight.launch(call, run.attempts(call))
            yield from run.save_if_due()
            halt = run.over()
        if halt is None:
            self.actors.plan = run.plan()
        return halt

    def _report(self) -> Iterator[Event]:
        run, learners = self.run, self.learners
        bound = learners.bound
        learners.calibrate()
        now_s = run.now_s()
        tally = run.flight.take_tally()
        for outcome in tally.unusable:
            learners.occupancy.drop(outcome.reason_code, outcome.cost_picodollars or 0)
        report = learners.occupancy.report(now_s, None if math.isinf(bound) else bound)
        learners.fit(report, now_s - self.started_s, self.actors.plan.actors)
        yield from run.end_round(
            self.actors.plan,
            tally,
            started_s=self.started_s,
            collect_s=max(0.0, now_s - self.started_s - report.learning_s),
            dropped_trajectories=learners.trajectories_lost,
            gradients=report,
            **self.changes,
        )
        learners.trajectories_lost = 0
        learners.fraction_done = run.fraction_done()
        self.started_s, self._kept = now_s, True

    def _land_evaluation(self, evaluation: Evaluation, landed: Landed) -> Generator[Event, None, Halt | None]:
        evaluation.land(landed)
        if not evaluation.complete:
            return None
        self.run.flight.after = evaluation.names
        yield from self.run.record_evaluation(evaluation)
        self.evaluation = None
        return self.run.over()

    def stop(self, halt: Halt) -> Iterator[Event]:
        """Receive what is in flight, apply what waits if the run is only out of money, and keep the rest."""
        run, learners = self.run, self.learners
        for landed in (yield from run.flight.drain(halt)):
            if landed.name in self.actors.sampling:
                self.actors.land(landed)
                self._kept = False
            elif learners.expects(landed):
                learners.arrive(landed)
            elif learners.applies(landed) and landed.outcome is not None:
                learners.land_version(landed.name, landed.outcome)
        for landed in learners.arrived_in_order():
            yield from learners.take(landed, stopping=True)
            self._kept = False
        learners.take_back()
        if halt.code == "budget" and learners.queued:
            yield from self._apply_the_rest()
        if run.versions_in_round:
            yield from self._report()
        elif not self._kept:
            run.keep(**self.changes)

    def _apply_the_rest(self) -> Iterator[Event]:
        """Make a last version of what waits, if the money for it is there."""
        self.learners.release(all_of_round=False, wanted_steps=math.inf)
        while len(self.run.flight):
            landed = yield from self.run.flight.next()
            if landed is not None and landed.outcome is not None:
                self.learners.land_version(landed.name, landed.outcome)
        self.learners.take_back()

    @property
    def changes(self) -> dict[str, Any]:
        """What a checkpoint holds of it, as fields of the progress."""
        return {
            "env_states": dict(self.actors.states),
            "serials": dict(self.actors.serials),
            "waiting": tuple(self.actors.waiting),
            "unfinished": self.learners.unfinished(),
        }


def staleness_aware(run: Run) -> Iterator[Event]:
    loop = run.spec.loop
    assert isinstance(loop, StalenessAware)
    halt = run.over()
    if halt is not None:
        yield from run.end(halt)
        return
    traffic = _Traffic(run, loop)
    run.flight.waiting_for = "actors and learners"
    while halt is None:
        halt = traffic.act()
        if halt is not None:
            break
        before = run.flight.after
        landed = yield from run.flight.next()
        traffic.look()
        if landed is not None:
            halt = yield from traffic.land(landed, before)
        halt = run.flight.halt or halt
    yield from traffic.stop(halt)
    yield from run.end(halt)
