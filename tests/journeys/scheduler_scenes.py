"""Schedulers in every state, and a reward surface, for looking at pages."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np

from tests.webapp.scheduler_rows import data_training_request, training_request
from training.scaling.agent_weights import as_text
from training.scheduling.trainer import initial_state
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job
from webapp.jobs.surfaces.models import Surface, SurfaceState
from webapp.schedulers import persist
from webapp.schedulers.models import Episode, Scheduler, SchedulerTraining, TrainingState, Version
from webapp.schedulers.services import request_training


def schedulers_in_every_state(project: Any, user: Any) -> dict[str, SchedulerTraining]:
    """Trained, under way, and failed."""
    whole = {
        "scheduling__actors_max": 32,
        "scheduling__episodes": 20,
        "scheduling__rehearsals": 200,
        "rounds": 40,
    }
    done = _training(
        project, user, TrainingState.DONE, name="Hopper, time", workload="hopper-papers", **whole
    )
    _episodes(done, 20)
    scheduler = Scheduler.objects.create(project=project, name=done.name, created_at=done.requested_at)
    agent = initial_state(done.parsed_spec)  # which decides, though no one taught it
    Version.objects.create(
        scheduler=scheduler,
        number=1,
        training=done,
        made_at=done.requested_at + timedelta(minutes=52),
        weights=as_text(agent.actor_weights(done.parsed_spec.network)),
        learner=agent.encode(),
        facts=persist.facts(done),
    )
    running = _training(
        project, user, TrainingState.RUNNING, name="Humanoid, fine-tuned", workload="humanoid", **whole
    )
    _episodes(running, 7)
    now = {"kind": "real", "number": 208, "round": 14, "actors": 11, "return": 412.0}
    SchedulerTraining.objects.filter(pk=running.pk).update(now=now)
    failed = _training(
        project, user, TrainingState.FAILED, name="Qbert", workload="qbert", **whole | {"target": 900}
    )
    reason = (
        "An episode ended before its first round: its budget does not hold what a round may cost. Train again with a"
        " higher budget of an episode, or with fewer actors."
    )
    SchedulerTraining.objects.filter(pk=failed.pk).update(reason=reason)
    return {"done": done, "running": running, "failed": failed, "siren": _siren(project, user)}


def _siren(project: Any, user: Any) -> SchedulerTraining:
    """An agent that decides functions and memory for a model's training."""
    wish = data_training_request(
        name="Digits, least time",
        data="",
        target=0.22,
        rounds=20,
        budget_usd="0.02",
        scheduling__actors_max=32,
        scheduling__episodes=5,
        scheduling__rehearsals=200,
    )
    training = request_training(project=project, user=user, request=wish, tell_worker=False)
    SchedulerTraining.objects.filter(pk=training.pk).update(state=TrainingState.DONE)
    training.refresh_from_db()
    rng, rows = np.random.default_rng(22), []
    for place, plan in enumerate(training.parsed_spec.fixed_plans, start=1):
        fixed = [plan.actors] * 18, [plan.memory_mb] * 18
        rows.append(_epochs(training, "grid", place, *fixed, None, rng))
    for number in range(1, 201):
        score = 0.2 + 0.9 * (1 - math.exp(-number / 50)) + 0.1 * rng.normal()
        rows.append(_epochs(training, "rehearsal", number, [9] * 18, [], score, rng))
    for number in range(201, 206):
        functions = [int(26 - k + rng.integers(0, 2)) for k in range(18)]
        memory = [1536 if k < 4 else 832 for k in range(18)]
        rows.append(_epochs(training, "real", number, functions, memory, 0.8 + 0.05 * (number - 200), rng))
    Episode.objects.bulk_create(rows)
    scheduler = Scheduler.objects.create(
        project=project, name=training.name, created_at=training.requested_at
    )
    agent = initial_state(training.parsed_spec)
    Version.objects.create(
        scheduler=scheduler,
        number=1,
        training=training,
        made_at=training.requested_at + timedelta(minutes=4),
        weights=as_text(agent.actor_weights(training.parsed_spec.network)),
        learner=agent.encode(),
        facts=persist.facts(training),
    )
    return training


def _epochs(
    training: SchedulerTraining,
    kind: str,
    number: int,
    functions: list[int],
    memory: list[Any],
    score: Any,
    rng: Any,
) -> Episode:
    rehearsed = kind == "rehearsal"
    return Episode(
        training=training,
        kind=kind,
        number=number,
        at=SYSTEM_CLOCK.now(),
        rounds=len(functions),
        platform_s=21 + 3 * float(rng.normal()),
        wall_s=0.01 if rehearsed else 6.0,
        cost_picodollars=0 if rehearsed else int(1.6e10 + 1e9 * rng.normal()),
        best_return=0.219 - 0.004 * float(rng.random()),
        reached=True,
        score=score,
        actors=functions,
        memory_mb=memory,
    )


def surfaces_of(job: Job) -> None:
    """One that is measured and one that grows."""
    kept = list(job.checkpoints.all()[:2])
    offsets = [float(one) for one in np.linspace(-1, 1, 15)]
    for number, checkpoint in enumerate(kept):
        points: list[list[float | None]] = [
            [
                2200 * math.exp(-2 * (x - 0.2) ** 2 - 0.6 * (y + 0.3) ** 2 + 0.3 * math.sin(9 * x * y))
                for y in offsets
            ]
            for x in offsets
        ]
        if number:
            points = [line if 4 <= row <= 10 else [None] * 15 for row, line in enumerate(points)]
        Surface.objects.create(
            job=job,
            checkpoint=checkpoint.name,
            sha256=checkpoint.sha256,
            round_no=checkpoint.round_no,
            grid=15,
            span=1.0,
            episodes=1,
            requested_by=job.created_by,
            state=SurfaceState.SURVEYING if number else SurfaceState.READY,
            since=SYSTEM_CLOCK.now(),
            eigenvalues=[18.4, -7.31],
            offsets=offsets,
            points=points,
            done=105 if number else 225,
        )


def _training(project: Any, user: Any, state: str, **changes: Any) -> SchedulerTraining:
    training = request_training(
        project=project, user=user, request=training_request(**changes), tell_worker=False
    )
    SchedulerTraining.objects.filter(pk=training.pk).update(state=state)
    training.refresh_from_db()
    return training


def _episodes(training: SchedulerTraining, real: int) -> None:
    rng = np.random.default_rng(real)
    at, rows = SYSTEM_CLOCK.now(), []
    for size in (4, 8, 16, 32):
        rows.append(_row(training, "grid", size, at, [size] * 40, None, rng))
    for number in range(1, 201):
        score = -3.2 + 1.7 * (1 - math.exp(-number / 60)) + 0.25 * rng.normal()
        rows.append(_row(training, "rehearsal", number, at, [12] * 24, score, rng))
    for number in range(201, 201 + real):
        many = [int(28 - 20 * k / 30 + rng.integers(0, 3)) for k in range(30)]
        score = -2.4 + 0.03 * (number - 200) + 0.12 * rng.normal()
        rows.append(_row(training, "real", number, at, many, score, rng))
    Episode.objects.bulk_create(rows)


def _row(
    training: SchedulerTraining, kind: str, number: int, at: Any, actors: list[int], score: Any, rng: Any
) -> Episode:
    best = 2100 + 180 * float(rng.normal())
    return Episode(
        training=training,
        kind=kind,
        number=number,
        at=at,
        rounds=len(actors),
        platform_s=240 + 30 * float(rng.normal()),
        wall_s=0.04 if kind == "rehearsal" else 131.0,
        cost_picodollars=0 if kind == "rehearsal" else int(2.1e11 + 2e10 * rng.normal()),
        best_return=best,
        reached=best >= training.parsed_spec.target,
        score=score,
        actors=actors,
    )
