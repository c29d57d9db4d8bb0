"""By the API: a job once more, and a fork that begins with what another one has learned."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.factories import make_job, make_spec
from tests.webapp.api_callers import ApiCaller
from webapp.jobs.models import Job, Origin
from webapp.jobs.policies.downloads import list_checkpoints
from webapp.jobs.running.runner import run_job

pytestmark = pytest.mark.django_db(transaction=True)


def _spec(**changes: Any) -> Any:
    return make_spec(
        training__scaling__actors=1,
        training__rollout__steps_per_call=16,
        training__stop={"rounds": 1, "env_steps": None},
        training__checkpoints={"every_rounds": 1},
        platform__workers=1,
        **changes,
    )


def test_a_fork_begins_with_a_checkpoint_and_another_run_with_a_seed() -> None:
    job = make_job(spec=_spec(name="First"))
    call, base = ApiCaller(job.created_by), f"/projects/{job.project.slug}/jobs"
    document = _spec(name="Fork", training__seed=5).model_dump(mode="json")
    early = call.post(f"{base}/{job.pk}/forks", {"spec": document})
    assert early.status_code == 404
    assert "no such checkpoint" in early.json()["why"]
    assert run_job(job.pk, owner="test", hand_over=threading.Event()) == 0

    made = [call.post(f"{base}/{job.pk}/forks", {"spec": document}, Idempotency_Key="f") for _ in range(2)]
    assert [one.status_code for one in made] == [201, 200]
    assert made[0].json()["id"] == made[1].json()["id"]
    assert made[0].headers["Location"].endswith(made[0].json()["id"])
    origin = Origin.objects.get(job_id=made[0].json()["id"])
    assert (origin.of, origin.way, origin.checkpoint) == (job, "fork", list_checkpoints(job)[0].name)
    strange = make_spec("hopper-simulated").model_dump(mode="json")
    refused = call.post(f"{base}/{job.pk}/forks", {"spec": strange})
    assert refused.status_code == 422
    assert "that of First" in refused.json()["why"]

    seeds = [call.post(f"{base}/{job.pk}/again", {"new_seed": new}).json()["seed"] for new in (False, True)]
    assert seeds[0] == job.spec["training"]["seed"]
    assert seeds[1] != seeds[0]
    assert Job.objects.count() == 4
