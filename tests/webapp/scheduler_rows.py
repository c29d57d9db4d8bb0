"""Tiny trainings of schedulers: four rounds of the cart pole, two actors at most, a handful of rehearsals."""

from __future__ import annotations

import threading
import uuid
from typing import Any

from tests.factories import make_project
from webapp.schedulers import leases, persist
from webapp.schedulers.models import Scheduler, SchedulerTraining, Version
from webapp.schedulers.request import TrainingRequest
from webapp.schedulers.services import request_training
from webapp.schedulers.training_run import run_training


def training_request(**changes: Any) -> TrainingRequest:
    """By path with double underscores, such as scheduling__episodes=1."""
    document: dict[str, Any] = {
        "name": "Tiny",
        "workload": "cartpole",
        "rounds": 4,
        "scheduling": {"actors_max": 2, "episodes": 2, "rehearsals": 4, "passes": 1},
        "platform": {"learner": "function", "workers": 1},
    }
    return _request(document, changes)


def data_training_request(**changes: Any) -> TrainingRequest:
    """An agent of Siren's for three epochs of the tumours, by path as above."""
    document: dict[str, Any] = {
        "name": "Tiny Siren",
        "workload": "siren-digits",
        "data": "breast_cancer",
        "target": 0.05,
        "rounds": 3,
        "scheduling": {
            "actors_max": 4,
            "memory_min_mb": 512,
            "memory_max_mb": 3008,
            "episodes": 2,
            "rehearsals": 8,
            "together": 4,
        },
        "platform": {"learner": "function", "workers": 1},
    }
    return _request(document, changes)


def _request(document: dict[str, Any], changes: dict[str, Any]) -> TrainingRequest:
    for path, value in changes.items():
        *tables, field = path.split("__")
        here = document
        for table in tables:
            here = here[table]
        here[field] = value
    return TrainingRequest.model_validate(document)


def ask_of_data(project: Any = None, **changes: Any) -> SchedulerTraining:
    project = project or make_project()
    request = data_training_request(**changes)
    return request_training(project=project, user=project.people.first(), request=request)


def ask(project: Any = None, **changes: Any) -> SchedulerTraining:
    project = project or make_project()
    return request_training(project=project, user=project.people.first(), request=training_request(**changes))


def run(training: SchedulerTraining, **options: Any) -> int:
    code = run_training(training.pk, owner=uuid.uuid4().hex, **{"hand_over": threading.Event(), **options})
    training.refresh_from_db()
    return code


def make_rows(project: Any, **changes: Any) -> SchedulerTraining:
    """A training and its version as rows to look at: no agent is in them."""
    training = ask(project, **changes)
    scheduler = Scheduler.objects.create(
        project=project, name=training.name, created_at=training.requested_at
    )
    facts = persist.facts(training)
    Version.objects.create(
        scheduler=scheduler,
        number=1,
        training=training,
        made_at=training.requested_at,
        learner=b"",
        facts=facts,
    )
    return training


def make_version(project: Any = None, *, of_data: bool = False, **changes: Any) -> Version:
    """A scheduler without its training having run: an untrained agent, stored as a training stores it."""
    from training.scheduling.trainer import initial_state

    training = (ask_of_data if of_data else ask)(project, **changes)
    state = initial_state(training.parsed_spec).encode()
    epoch = leases.take(training.pk, uuid.uuid4().hex)
    assert epoch is not None
    SchedulerTraining.objects.filter(pk=training.pk).update(
        learner=state, state="done", lease_expires_at=None
    )
    training.refresh_from_db()
    return persist.store_version(training, epoch)
