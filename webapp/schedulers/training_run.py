"""Runs a scheduler's training in this process, from its lease to its version. Each episode is stored at once.

A process that is killed loses the present episode. The next process begins with the agent of the last stored one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from django.db import transaction

from cloud.platforms.simulated_options import SimulatedOptions
from training.engine.reports import RoundReport
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.leases import CRASHED_EXIT, LEASE_LOST_EXIT, Heartbeat, LeaseLost, renew
from webapp.jobs.form.spec_documents import SpecError
from webapp.jobs.running.database_wait import DatabaseWait
from webapp.schedulers import leases, persist, queries
from webapp.schedulers.models import JUDGED, Episode, EpisodeKind, SchedulerTraining, TrainingState
from webapp.schedulers.trainer import (
    EpisodeStep,
    Interrupted,
    NothingLearned,
    Past,
    Stage,
    TrainerPoint,
    judge_agent,
    learn,
    missing_plans,
    record_grid,
)

log = logging.getLogger(__name__)

_WRITE_EVERY_S = 1.0

OnStep = Callable[[EpisodeStep], None]


def run_training(
    training_id: int,
    *,
    owner: str,
    hand_over: threading.Event,
    on_step: OnStep = lambda step: None,
    clock: Clock = SYSTEM_CLOCK,
) -> int:
    """Train to the end, or until `hand_over` is set. Returns the process's exit code; 0 also without a lease."""
    if hand_over.is_set():
        return 0
    wait = DatabaseWait(f"scheduler training {training_id}", hand_over)
    epoch = wait(partial(leases.take, training_id, owner, clock=clock))
    if epoch is None:
        return 0
    run = wait(partial(_Run, training_id, epoch, hand_over, on_step, clock, wait))
    try:
        with Heartbeat(
            f"scheduler training {training_id}", partial(renew, SchedulerTraining, training_id, epoch)
        ):
            run.train()
    except Interrupted:
        run.interrupted()
    except (NothingLearned, SpecError) as error:
        run.end(TrainingState.FAILED, str(error))
    except LeaseLost:
        return LEASE_LOST_EXIT
    except Exception as error:
        log.exception("scheduler training %s", training_id)
        run.crashed(f"{type(error).__name__}: {error}")
        return CRASHED_EXIT
    return 0


class _Run:
    """One process's work at a training, under one epoch of its lease."""

    def __init__(
        self,
        training_id: int,
        epoch: int,
        hand_over: threading.Event,
        on_step: OnStep,
        clock: Clock,
        wait: DatabaseWait,
    ) -> None:
        self._wait = wait
        self._training = SchedulerTraining.objects.select_related("begin_with").get(pk=training_id)
        self._epoch = epoch
        self._hand_over = hand_over
        self._on_step = on_step
        self._clock = clock
        self._spec = self._training.parsed_spec
        self._kind, self._number = "", 0
        self._written_s = float("-inf")
        self._checked_s = float("-inf")
        self._stop_requested = False
        self._rehearsed: list[EpisodeStep] = []

    def train(self) -> None:
        """Train from where it is to the end. Raises Interrupted, NothingLearned or LeaseLost if it ends early."""
        if self._training.started_at is None:
            self._write(started_at=self._clock.now())
        platform = SimulatedOptions.model_validate(self._training.platform)
        budget = self._training.budget_picodollars
        stage = Stage(self._spec, platform, budget, self._round_over, self._stopping)
        self._record(stage)
        past = self._wait(self._past)
        done = self._training.learned_number
        self._kind, self._number = self._kind_of(done + 1, past), done + 1
        for step in learn(self._spec, stage, past, budget):
            self._keep(step)
            self._kind, self._number = self._kind_of(step.number + 1, past), step.number + 1
            if self._stopping():
                raise Interrupted
        self._flush()
        if not self._training.search:
            self._judge(stage, past)
            self._wait(partial(persist.store_version, self._training, self._epoch, clock=self._clock))
        self.end(TrainingState.DONE, "")

    def _judge(self, stage: Stage, past: Past) -> None:
        """Play episodes that decide which agent is used. With fewer than two real episodes there is no choice."""
        episodes = self._training.episodes
        if self._wait(episodes.filter(kind=EpisodeKind.REAL).count) < 2:
            return
        agents = {"best": self._training.best_learner, "last": self._training.learner}
        for number, agent in enumerate(JUDGED, start=1):
            state = agents[agent]
            judged = episodes.filter(kind=EpisodeKind.JUDGED, number=number)
            if state is None or self._wait(judged.exists):
                continue
            self._kind, self._number = EpisodeKind.JUDGED, number
            self._keep(judge_agent(self._spec, stage, past, number, bytes(state)))

    def interrupted(self) -> None:
        """Stop for good if a user requested that; otherwise release it for another process."""
        self._flush()
        if self._stop_requested:
            self.end(TrainingState.STOPPED, "Stopped on request.")
        else:
            self._write(state=TrainingState.QUEUED, **leases.GIVEN_BACK)

    def end(self, state: TrainingState, reason: str) -> None:
        at = self._clock.now()
        self._write(state=state, reason=reason[:500], since=at, finished_at=at, **leases.GIVEN_BACK)

    def crashed(self, reason: str) -> None:
        persist.crashed(self._training.pk, self._epoch, reason, clock=self._clock)

    # What it begins with

    def _record(self, stage: Stage) -> None:
        """Record trainings with fixed plans, unless the project has them for this workload."""
        if self._training.recorded_until is None:
            done = self._wait(partial(queries.recorded_plans, self._training))
            past = Past(plans_done=frozenset(done))
            missing = [number for number, _ in missing_plans(self._spec, past)]
            for number, step in zip(missing, record_grid(self._spec, stage, past), strict=False):
                self._kind, self._number = EpisodeKind.GRID, number
                self._keep(step)
            self._write(recorded_until=self._wait(partial(queries.last_recorded, self._training)))

    def _past(self) -> Past:
        training = self._training
        resume = TrainerPoint(training.learned_number, bytes(training.learner)) if training.learner else None
        begin_with = bytes(training.begin_with.learner) if training.begin_with is not None else None
        return Past(recorded=queries.recorded(training), begin_with=begin_with, resume=resume)

    def _kind_of(self, number: int, past: Past) -> str:
        return (
            EpisodeKind.REHEARSAL if number <= self._spec.rehearsals and past.recorded else EpisodeKind.REAL
        )

    # What is kept

    def _keep(self, step: EpisodeStep) -> None:
        if step.kind == EpisodeKind.REHEARSAL:
            self._rehearsed.append(step)
            if time.monotonic() - self._written_s >= _WRITE_EVERY_S:
                self._flush()
        else:
            self._flush()
            self._store([step])
        self._on_step(step)

    def _flush(self) -> None:
        """Store rehearsals, which are many and quick, once a second."""
        if self._rehearsed:
            self._store(self._rehearsed)
            self._rehearsed = []

    def _store(self, steps: Sequence[EpisodeStep]) -> None:
        self._written_s = time.monotonic()
        last = steps[-1]
        changes: dict[str, object] = {"crashes": 0, "now": {"kind": last.kind, "number": last.number}}
        if last.state is not None:
            changes |= {"learner": last.state, "learned_number": last.number}
        best = self._training.best_score
        if last.decided is not None and last.score is not None and (best is None or last.score > best):
            changes |= {"best_learner": last.decided, "best_number": last.number, "best_score": last.score}
        self._write(steps, **changes)

    def _write(self, steps: Sequence[EpisodeStep] = (), /, **changes: object) -> None:
        """Store the changes, and the rows of these steps with them. Raises LeaseLost."""
        self._wait(partial(self._save, steps, changes))
        for name, value in changes.items():
            setattr(self._training, name, value)

    @transaction.atomic
    def _save(self, steps: Sequence[EpisodeStep], changes: dict[str, object]) -> None:
        if not leases.held(self._training.pk, self._epoch).update(**changes):
            raise LeaseLost
        Episode.objects.bulk_create(persist.row(self._training, step, self._clock.now()) for step in steps)

    # Progress and stop requests

    def _round_over(self, rounds: Sequence[RoundReport]) -> None:
        if time.monotonic() - self._written_s < _WRITE_EVERY_S:
            return
        self._written_s = time.monotonic()
        last = rounds[-1]
        at = {"kind": str(self._kind), "number": self._number, "round": last.round_no, "actors": last.actors}
        self._write(now={**at, "return": last.score})

    def _stopping(self) -> bool:
        if self._hand_over.is_set():
            return True
        if time.monotonic() - self._checked_s >= _WRITE_EVERY_S:
            self._checked_s = time.monotonic()
            row = SchedulerTraining.objects.values_list("stop_requested", flat=True)
            self._stop_requested = self._wait(partial(row.get, pk=self._training.pk))
        return self._stop_requested
