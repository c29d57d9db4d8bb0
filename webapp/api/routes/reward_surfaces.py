"""Reward surfaces around checkpoints: request, poll, and fetch as numbers."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse

from webapp.api.auth import Token
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.router import ApiRouter, EditorsJob, Person, ViewersJob
from webapp.api.schemas.policies import NewSurface, SurfaceResult, SurfaceShape
from webapp.jobs.policies import downloads as policies
from webapp.surfaces import services
from webapp.surfaces.heat_map import picture
from webapp.surfaces.models import Surface

router = ApiRouter(tags=["a job's policies"])
_ALL = "/projects/{slug}/jobs/{job_id}/surfaces"


@router.get(_ALL, response=NumberedPage[SurfaceShape], summary="Reward surfaces of a job's checkpoints")
def list_surfaces(job: ViewersJob, after: After = 0, limit: Limit = 100) -> NumberedPage[SurfaceShape]:
    """At most one for each checkpoint, in the order of their first requests."""
    rows = Surface.objects.filter(job=job)
    return oldest_first(rows, after, limit, lambda one: SurfaceShape(**_surface(one)))


@router.post(_ALL, auth=Token("jobs"), response={202: SurfaceShape}, summary="Measure a checkpoint's surface")
def ask_for_surface(
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
    return SurfaceShape(**_surface(made))


@router.get(
    f"{_ALL}/{{surface_id}}",
    response={200: SurfaceResult, 304: None},
    url_name="get_surface",
    summary="A surface with its points",
)
def get_surface(job: ViewersJob, surface_id: RowId) -> SurfaceResult:
    """The points so far, also while it is measured."""
    found = Surface.objects.filter(job=job, pk=surface_id).first()
    if found is None:
        raise Http404("This job has no such surface.")
    drawn = picture(found)
    return SurfaceResult(
        **_surface(found),
        eigenvalues=found.eigenvalues,
        offsets=found.offsets,
        points=found.points,
        sentence="" if drawn is None else drawn.sentence,
    )


def _surface(one: Surface) -> dict[str, Any]:
    return {
        "id": one.pk,
        "checkpoint": one.checkpoint,
        "round_no": one.round_no,
        "state": one.state,
        "reason": one.reason,
        "since": one.since,
        "grid": one.grid,
        "span": one.span,
        "episodes": one.episodes,
        "points_done": one.done,
        "points_asked": one.grid**2,
    }
