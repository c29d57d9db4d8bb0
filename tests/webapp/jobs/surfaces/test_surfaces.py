"""Reward surfaces: asked for, measured by a process of their own, drawn, told in words, and given up in words."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.factories import FixedClock, make_project, make_user
from tests.webapp.jobs.policies.test_policy import job_with_checkpoints
from webapp.jobs.policies import downloads as policies
from webapp.jobs.surfaces.heat_map import picture
from webapp.jobs.surfaces.measuring import SURVEYING
from webapp.jobs.surfaces.models import Surface, SurfaceState
from webapp.jobs.surfaces.services import request_surface

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _folder(settings: Any, tmp_path: Path) -> None:
    settings.STARLING_DATA = tmp_path


def _requested(job: Any, **changes: Any) -> Surface:
    chosen = policies.checkpoint(job, "")
    assert chosen is not None
    survey = {"grid": 3, "span": 0.5, "episodes": 1, **changes}
    return request_surface(job=job, chosen=chosen, user=job.created_by, **survey)


def _page(job: Any, what: str = "surfaces") -> str:
    client = Client()
    client.force_login(job.created_by)
    answer = client.get(f"/p/{job.project.slug}/jobs/{job.pk}/{what}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_surface_is_measured_point_by_point_and_drawn() -> None:
    job = job_with_checkpoints(make_project(make_user()), 1)
    surface = _requested(job)
    assert "data-waiting" in _page(job)
    SURVEYING.run(surface.pk)
    surface.refresh_from_db()
    assert (surface.state, surface.reason, surface.done) == (SurfaceState.READY, "", 9)
    assert surface.offsets == [-0.5, 0.0, 0.5]
    assert len(surface.eigenvalues) == 2
    values = [value for line in surface.points for value in line]
    assert all(8 <= value <= 500 for value in values)  # returns of a cart pole
    drawn = picture(surface)
    assert drawn is not None
    highest = f"{max(values):,.1f} "
    assert next(one.opacity for one in drawn.squares if one.words.startswith(highest)) == 1.0
    page = _page(job)
    assert page.count('class="square"') == 9 + 5
    assert f"comes to {surface.points[1][1]:,.1f}." in page
    assert page.count("<td") == 9
    assert "data-waiting" not in page
    assert "Reward surface" in _page(job, "policy")


def test_while_it_grows_what_is_known_is_shown() -> None:
    job = job_with_checkpoints(make_project(make_user()), 1)
    surface = _requested(job)
    assert picture(surface) is None
    points = [[None, 5.0, None], [None, 7.0, None], [None, None, None]]
    known = {"points": points, "offsets": [-1.0, 0.0, 1.0], "eigenvalues": [2.0, -1.0], "done": 2}
    Surface.objects.filter(pk=surface.pk).update(state=SurfaceState.SURVEYING, **known)
    page = _page(job)
    assert "2 of 9 points" in page
    assert page.count('class="square"') == 2 + 5


def test_a_checkpoint_that_is_gone_or_broken_is_reported() -> None:
    job = job_with_checkpoints(make_project(make_user()), 1)
    surface = _requested(job)
    policies.checkpoint_path(job.pk, surface.checkpoint).write_bytes(b"nothing")
    SURVEYING.run(surface.pk)
    surface.refresh_from_db()
    assert surface.state == SurfaceState.FAILED
    assert "checkpoint" in surface.reason
    assert "Not measured" in _page(job)
    assert _requested(job).state == SurfaceState.QUEUED  # it may be tried again


def test_one_whose_worker_is_gone_is_given_up() -> None:
    clock = FixedClock()
    job = job_with_checkpoints(make_project(make_user()), 1)
    surface = _requested(job, clock=clock)
    Surface.objects.filter(pk=surface.pk).update(state=SurfaceState.SURVEYING)
    clock.forward(timedelta(minutes=11).total_seconds())
    SURVEYING.recover(clock=clock)
    surface.refresh_from_db()
    assert surface.state == SurfaceState.SURVEYING
    clock.forward(timedelta(minutes=2).total_seconds())
    SURVEYING.recover(clock=clock)
    surface.refresh_from_db()
    assert (surface.state, surface.reason) == (SurfaceState.FAILED, SURVEYING.interrupted)
    SURVEYING.run(surface.pk)
    assert not Surface.objects.exclude(state=SurfaceState.FAILED).exists()


def test_nonsense_is_refused_in_words() -> None:
    user = make_user()
    job = job_with_checkpoints(make_project(user), 1)
    client = Client()
    client.force_login(user)
    address = f"/p/{job.project.slug}/jobs/{job.pk}/surfaces/ask/"
    chosen = policies.list_checkpoints(job)[0].name
    right = {"checkpoint": chosen, "grid": 9, "span": "1", "episodes": "1"}
    client.post(address, {**right, "span": "-1"})
    assert not Surface.objects.exists()
    assert client.post(address, {**right, "checkpoint": "../../etc/passwd"}).status_code == 404
    client.post(address, right)
    assert Surface.objects.get().grid == 9
