"""Reward surfaces around checkpoints: request, poll, and fetch as numbers."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import Http404, HttpResponse
from django.urls import reverse
from pydantic import Field

from webapp.api.auth import Token
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.router import ApiRouter, EditorsJob, Person, ViewersJob
from webapp.api.schemas import CheckpointName, Request, Shape
from webapp.jobs.policies import downloads as policies
from webapp.jobs.surfaces import services
from webapp.jobs.surfaces.heat_map import picture
from webapp.jobs.surfaces.models import Surface
from webapp.jobs.surfaces.services import Grid

router = ApiRouter(tags=["a job's policies"])
_ALL = "/projects/{slug}/jobs/{job_id}/surfaces"


class NewSurface(Request):
    model_config = {"allow_inf_nan": False}

    checkpoint: CheckpointName = ""
    grid: Grid = Field(15, description="Points of a side.")
    span: float = Field(1.0, ge=0.01, le=10, description="How far to each side.")
    episodes: int = Field(1, ge=1, le=20, description="For each point.")


class SurfaceShape(Shape):
    """Mean returns around a checkpoint's policy, along the two directions of most curvature."""

    id: int
    checkpoint: str
    round_no: int
    state: Literal["queued", "surveying", "ready", "failed"]
    reason: str
    since: datetime
    grid: int
    span: float
    episodes: int
    points_done: int = Field(validation_alias="done")
    points_asked: int


class SurfaceResult(SurfaceShape):
    """With every point that is known so far."""

    eigenvalues: list[float] = Field(description="Curvature along the first direction and the second.")
    offsets: list[float] = Field(description="Where the grid's lines lie, the same for both directions.")
    points: list[list[float | None]] = Field(
        description="By the first direction, then the second; null: not known yet."
    )
    sentence: str


@router.get(_ALL, summary="Reward surfaces of a job's checkpoints")
def list_surfaces(job: ViewersJob, after: After = 0, limit: Limit = 100) -> NumberedPage[SurfaceShape]:
    """At most one for each checkpoint, in the order of their first requests."""
    rows = Surface.objects.filter(job=job)
    return oldest_first(rows, after, limit, _surface)


@router.post(_ALL, auth=Token("jobs"), response=202, summary="Measure a checkpoint's surface")
def request_surface(
    job: EditorsJob, person: Person, response: HttpResponse, surface: NewSurface
) -> SurfaceShape:
    """The worker does it, at no cost to the job. A running measurement stays as it is; a finished one is repeated."""
    made = services.request_surface(
        job=job,
        chosen=policies.checkpoint_in(job, surface.checkpoint),
        user=person,
        **surface.model_dump(exclude={"checkpoint"}),
    )
    response["Location"] = reverse("api_v1:get_surface", args=[job.project.slug, job.pk, made.pk])
    return _surface(made)


@router.get(f"{_ALL}/{{surface_id}}", response=(200, 304), summary="A surface with its points")
def get_surface(job: ViewersJob, surface_id: RowId) -> SurfaceResult:
    """The points so far, also while it is measured."""
    surface = Surface.objects.filter(job=job, pk=surface_id).first()
    if surface is None:
        raise Http404("This job has no such surface.")
    drawn = picture(surface)
    return SurfaceResult.of(
        surface, points_asked=surface.grid**2, sentence="" if drawn is None else drawn.sentence
    )


def _surface(surface: Surface) -> SurfaceShape:
    return SurfaceShape.of(surface, points_asked=surface.grid**2)
