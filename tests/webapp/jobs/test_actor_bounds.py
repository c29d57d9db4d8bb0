"""Changing how many actors a job may have while it runs."""

import threading
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_connection, make_job, make_project, make_running_job, make_spec, make_user
from tests.members import add_member
from tests.webapp.bookkeeping import assert_whole
from training.scaling.plan import Bounds
from webapp.jobs.actor_bounds import BECAUSE, BoundsRefused, bounds_of, change_bounds, words
from webapp.jobs.launch.requirements import NOT_TESTED
from webapp.jobs.models import Job
from webapp.jobs.running import runner
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.runner import run_job
from webapp.jobs.services import stop_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> Any:
    user = make_user()
    client.force_login(user)
    return user


def _last_words(job: Job) -> str:
    return str(job.events.order_by("-seq").values_list("payload__text", flat=True).first())


@pytest.mark.django_db(transaction=True)
def test_a_running_job_heeds_new_bounds_from_its_next_round_on(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_spec(
        training__scaling__actors=2,
        training__rollout__steps_per_call=16,
        training__stop={"rounds": 4, "env_steps": None},
        training__evaluation={"every_rounds": 4, "episodes": 1},
        platform__workers=1,
    )
    job = make_job(spec=spec)
    monkeypatch.setattr(runner, "_ASK_EVERY_S", 0.0)
    recorded = Recorder.record

    def record(self: Recorder, event: Any) -> None:
        recorded(self, event)
        if event.kind == "round" and event.report.round_no == 2:
            change_bounds(job=job, user=job.created_by, least=3, most=None)

    monkeypatch.setattr(Recorder, "record", record)
    assert run_job(job.pk, owner="test", hand_over=threading.Event()) == 0
    reports = list(job.rounds.order_by("round_no").values_list("payload__report", flat=True))
    assert [one["actors"] for one in reports] == [2, 2, 3, 3]
    assert reports[-1]["plan_reason"].endswith(f"limited to 3 {BECAUSE}")
    job.refresh_from_db()
    assert_whole(job)


def test_a_change_is_reported_in_the_jobs_story_with_who_and_what_was_before() -> None:
    job, _ = make_running_job()
    change_bounds(job=job, user=job.created_by, least=2, most=8)
    said = _last_words(job)
    assert said.startswith(words(job, 2, 8))
    assert said.endswith(words(job, None, None))
    assert str(job.created_by) in said
    job.refresh_from_db()
    assert (job.actors_least, job.actors_most) == (2, 8)
    events = job.events.count()
    change_bounds(job=job, user=job.created_by, least=2, most=8)
    assert job.events.count() == events, "nothing changed, so nothing is told"
    change_bounds(job=job, user=job.created_by, least=None, most=None)
    assert _last_words(job).startswith(words(job, None, None))


@pytest.mark.parametrize(
    ("least", "most", "named"),
    [
        (0, None, "The fewest .* 1 and 16 here; 0 "),
        (None, 17, "The most .* 1 and 16 here; 17 "),
        (5, 4, r"The fewest .*\(5\) .* the most \(4\)"),
    ],
)
def test_what_is_no_range_is_refused(least: Any, most: Any, named: str) -> None:
    job, _ = make_running_job()
    with pytest.raises(BoundsRefused, match=named):
        change_bounds(job=job, user=job.created_by, least=least, most=most)


def test_a_job_that_is_over_keeps_its_actors() -> None:
    job = make_job()
    stop_job(job=job, user=job.created_by)
    with pytest.raises(BoundsRefused, match="is over"):
        change_bounds(job=job, user=job.created_by, least=1, most=1)


def test_more_than_the_account_gives_is_refused_as_at_a_launch() -> None:
    job = make_job()
    connection = make_connection(job.project)
    document = make_spec(platform={"kind": "aws_lambda", "connection": connection.pk}).model_dump(mode="json")
    Job.objects.filter(pk=job.pk).update(spec=document)
    with pytest.raises(BoundsRefused, match=NOT_TESTED.format(connection.name)):
        change_bounds(job=job, user=job.created_by, least=64, most=None)
    assert change_bounds(job=job, user=job.created_by, least=None, most=4).actors_most == 4


def test_bounds_stay_within_what_the_installation_gives() -> None:
    assert bounds_of(None, None, 16) == Bounds(actors_max=16)
    assert (bounds_of(32, 64, 16).actors_min, bounds_of(32, 64, 16).actors_max) == (16, 16)


def test_the_page_has_a_form_for_it(client: Client, owner: Any) -> None:
    project = make_project(owner)
    job, _ = make_running_job(project=project)
    address = f"/p/{project.slug}/jobs/{job.pk}/"
    assert 'name="least"' in client.get(address).content.decode()
    page = client.post(f"{address}actors/bounds/", {"least": "2", "most": "4"}, follow=True).content.decode()
    assert words(job, 2, 4) in page
    assert 'name="least" value="2"' in page
    refused = client.post(f"{address}actors/bounds/", {"least": "two"}, follow=True).content.decode()
    assert "or empty; &#x27;two&#x27;" in refused
    viewer = make_user()
    add_member(project, viewer.email, "viewer")
    client.force_login(viewer)
    seen = client.get(address).content.decode()
    assert words(job, 2, 4) in seen
    assert 'name="least"' not in seen
