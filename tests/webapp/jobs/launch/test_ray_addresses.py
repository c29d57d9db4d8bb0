"""No job is attached to a Ray cluster before the operator named its address: each runs the other's code."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.factories import make_job, make_project, make_spec
from tests.own_network import own_network
from webapp.jobs.launch import cloud_requirements
from webapp.jobs.models import Job
from webapp.jobs.running.runner import run_job
from webapp.jobs.services import SpecRefused, submit_job
from webapp.jobs.spec import JobSpec

pytestmark = pytest.mark.django_db


def _attached_to(address: str) -> JobSpec:
    document = make_spec().model_dump(mode="json")
    return JobSpec.model_validate({**document, "platform": {"kind": "ray", "address": address}})


def test_a_job_is_not_attached_to_a_cluster_that_only_a_user_chose() -> None:
    project = make_project()
    with own_network() as network:
        spec = _attached_to(f"127.0.0.1:{network.port}")
        with pytest.raises(SpecRefused, match="names it in STARLING_RAY_CLUSTERS"):
            submit_job(project=project, user=project.people.first(), spec=spec)
        assert network.connections() == 0


def test_a_cluster_that_the_operator_named_is_taken(settings: Any) -> None:
    settings.STARLING_RAY_CLUSTERS = ["head.lab:6379"]
    project = make_project()
    for address, refused in (("Head.lab:6379", False), ("", False), ("head.lab:6380", True)):
        words = " ".join(one.sentence for one in cloud_requirements.obstacles(project, _attached_to(address)))
        assert ("STARLING_RAY_CLUSTERS" in words) == refused


@pytest.mark.django_db(transaction=True)
def test_a_job_that_was_launched_before_is_not_attached_either() -> None:
    job = make_job()
    with own_network() as network:
        spec = _attached_to(f"127.0.0.1:{network.port}").model_dump(mode="json")
        Job.objects.filter(pk=job.pk).update(spec=spec)
        run_job(job.pk, owner="test", hand_over=threading.Event())
        assert network.connections() == 0
    job.refresh_from_db()
    assert job.observed == "failed"
    assert "STARLING_RAY_CLUSTERS" in job.reason
