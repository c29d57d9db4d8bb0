"""Reward surfaces around checkpoints: asked for, followed while they are measured, and taken away as numbers."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router
from ninja.responses import Status

from webapp.api.auth import Token, project_of
from webapp.api.etags import IfNoneMatch, if_changed
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.routes.jobs import caller_of
from webapp.api.schemas.policies import NewSurface, SurfaceResult, SurfaceShape
from webapp.jobs.policies import downloads as policies
from webapp.jobs.queries import job_in
from webapp.surfaces import services
from webapp.surfaces.heat_map import picture
from webapp.surfaces.models import Surface

router = Router(tags=["a job's policies"])
_ALL = "/projects/{slug}/jobs/{job_id}/surfaces"


@router.get(_ALL, response=NumberedPage[SurfaceShape], summary="Reward surfaces of a job's checkpoints")
def list_surfaces(
    request: HttpRequest, slug: str, job_id: str, after: After = 0, limit: Limit = 100
) -> NumberedPage[SurfaceShape]:
    """At most one of each checkpoint, in the order in which they were first asked for."""
    rows = Surface.objects.filter(job=job_in(project_of(request, slug), job_id))
    found, following = oldest_first(rows, after, limit)
    return NumberedPage(results=[SurfaceShape(**_surface(one)) for one in found], next=following)


@router.post(
    _ALL, auth=Token("jobs"), response={202: SurfaceShape}, summary="Have a checkpoint's surface measured"
)
def ask_for_surface(
    request: HttpRequest, response: HttpResponse, slug: str, job_id: str, surface: NewSurface
) -> SurfaceShape:
    """By the worker; it costs the job nothing. One on its way stays as it is, one that is over is measured anew."""
    job = job_in(project_of(request, slug, "editor"), job_id)
    made = services.ask_for_surface(
        job=job,
        chosen=policies.checkpoint_in(job, surface.checkpoint),
        user=caller_of(request),
        **surface.model_dump(exclude={"checkpoint"}),
    )
    response["Location"] = reverse("api_v1:get_surface", args=[slug, job.pk, made.pk])
    return SurfaceShape(**_surface(made))


@router.get(
    f"{_ALL}/{{surface_id}}",
    response={200: SurfaceResult, 304: None},
    url_name="get_surface",
    summary="A surface with its points",
)
def get_surface(
    request: HttpRequest,
    response: HttpResponse,
    slug: str,
    job_id: str,
    surface_id: RowId,
    if_none_match: IfNoneMatch = "",
) -> Status:
    """What is known of it so far, also while it is measured."""
    job = job_in(project_of(request, slug), job_id)
    found = Surface.objects.filter(job=job, pk=surface_id).first()
    if found is None:
        raise Http404("This job has no such surface.")
    drawn = picture(found)
    shape = SurfaceResult(
        **_surface(found),
        eigenvalues=found.eigenvalues,
        offsets=found.offsets,
        points=found.points,
        sentence="" if drawn is None else drawn.sentence,
    )
    return if_changed(response, shape, if_none_match)


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
