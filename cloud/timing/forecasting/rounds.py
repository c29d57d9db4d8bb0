"""A loop's decisions with times in place of data: its calls are works by arithmetic, and nothing is learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from cloud.money.billing.work import CallRecord
from cloud.timing.forecasting.concurrency import AllCallsFail, SimulatedFlight
from cloud.timing.forecasting.workload import Workload
from training.engine.checkpoints import Progress
from training.loops.model import LoopOfAnyKind
from training.loops.state import (
    ApplyGradients,
    ComputeGradient,
    EndRound,
    KeepData,
    Landing,
    LoopJob,
    LoopState,
    MakeVersion,
    NothingWorks,
    PlanAgain,
    Sample,
    SendUpdate,
    Step,
)
from training.scaling.plan import Plan

_MOST_ATTEMPTS = 10


class Rounds:
    """One run of a loop, round by round. `_in_flight` says of each call in flight what it was sent for, `_samples` how
    much progress counts with a gradient that has landed, or with a version that was not made yet.
    """

    def __init__(self, loop: LoopOfAnyKind, works: Workload, flight: SimulatedFlight) -> None:
        self._loop = loop
        self._works = works
        self._flight = flight
        self._state: LoopState | None = None
        self._steps: Iterator[Step] = iter(())
        self._serial = 0
        self._in_flight: dict[str, Any] = {}
        self._samples: dict[str | int, int] = {}
        self._works_of: dict[type[Any], Callable[[Any], CallRecord]] = {
            Sample: self._sampling,
            SendUpdate: self._update,
            ComputeGradient: self._gradient,
            ApplyGradients: self._apply,
        }
        gradients = loop.gradients
        self._learners = gradients.learners if gradients is not None and gradients.fit_learners else 0
        self._gradient_ns = self._sampling_ns = self._looked_ns = 0

    def next(self, actors: int) -> None:
        """Continue with this many actors until the round is over. Raises AllCallsFail."""
        plan = Plan(actors, 0, "")
        if self._state is None:
            job = _job_of(self._loop, self._works)
            self._state = self._loop.decides(self._loop, job, Progress(b"", b""), plan, self._name)
        else:
            self._state.begin_round(plan)
        try:
            while not self._follow(self._state, plan):
                self._steps = self._next(self._state)
        except NothingWorks:
            raise AllCallsFail from None

    def settle(self) -> None:
        """Stop all calls in flight, as at the end of a run."""
        # The next attempt of a failed call has another id.
        attempts = range(1, _MOST_ATTEMPTS + 1)
        self._flight.cancel([f"{name}-a{attempt}" for name in self._in_flight for attempt in attempts])
        self._in_flight.clear()

    def _name(self, what: str) -> str:
        self._serial += 1
        return f"n{self._serial}"

    def _next(self, state: LoopState) -> Iterator[Step]:
        """Send what can be sent, wait for the next call to land, and return what follows from it."""
        self._steps = state.send()
        self._follow(state, state.plan)
        landed = self._flight.next()
        self._look(state)
        if landed is None:
            raise AllCallsFail
        return state.land(self._landing(*landed))

    def _follow(self, state: LoopState, plan: Plan) -> bool:
        """Do one step after the other, and return whether the round is over. The rest is done in the next one."""
        works: list[CallRecord] = []
        over = False
        for step in self._steps:
            make = self._works_of.get(type(step))
            if make is not None:
                work = make(step)
                self._in_flight[work.name] = step
                works.append(work)
            elif isinstance(step, MakeVersion):
                self._flight.count_learned(0 if step.replayed else self._samples.pop(step.name))
            elif isinstance(step, EndRound):
                self._fit_learners(state)
                over = True
                break
            elif isinstance(step, KeepData | PlanAgain):
                state.begin_round(plan)
        if works:
            self._flight.send(works)
        return over

    def _sampling(self, step: Sample) -> CallRecord:
        return self._works.sampling(step.name)

    def _update(self, step: SendUpdate) -> CallRecord:
        return self._works.update(step.name, len(step.batch))

    def _gradient(self, step: ComputeGradient) -> CallRecord:
        others = len(step.others) + len(step.anchors)
        size = len(step.slice.contributions)
        return self._works.call("gradient", step.name, contributions=size, policies=others)

    def _apply(self, step: ApplyGradients) -> CallRecord:
        return self._works.call("apply", step.name, gradients=len(step.release.gradients))

    def _landing(self, work: CallRecord, done: bool) -> Landing:
        step = self._in_flight.pop(work.name)
        samples, last = 0, False
        match step:
            case SendUpdate():
                samples = self._samples[work.name] = len(step.batch) * self._works.steps_a_call
            case ComputeGradient():
                last = step.slice.passes + 1 >= self._works.task.passes
                samples = len(step.slice.contributions) * self._works.steps_a_call if last else 0
                self._samples[step.number] = samples
            case ApplyGradients():
                numbers = [gradient.number for gradient in step.release.gradients]
                samples = self._samples[work.name] = sum(self._samples.pop(number) for number in numbers)
        return Landing(work.name, done, samples=samples, last=last)

    def _look(self, state: LoopState) -> None:
        """Count the time that calls in flight take, if the number of learners goes by it."""
        if self._learners:
            busy, now_ns = state.busy, self._flight.simulation.now_ns
            took_ns, self._looked_ns = now_ns - self._looked_ns, now_ns
            self._gradient_ns += busy.learners * took_ns
            self._sampling_ns += busy.actors * took_ns

    def _fit_learners(self, state: LoopState) -> None:
        if self._learners:
            state.fit_learners(self._gradient_ns, self._sampling_ns, self._learners)
            self._gradient_ns = self._sampling_ns = 0


def _job_of(loop: LoopOfAnyKind, works: Workload) -> LoopJob:
    """Return what a loop must know of the job. No limit ends it: what a forecast simulates is a part of a run."""
    over_epochs, task = loop.over_epochs, works.task
    return LoopJob(
        progress_a_call=works.steps_a_call,
        attempts=works.training.attempts,
        replay=task.replay,
        calls_an_epoch=works.calls_an_epoch if over_epochs else 0,
        keeps_sampling_policy=task.keeps_sampling_policy,
    )


def next_attempt(work: CallRecord) -> CallRecord:
    """Return the next attempt of a failed call."""
    attempt = work.attempt + 1
    return replace(work, id=f"{work.name}-a{attempt}", attempt=attempt)
