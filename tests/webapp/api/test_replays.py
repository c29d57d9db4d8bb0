"""Answers that an earlier request with the same Idempotency-Key brought about say so, whatever was asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp.api_callers import ApiCaller
from webapp.api.tokens import make_token
from webapp.jobs.models import Job

SPEC = make_spec().model_dump(mode="json")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "body", "first", "later"),
    [
        ("/jobs", SPEC, 201, 200),
        ("/jobs/JOB/again", {"new_seed": True}, 201, 200),
        ("/jobs/JOB/seeds", {"count": 2}, 201, 201),
        ("/seeds", {"spec": SPEC, "count": 2}, 201, 201),
        (
            "/sweeps",
            {
                "base": SPEC,
                "name": "Rates",
                "fields": {"training.algorithm.learning_rate": "0.001, 0.0003"},
                "limit_usd": "1",
            },
            201,
            201,
        ),
        ("/drafts", {"spec": SPEC}, 201, 201),
        ("/schedules", {"every": "week"}, 201, 201),
        (
            "/connections/simulated/profiles",
            {"environment": {"id": "CartPole-v1"}, "memory_mb": [1024]},
            202,
            202,
        ),
    ],
)
def test_a_later_answer_says_that_it_is_one(path: str, body: Any, first: int, later: int) -> None:
    user = make_user()
    project = make_project(user)
    mine = ApiCaller(user)
    address = f"/projects/{project.slug}{path.replace('JOB', make_job(project, user).pk)}"
    answers = [mine.post(address, body, Idempotency_Key="k") for _ in range(3)]
    assert [one.status_code for one in answers] == [first, later, later]
    assert [one.get("Idempotency-Replayed") for one in answers] == [None, "true", "true"]
    assert len({one.headers.get("Location") for one in answers}) == 1
    assert mine.post(address, body).get("Idempotency-Replayed") is None


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_fifty_launches_at_the_same_moment_one_is_new(live_site: str) -> None:
    user = make_user()
    project = make_project(user)
    _, key = make_token(user=user, name="t", scopes=("jobs",))
    place = urlsplit(live_site)
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Idempotency-Key": "k",
    }

    def launch(_: int) -> tuple[int, str | None]:
        connection = HTTPConnection(place.hostname or "", place.port, timeout=120)
        connection.request(
            "POST", f"/api/v1/projects/{project.slug}/jobs", make_spec().model_dump_json(), headers
        )
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("Idempotency-Replayed")

    with ThreadPoolExecutor(12) as many:
        answers = list(many.map(launch, range(50)))
    assert sorted(answers, key=str) == [(200, "true")] * 49 + [(201, None)]
    assert Job.objects.filter(project=project).count() == 1
