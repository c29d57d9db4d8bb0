"""Jobs that compute on this machine: one for each core at once, the others wait in order and say so."""

import subprocess
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from cloud.workers.executor import cores
from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp.api_callers import ApiCaller
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.invariants import job_findings
from webapp.jobs.models import Job
from webapp.jobs.running.job_slots import core_places, core_sentence
from webapp.jobs.running.leases import take_lease
from webapp.jobs.tasks import launch_job, watched

pytestmark = pytest.mark.django_db


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, settings: Any) -> list[str]:
    """The jobs whose process was started, on a machine with two cores; each is over at once."""
    settings.STARLING_MAX_LOCAL_JOBS = 2
    jobs: list[str] = []

    class OverAtOnce(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **_: Any) -> None:
            jobs.append(job_id := command[command.index("run-job") + 1])
            Job.objects.filter(pk=job_id).update(observed="cancelled")
            super().__init__(["true"])

    monkeypatch.setattr(subprocess, "Popen", OverAtOnce)
    return jobs


def _cores_in_use(count: int) -> ExitStack:
    """While it is open, so many other jobs compute here."""
    stack = ExitStack()
    for number in range(count):
        job = make_job()
        assert take_lease(job_id=job.pk, owner=f"other-{number}")
        assert stack.enter_context(watched.claim(job.pk, on_core=True))
    return stack


def test_there_is_a_place_for_each_core_unless_the_operator_says_otherwise(settings: Any) -> None:
    assert core_places() == max(1, cores())
    settings.STARLING_MAX_LOCAL_JOBS = 7
    assert core_places() == 7


@pytest.mark.parametrize("preset", ["cartpole", "hopper-simulated"])
def test_a_job_that_computes_here_waits_for_a_free_core_and_says_so(
    preset: str, started: list[str], launched: list[str]
) -> None:
    with _cores_in_use(2):
        job = make_job(spec=make_spec(preset))
        launch_job(job.pk)
        job.refresh_from_db()
        assert (started, job.observed, job.reason) == ([], "queued", core_sentence(2))
    launch_job(job.pk)
    assert started == [job.pk]


def test_a_job_that_computes_elsewhere_does_not_wait_for_a_core(
    started: list[str], launched: list[str]
) -> None:
    job = make_job()
    Job.objects.filter(pk=job.pk).update(cloud="aws_lambda")
    with _cores_in_use(2):
        launch_job(job.pk)
    assert started == [job.pk]


def test_who_has_waited_longest_gets_the_free_core(started: list[str], launched: list[str]) -> None:
    first, second, third = (make_job() for _ in range(3))
    with _cores_in_use(1):
        launch_job(third.pk)
        launch_job(second.pk)
        assert started == []
        launch_job(first.pk)
    assert started == [first.pk]
    assert launched == [second.pk], "the next in line need not wait for the next look"


def test_the_page_and_the_api_say_what_a_job_waits_for(
    started: list[str], launched: list[str], client: Any
) -> None:
    user = make_user()
    project = make_project(user)
    client.force_login(user)
    with _cores_in_use(2):
        first, job = make_job(project), make_job(project)
        launch_job(job.pk)
        page = client.get(reverse("jobs:detail", args=[project.slug, job.pk])).content.decode()
        assert core_sentence(2, ahead=1) in page
        page = client.get(reverse("jobs:detail", args=[project.slug, first.pk])).content.decode()
        assert core_sentence(2) in page
        listed = client.get(reverse("jobs:list", args=[project.slug])).content.decode()
        assert core_sentence(2) in listed
        assert ApiCaller(user).get(f"/projects/{project.slug}/jobs/{job.pk}").json()[
            "reason"
        ] == core_sentence(2)


def test_a_handed_over_job_waits_for_a_core_like_any_other(
    started: list[str], launched: list[str], client: Any
) -> None:
    user = make_user()
    project = make_project(user)
    client.force_login(user)
    with _cores_in_use(2):
        job = make_job(project)
        Job.objects.filter(pk=job.pk).update(observed="recovering", reason_code="handover")
        launch_job(job.pk)
        page = client.get(reverse("jobs:detail", args=[project.slug, job.pk])).content.decode()
        assert core_sentence(2) in page


def test_a_job_that_waits_for_a_core_is_not_forgotten() -> None:
    with _cores_in_use(core_places()):
        make_job()
        later = SYSTEM_CLOCK.now() + timedelta(seconds=80)
        assert list(job_findings(later)) == []
