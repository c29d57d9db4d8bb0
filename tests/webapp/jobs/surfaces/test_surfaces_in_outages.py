"""A surface whose points find no room in the database is measured again, and is not given up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.factories import make_project, make_user
from tests.webapp.jobs.policies.test_policy import job_with_checkpoints
from tests.webapp.spoiled_database import fill
from webapp.jobs.policies.downloads import checkpoint
from webapp.jobs.surfaces.measuring import SURVEYING
from webapp.jobs.surfaces.models import Surface, SurfaceState
from webapp.jobs.surfaces.services import request_surface

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite's size can be limited from within")
def test_a_surface_that_finds_no_room_is_measured_once_there_is_some(settings: Any, tmp_path: Path) -> None:
    settings.STARLING_DATA = tmp_path
    job = job_with_checkpoints(make_project(make_user()), 1)
    chosen = checkpoint(job, "")
    assert chosen is not None
    surface = request_surface(job=job, chosen=chosen, user=job.created_by, grid=9, span=0.5, episodes=1)
    # It leaves no room for points in its page of four kilobytes.
    Surface.objects.filter(pk=surface.pk).update(reason="x" * 3600)
    mend = fill()
    SURVEYING.run(surface.pk)
    surface.refresh_from_db()
    assert surface.state == SurfaceState.QUEUED
    mend()
    SURVEYING.run(surface.pk)
    surface.refresh_from_db()
    assert (surface.state, surface.done) == (SurfaceState.READY, 81)
