"""The pipelined loop: actors sample with the previous policy while the learner learns, always one version behind.

Learner and actors overlap as in an asynchronous loop, yet nothing depends on timing (Cleanba, Huang et al. 2023):
round k learns from data sampled with version k−2, except for the first round, and the same seed gives the same
weights.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from training.loops.run import Run
from training.loops.synchronous import BARREN_ROUNDS_ALLOWED
from training.messages import Event
from training.stopping import Halt


def pipelined(run: Run) -> Iterator[Event]:
    barren_rounds = 0
    halt = run.over()
    while halt is None:
        waiting = len(run.progress.pending)
        before = run.progress.round_no
        halt = yield from _round(run)
        stood_still = run.progress.round_no == before and len(run.progress.pending) == waiting
        barren_rounds = barren_rounds + 1 if stood_still else 0
        if halt is None and barren_rounds == BARREN_ROUNDS_ALLOWED:
            halt = Halt("failing", run.last_failure)
        halt = halt or run.over()
    yield from run.end(halt)


def _round(run: Run) -> Generator[Event, None, Halt | None]:
    """Sample the next round's data and learn from the pending data, side by side."""
    plan = run.plan()
    started_s = run.now_s()
    states = dict(run.progress.env_states)
    pending = run.progress.pending
    # The first data is learned from in round 1, so later fragments are numbered one round ahead.
    serial = run.progress.round_no + (2 if pending else 1)
    calls = [run.sample(slot, serial, states.get(slot)) for slot in range(plan.actors)]
    updates = [run.learn(pending)] if pending else []
    landed = yield from run.flight.gather([*updates, *calls], run.attempts(calls[0]), "actors and learner")
    if run.flight.halt is not None:
        return run.flight.halt
    trajectories = run.collect_trajectories(landed[len(updates) :], states)
    if not updates:
        run.keep(pending=tuple(trajectories), env_states=states)
        return None
    updated = landed[0]
    if updated is None or updated.outcome is None:
        reason = updated.reason if updated is not None else "no answer"
        return Halt("failing", f"the update of round {run.progress.round_no + 1} failed: {reason}")
    yield from run.advance(
        plan,
        updated.outcome,
        run.flight.take_tally(),
        started_s=started_s,
        collect_s=run.now_s() - started_s,
        env_states=states,
        pending=tuple(trajectories),
    )
    if run.evaluation_due:
        yield from run.evaluate()
    yield from run.save_if_due()
    return run.flight.halt
