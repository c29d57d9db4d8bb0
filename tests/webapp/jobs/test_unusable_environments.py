"""An environment that cannot be learned from is refused before a launch, whichever way it is launched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp.api_callers import ApiCaller
from webapp.jobs.form.forms import job_form
from webapp.jobs.models import Job
from webapp.jobs.services import SpecRefused
from webapp.jobs.spec import JobSpec

pytestmark = pytest.mark.django_db

SENTENCE = "Blackjack-v1 cannot be used here: Blackjack-v1 shows Tuple"


def _unusable(name: str = "Blackjack-v1") -> dict[str, Any]:
    spec: dict[str, Any] = make_spec().model_dump(mode="json")
    spec["training"]["environment"] = {"id": name}
    return spec


def test_no_way_to_launch_takes_it() -> None:
    user = make_user()
    project = make_project(user)
    parent = make_job(project, user)
    mine, place = ApiCaller(user), f"/projects/{project.slug}"
    sweep = {
        "base": _unusable(),
        "name": "Rates",
        "fields": {"training.algorithm.learning_rate": "0.001, 0.0003"},
        "limit_usd": "1",
    }
    answers = {
        "job": mine.post(f"{place}/jobs", _unusable()),
        "seeds": mine.post(f"{place}/seeds", {"spec": _unusable(), "count": 2}),
        "sweep": mine.post(f"{place}/sweeps", sweep),
    }
    for way, answer in answers.items():
        assert answer.status_code == 422, (way, answer.content)
        found = {one["path"]: one["sentence"] for one in answer.json()["errors"]}
        assert SENTENCE in found["training.environment.id"], way
    assert list(Job.objects.all()) == [parent]
    assert mine.post(f"{place}/jobs", _unusable("FrozenLake-v1")).status_code == 422


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


def test_the_form_says_the_same(client: Any) -> None:
    user = make_user()
    project = make_project(user)
    client.force_login(user)
    with pytest.raises(SpecRefused, match=SENTENCE):
        make_job(project, user, make_spec(training__environment={"id": "Blackjack-v1"}))
    fields = job_form(start=JobSpec.model_validate(_unusable())).as_typed()
    page = client.post(f"/p/{project.slug}/jobs/new/", {**fields, "seeds": "1"})
    assert SENTENCE in page.content.decode()
