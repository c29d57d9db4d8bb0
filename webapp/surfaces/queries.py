"""What the checkpoints tab shows about a job's reward surfaces."""

from __future__ import annotations

from typing import Any

from webapp.jobs.models import Job
from webapp.jobs.policies import downloads as policies
from webapp.surfaces.forms import SurfaceForm
from webapp.surfaces.heat_map import picture
from webapp.surfaces.models import Surface, SurfaceState

_PENDING = (SurfaceState.QUEUED, SurfaceState.SURVEYING)


def panel(job: Job) -> dict[str, Any]:
    surfaces = list(Surface.objects.filter(job=job))
    return {
        "job": job,
        "kept": policies.list_checkpoints(job),
        "surfaces": [{"surface": one, "picture": picture(one), "whole": one.grid**2} for one in surfaces],
        "surfaces_pending": any(one.state in _PENDING for one in surfaces),
        "surface_form": SurfaceForm(),
    }
