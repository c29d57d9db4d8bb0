"""Deleting a job for good: what it made is gone from rows, disk, pages and API; no amount of money changes."""

import os
import re
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.urls import reverse

from tests.factories import make_job, make_running_job, make_spec
from tests.webapp.api_callers import ApiCaller
from webapp.jobs.invariants import job_findings
from webapp.jobs.list import actions
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies.downloads import list_checkpoints
from webapp.jobs.running.runner import run_job
from webapp.jobs.services import stop_job
from webapp.jobs.surfaces.models import Surface
from webapp.money.models import Account, Charge

pytestmark = pytest.mark.django_db(transaction=True)


def _ran() -> Job:
    """A job that has really run, on the simulated cloud, and is archived."""
    spec = make_spec(
        "hopper-simulated",
        training__scaling__actors=2,
        training__rollout__steps_per_call=16,
        training__stop={"rounds": 2, "env_steps": None},
        training__checkpoints={"every_rounds": 1},
        platform__workers=1,
    )
    job = make_job(spec=spec)
    assert run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event()) == 0
    actions.set_note(job=job, text="my best one")
    actions.archive(job=job, user=job.created_by)
    return Job.objects.get(pk=job.pk)


def _of_a_checkpoint(job: Job) -> dict[str, Any]:
    newest = list_checkpoints(job)[0]
    return {
        "job": job,
        "checkpoint": newest.name,
        "sha256": newest.sha256,
        "round_no": newest.round_no,
        "requested_by": job.created_by,
        "since": job.created_at,
    }


def _files(job: Job) -> list[Path]:
    return [
        path for path in Path(settings.STARLING_DATA).rglob("*") if job.pk in str(path) and path.is_file()
    ]


def _money(job: Job) -> list[Any]:
    return [list(rows.order_by("pk").values()) for rows in (Account.objects, Charge.objects)]


def test_what_it_made_goes_and_what_it_cost_stays() -> None:
    job, neighbour = _ran(), _ran()
    (film,) = job.films.all()  # queued after its evaluation
    film.state, film.file = FilmState.READY, f"{job.pk}/film.webp"
    film.save()
    shown = Path(settings.STARLING_DATA) / "films" / film.file
    shown.parent.mkdir(parents=True)
    shown.write_bytes(b"moving")
    Surface.objects.create(state="ready", grid=9, span=1, episodes=1, **_of_a_checkpoint(job))
    call, base = ApiCaller(job.created_by), f"/projects/{job.project.slug}"
    today = datetime.now(UTC).date()
    costs = f"{base}/costs?first_day={job.created_at.date()}&last_day={today}&prices=simulated&by=job"
    before, books, beside = call.get(costs).json(), _money(job), _files(neighbour)
    assert {path.suffix for path in _files(job)} >= {".checkpoint", ".jsonl", ".webp"}

    assert actions.delete(job=job, user=job.created_by)
    assert not actions.delete(job=job, user=job.created_by)

    assert _files(job) == []
    assert _files(neighbour) == beside != []
    for made in ("films", "surfaces", "checkpoints"):
        assert not getattr(job, made).exists(), made
    assert [event.payload["text"] for event in job.events.all()] == [f"Deleted by {job.created_by}."]
    job.refresh_from_db()
    assert job.note == ""
    assert call.get(costs).json() == before
    assert _money(job) == books
    assert list(job_findings(datetime.now(UTC))) == []


def test_no_one_finds_it_any_more_and_its_address_says_why(client: Any) -> None:
    job = _ran()
    slug, call = job.project.slug, ApiCaller(job.created_by)
    client.force_login(job.created_by)
    listed = reverse("jobs:list", args=[slug]) + "?q=is:archived"
    assert job.pk in client.get(listed).content.decode()
    assert call("DELETE", f"/projects/{slug}/jobs/{job.pk}").status_code == 204
    assert job.pk not in client.get(listed).content.decode()
    assert call.get(f"/projects/{slug}/jobs").json()["results"] == []
    compared = client.get(reverse("comparing:page", args=[slug]), {"of": job.pk})
    assert job.name not in compared.content.decode()
    for tab in ("detail", "cost", "logs"):
        page = client.get(reverse(f"jobs:{tab}", args=[slug, job.pk]))
        assert page.status_code == 410
        assert re.search(rf"\b{job.name} was deleted", page.content.decode())
    gone = call.get(f"/projects/{slug}/jobs/{job.pk}")
    assert gone.status_code == 410
    assert job.name in gone.json()["why"]
    assert call("DELETE", f"/projects/{slug}/jobs/{job.pk}").status_code == 410


def test_what_is_under_way_or_not_archived_is_not_deleted() -> None:
    running, _ = make_running_job()
    with pytest.raises(actions.LabelRefused, match="Archive it first"):
        actions.delete(job=running, user=running.created_by)
    job = stop_job(job=make_job(), user=None)
    actions.archive(job=job, user=job.created_by)
    made = {"checkpoint": "c", "sha256": "0" * 64, "round_no": 1}
    requester = {"job": job, "requested_by": job.created_by, "since": job.created_at}
    Film.objects.create(state=FilmState.FILMING, **made, **requester)
    with pytest.raises(actions.LabelRefused, match="film of it"):
        actions.delete(job=job, user=job.created_by)
    Film.objects.update(requested_by=None)  # a short one is given up instead
    surface = Surface.objects.create(grid=9, span=1, episodes=1, **made, **requester)
    with pytest.raises(actions.LabelRefused, match="surface of it"):
        actions.delete(job=job, user=job.created_by)
    surface.delete()
    Job.objects.filter(pk=job.pk).update(lease_owner="a process that is ending")
    with pytest.raises(actions.LabelRefused, match="not settled yet"):
        actions.delete(job=job, user=job.created_by)
    Job.objects.filter(pk=job.pk).update(lease_owner="")
    outcome = actions.act(project=job.project, user=None, action="delete", job_ids=[job.pk])
    assert outcome.done == (job.pk,)
    assert actions.act(project=job.project, user=None, action="unarchive", job_ids=[job.pk]).done == ()


def test_the_page_asks_again_and_deletes(client: Any) -> None:
    job = stop_job(job=make_job(), user=None)
    actions.archive(job=job, user=job.created_by)
    client.force_login(job.created_by)
    slug = job.project.slug
    assert 'name="delete"' in client.get(reverse("jobs:detail", args=[slug, job.pk])).content.decode()
    answer = client.post(reverse("jobs:labels", args=[slug, job.pk]), {"delete": "1"}, follow=True)
    assert f"{job.name} is deleted." in answer.content.decode()
    job.refresh_from_db()
    assert job.deleted_at is not None
