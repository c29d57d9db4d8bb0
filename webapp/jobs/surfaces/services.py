"""Surfaces are requested on a page and measured by the worker, one at a time. The row is the truth."""

from __future__ import annotations

from typing import Literal

from django.db import transaction

from webapp.accounts.models import User
from webapp.background import send_on_commit
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import Job
from webapp.jobs.policies.downloads import KeptCheckpoint
from webapp.jobs.surfaces.models import NOTHING_MEASURED, Surface, SurfaceState

Grid = Literal[9, 15, 21, 31]
"""Points of a side. Odd, so that the policy itself is one of them."""


@transaction.atomic
def request_surface(
    *,
    job: Job,
    chosen: KeptCheckpoint,
    user: User,
    grid: int,
    span: float,
    episodes: int,
    clock: Clock = SYSTEM_CLOCK,
) -> Surface:
    """Queue a surface around a checkpoint. An unfinished one stays as it is; a finished one is measured again."""
    wanted = {
        "checkpoint": chosen.name,
        "round_no": chosen.round_no,
        "grid": grid,
        "span": span,
        "episodes": episodes,
        "requested_by": user,
        "since": clock.now(),
    }
    surface, made = Surface.objects.select_for_update().get_or_create(
        job=job, sha256=chosen.sha256, defaults=wanted
    )
    if not made and surface.state in (SurfaceState.READY, SurfaceState.FAILED):
        Surface.objects.filter(pk=surface.pk).update(**wanted, **NOTHING_MEASURED, state=SurfaceState.QUEUED)
        surface.refresh_from_db()
    if surface.state == SurfaceState.QUEUED:
        send_on_commit(surface)
    return surface
