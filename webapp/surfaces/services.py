"""Surfaces are requested on a page and measured by the worker, one at a time. The row is the truth."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from django.db import transaction

from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import Job
from webapp.jobs.policies.downloads import KeptCheckpoint
from webapp.surfaces.models import NOTHING_MEASURED, Surface, SurfaceState

ASK_AGAIN_AFTER = timedelta(seconds=4)
GIVEN_UP_AFTER = timedelta(minutes=12)
INTERRUPTED = "The worker stopped while it was measuring. Measure it again."
_AT_ONCE = 10
Grid = Literal[9, 15, 21, 31]
"""Points of a side. Odd, so that the policy itself is one of them."""


@transaction.atomic
def request_surface(
    *,
    job: Job,
    chosen: KeptCheckpoint,
    user: Any,
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
        "asked_by": user,
        "since": clock.now(),
    }
    surface, made = Surface.objects.select_for_update().get_or_create(
        job=job, sha256=chosen.sha256, defaults=wanted
    )
    if not made and surface.state in (SurfaceState.READY, SurfaceState.FAILED):
        Surface.objects.filter(pk=surface.pk).update(**wanted, **NOTHING_MEASURED, state=SurfaceState.QUEUED)
        surface.refresh_from_db()
    if surface.state == SurfaceState.QUEUED:
        transaction.on_commit(lambda: send_hint("webapp.surfaces.tasks.survey", surface.pk), robust=True)
    return surface


def look_after_surfaces(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Send messages again for surfaces that wait, and give up those whose worker is gone."""
    now = clock.now()
    lost = Surface.objects.filter(state=SurfaceState.SURVEYING, since__lt=now - GIVEN_UP_AFTER)
    lost.update(state=SurfaceState.FAILED, reason=INTERRUPTED, since=now)
    waiting = Surface.objects.filter(state=SurfaceState.QUEUED, since__lte=now - ASK_AGAIN_AFTER)
    for surface_id in waiting.order_by("since").values_list("pk", flat=True)[:_AT_ONCE]:
        if not send_hint("webapp.surfaces.tasks.survey", surface_id):
            break
