"""The synchronous loop: the learner waits for all actors, then all actors get the new policy.

The same seed gives the same weights with any number of workers, in whatever order they answer: calls are numbered by
slot, their state and seeds travel with them, and the learner takes trajectories in order of slot.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from training.loops.run import Run
from training.messages import Event
from training.stopping import Halt

BARREN_ROUNDS_ALLOWED = 3


def synchronous(run: Run) -> Iterator[Event]:
    barren_rounds = 0
    halt = run.over()
    while halt is None:
        before = run.progress.round_no
        halt = yield from _round(run)
        if halt is None and run.progress.round_no == before:
            barren_rounds += 1
            if barren_rounds == BARREN_ROUNDS_ALLOWED:
                halt = Halt("failing", run.last_failure)
        else:
            barren_rounds = 0
        halt = halt or run.over()
    yield from run.end(halt)


def _round(run: Run) -> Generator[Event, None, Halt | None]:
    """Run one round: all actors sample, then the learner learns. A round in which no actor returned data changes
    nothing.
    """
    plan = run.plan()
    started_s = run.now_s()
    states = dict(run.progress.env_states)
    serial = run.progress.round_no + 1
    calls = [run.sample(slot, serial, states.get(slot)) for slot in range(plan.actors)]
    landed = yield from run.flight.gather(calls, run.attempts(calls[0]), f"{plan.actors} actors")
    collected_s = run.now_s()
    if run.flight.halt is not None:
        return run.flight.halt
    trajectories = run.collect_trajectories(landed, states)
    if not trajectories:
        return None
    update = run.learn(trajectories)
    updated = (yield from run.flight.gather([update], run.attempts(update), "the learner"))[0]
    if run.flight.halt is not None:
        return run.flight.halt
    if updated is None or updated.outcome is None:
        reason = updated.reason if updated is not None else "no answer"
        return Halt("failing", f"the update of round {serial} failed: {reason}")
    yield from run.advance(
        plan,
        updated.outcome,
        run.flight.take_tally(),
        started_s=started_s,
        collect_s=collected_s - started_s,
        env_states=states,
    )
    if run.evaluation_due:
        yield from run.evaluate()
    yield from run.save_if_due()
    return run.flight.halt
