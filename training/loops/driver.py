"""Drives a loop: makes calls of its orders, gives it what lands, and makes versions, rounds and checkpoints as it says.

The loop decides on names and numbers (`state.py`). All bytes, times and money of a run are here and in `TrainingRun`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

from training.engine.codec import Document, decode
from training.engine.messages import FAULTS_NOT_RETRIED, Event, Outcome
from training.engine.stopping import RunEnd
from training.loops.evaluation import Evaluation
from training.loops.flight import Landed
from training.loops.run import TrainingRun
from training.loops.state import (
    EndRound,
    KeepData,
    Landing,
    LoopJob,
    MakeVersion,
    NothingWorks,
    PlanAgain,
    Sample,
    SendUpdate,
    Step,
)


class LandedUpdate(NamedTuple):
    """An update that has landed, and what it returned."""

    outcome: Outcome
    result: Document


class Driver:
    """One loop at work. `_slots` are the samples in flight, `_made` updates that have landed and are no version yet."""

    def __init__(self, run: TrainingRun) -> None:
        self.run = run
        loop = run.spec.loop
        self.loop = loop.decides(loop, job_of(run), run.progress, run.plan(), run.name)
        self.states = dict(run.progress.slot_states)
        self.started_s = run.now_s()
        self._slots: dict[str, int] = {}
        self._made: dict[str, LandedUpdate] = {}
        self._evaluation: Evaluation | None = None
        self._stopping = False
        self._learned_from_s = self.started_s

    def go(self) -> Generator[Event, None, RunEnd]:
        """Run until there is a reason to stop."""
        run, run_end = self.run, None
        while run_end is None:
            try:
                run_end = yield from self._follow(self.loop.send())
                if run_end is None and not len(run.flight):
                    run_end = RunEnd("failing", self.loop.last_failure)
            except NothingWorks as error:
                run_end = RunEnd("failing", str(error))
            if run_end is None:
                run.flight.waiting_for = self.loop.waiting_for
                landed = yield from run.flight.next()
                self.look()
                if landed is not None:
                    run_end = yield from self._take(landed)
                run_end = run.flight.run_end or run_end
        return run_end

    def look(self) -> None:
        """Time may have passed since the last call landed."""

    def stop(self, run_end: RunEnd) -> Iterator[Event]:
        """Receive what is in flight, and keep it if the loop does."""
        self._stopping = True
        loop, flight = self.loop, self.run.flight
        after = dict.fromkeys(loop.after)
        for landed in (yield from flight.drain(run_end)):
            after[landed.name] = None
            if loop.keeps_what_lands_late and not self._judges(landed):
                yield from self._land(landed, stopping=True)
        loop.after = tuple(after)
        yield from self._follow(loop.stop(out_of_money=run_end.code == "budget"))
        while len(flight):
            rest = yield from flight.next()
            if rest is not None:
                yield from self._land(rest, stopping=True)
        yield from self._follow(loop.close())
        if loop.keeps_data and loop.keeps_what_lands_late:
            self._keep()

    def _take(self, landed: Landed) -> Generator[Event, None, RunEnd | None]:
        if self._judges(landed):
            return (yield from self._take_judgement(landed))
        stopping = self.run.flight.run_end is not None
        if stopping and not self.loop.keeps_what_lands_late:
            return None
        return (yield from self._land(landed, stopping=stopping))

    def _land(self, landed: Landed, *, stopping: bool) -> Generator[Event, None, RunEnd | None]:
        try:
            return (yield from self._follow(self.loop.land(self._landing(landed, stopping=stopping))))
        except NothingWorks as error:
            return RunEnd("failing", str(error))

    def _landing(self, landed: Landed, *, stopping: bool) -> Landing:
        """Return what the loop needs to know of a call that has landed."""
        outcome, slot = landed.outcome, self._slots.pop(landed.name, None)
        if outcome is None:
            in_vain = landed.reason_code in FAULTS_NOT_RETRIED
            return Landing(landed.name, done=False, reason=landed.reason, in_vain=in_vain, stopping=stopping)
        landing = self._done(landed, outcome) if slot is None else Landing(landed.name, True, outcome.payload)
        if slot is not None and outcome.slot_state is not None:
            self.states[slot] = outcome.slot_state
        return landing._replace(stopping=stopping, failure=self.run.task.failure_in(outcome.payload))

    def _done(self, landed: Landed, outcome: Outcome) -> Landing:
        """Return the same for a call that learned."""
        made = self._made[landed.name] = LandedUpdate(outcome, decode(outcome.payload))
        distances = dict(made.result.get("distances", ()))
        return Landing(landed.name, True, samples=int(made.result["env_steps"]), distances=distances)

    def _follow(self, steps: Iterator[Step]) -> Generator[Event, None, RunEnd | None]:
        """Do one step after the other. Return why the run ends, if a round's end says so."""
        for step in steps:
            match step:
                case EndRound():
                    yield from self._end_round(step)
                    run_end = yield from self._between_rounds()
                case KeepData() | PlanAgain():
                    if isinstance(step, KeepData):
                        self._keep()
                    run_end = self._plan_again()
                case _:
                    yield from self._do(step)
                    run_end = None
            if run_end is not None:
                return run_end
        return None

    def _do(self, step: Step) -> Iterator[Event]:
        """Send a call, or make a version."""
        run = self.run
        match step:
            case Sample():
                self._slots[step.name] = step.slot
                call = run.sample_call(step.name, step.slot, step.number, self.states.get(step.slot))
                run.flight.launch(call, run.attempts(call), step.after)
            case SendUpdate():
                self._learned_from_s = run.now_s()
                call = run.update_call(step.name, [contribution.payload for contribution in step.batch])
                run.flight.launch(call, run.attempts(call), step.after)
            case MakeVersion():
                self.make_version(self._made.pop(step.name), replayed=step.replayed)
            case _:
                raise TypeError(f"{type(step).__name__} is of another kind of loop")
        yield from ()

    def make_version(self, made: LandedUpdate, *, replayed: bool) -> None:
        self.run.new_version(made.outcome, made.result, replayed=replayed)

    def _keep(self) -> None:
        self.run.keep(slot_states=dict(sorted(self.states.items())), **self.kept())

    def kept(self) -> dict[str, Any]:
        """What a checkpoint holds of the loop."""
        return self.loop.kept()

    def _plan_again(self) -> RunEnd | None:
        run_end = self._end()
        if run_end is None:
            self._begin_round()
        return run_end

    def _end(self) -> RunEnd | None:
        return self.run.flight.run_end or self.run.over()

    def _begin_round(self) -> None:
        self.loop.begin_round(self.run.plan())
        if self.loop.judges_alone:
            self.started_s = self.run.now_s()

    def _end_round(self, step: EndRound) -> Iterator[Event]:
        run, now_s = self.run, self.run.now_s()
        yield from run.end_round(
            self.loop.plan,
            run.flight.take_tally(),
            started_s=self.started_s,
            collect_s=self._collect_s(now_s),
            dropped_contributions=step.dropped_contributions,
            slot_states=dict(sorted(self.states.items())),
            **self.kept(),
        )
        self.started_s = now_s

    def _collect_s(self, now_s: float) -> float:
        """Return how long the round's data was collected, without the learning that it waited for."""
        match self.run.spec.loop.collects:
            case "before learning":
                return self._learned_from_s - self.started_s
            case "beside learning":
                return now_s - self.started_s
        return max(0.0, now_s - self.started_s - self.run.learning_s_in_round)

    def _between_rounds(self) -> Generator[Event, None, RunEnd | None]:
        """Judge and save where it is due, and begin the next round, unless the run stops. Return why there is none."""
        run, loop = self.run, self.loop
        if self._stopping or run.flight.run_end is not None:
            return run.flight.run_end
        alone = loop.judges_alone
        if alone and run.evaluation_due:
            loop.after = yield from run.evaluate(loop.after)
        yield from run.save_if_due()
        run_end = self._end()
        if run_end is None:
            self._begin_round()
            if run.evaluation_due and not alone and self._evaluation is None:
                self._judge_beside()
        return run_end

    def _judge_beside(self) -> None:
        """Judge the newest version beside everything else."""
        run, self._evaluation, self.loop.judging = self.run, self.run.evaluation(), True
        for call in self._evaluation.calls:
            run.flight.launch(call, run.attempts(call), self.loop.after)

    def _judges(self, landed: Landed) -> bool:
        return self._evaluation is not None and self._evaluation.expects(landed)

    def _take_judgement(self, landed: Landed) -> Generator[Event, None, RunEnd | None]:
        evaluation, loop = self._evaluation, self.loop
        assert evaluation is not None
        evaluation.land(landed)
        loop.after = (landed.name,)
        if evaluation.complete:
            loop.after, loop.judging, self._evaluation = evaluation.names, False, None
            yield from self.run.record_evaluation(evaluation)
            run_end = self.run.over()
            if run_end is not None:
                return run_end
        try:
            return (yield from self._follow(loop.judged()))
        except NothingWorks as error:
            return RunEnd("failing", str(error))


def job_of(run: TrainingRun) -> LoopJob:
    """Return what a loop must know of the run's job."""
    spec, task = run.spec, run.task
    over_epochs = spec.loop.over_epochs
    return LoopJob(
        progress_a_call=spec.progress_a_call,
        attempts=spec.attempts,
        replay=task.replay,
        calls_an_epoch=task.calls_an_epoch if over_epochs else 0,
        rows_of_slice=task.rows_of_slice,
        samples_of=lambda payload: int(decode(payload)["env_steps"]),
        keeps_sampling_policy=task.keeps_sampling_policy,
        most_actors=run.actors_at_most,
        progress_limit=spec.stop.progress_limit,
        rounds=spec.stop.rounds,
    )
