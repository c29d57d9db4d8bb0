"""An environment that cannot be learned from is refused before a launch, whichever way it is launched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp.api_callers import ApiCaller
from tests.webapp.ways_to_launch import assert_refused
from webapp.jobs.models import Job

pytestmark = pytest.mark.django_db

SENTENCE = "Blackjack-v1 shows Tuple"


def _unusable(name: str = "Blackjack-v1") -> dict[str, Any]:
    spec: dict[str, Any] = make_spec().model_dump(mode="json")
    spec["training"]["environment"] = {"id": name}
    return spec


def test_no_way_to_launch_takes_it() -> None:
    user = make_user()
    project = make_project(user)
    parent = make_job(project, user)
    assert_refused(project, user, _unusable(), "training.environment.id", SENTENCE)
    assert list(Job.objects.all()) == [parent]
    other = ApiCaller(user).post(f"/projects/{project.slug}/jobs", _unusable("FrozenLake-v1"))
    assert other.status_code == 422


def test_one_outside_the_catalogue_that_can_be_learned_from_is_taken() -> None:
    user = make_user()
    project = make_project(user)
    spec = _unusable("CartPole-v0")
    assert ApiCaller(user).post(f"/projects/{project.slug}/jobs", spec).status_code == 201


def test_no_memory_is_profiled_for_it() -> None:
    user = make_user()
    place = f"/projects/{make_project(user).slug}/connections/simulated/profiles"
    wanted = {"environment": {"id": "Blackjack-v1"}, "memory_mb": [1024]}
    refused = ApiCaller(user).post(place, wanted)
    assert refused.status_code == 409
    assert SENTENCE in refused.json()["why"]
