"""Films of a job's policy by checkpoint: request, poll, and fetch."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Query
from pydantic import BaseModel, Field

from webapp.api.auth import Token
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.problems import ApiRefused
from webapp.api.router import ApiRouter, EditorsJob, Person, ViewersJob
from webapp.api.routes.history import a_file
from webapp.api.schemas import CheckpointName, Request, Shape
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies import downloads as policies
from webapp.jobs.policies import films
from webapp.jobs.policies.film_process import film_path

router = ApiRouter(tags=["a job's policies"])
_ALL = "/projects/{slug}/jobs/{job_id}/films"
_Part = Annotated[Literal["film", "still"], Query(description="The film, or its first picture.")]


class NewFilm(Request):
    checkpoint: CheckpointName = ""


class FilmedShape(BaseModel):
    """The episode of a film."""

    frames: int
    width: int
    height: int
    seconds: float
    steps: int
    episode_return: float
    ended: bool = Field(description="The episode ended; false: the film was cut off before.")
    seed: int
    byte_count: int
    cpu_s: float | None = Field(
        None, description="Processor time that the film took. Earlier ones have none."
    )


class FilmShape(Shape):
    """An episode of a checkpoint's policy as moving pictures."""

    id: int
    checkpoint: str
    round_no: int
    state: Literal["queued", "filming", "ready", "failed"]
    reason: str
    since: datetime
    automatic: bool = Field(description="A short film after an evaluation, which no user requested.")
    shows: FilmedShape | None
    file: str | None = Field(description="Where to fetch it (WebP), once it is ready.")


@router.get(_ALL, summary="Films of a job's policy")
def list_films(job: ViewersJob, after: After = 0, limit: Limit = 100) -> NumberedPage[FilmShape]:
    """At most one for each checkpoint, in the order of their first requests. Short ones come after evaluations."""
    return oldest_first(job.films.all(), after, limit, _film)


@router.post(_ALL, auth=Token("jobs"), response=202, summary="Film a checkpoint")
def request_film(job: EditorsJob, person: Person, response: HttpResponse, film: NewFilm) -> FilmShape:
    """The worker does it. A film that exists or is being made stays; a failed or a short one is made again."""
    chosen = policies.checkpoint_in(job, film.checkpoint)
    made = films.ask_for_film(job=job, chosen=chosen, user=person)
    response["Location"] = reverse("api_v1:get_film", args=[job.project.slug, job.pk, made.pk])
    return _film(made)


@router.get(f"{_ALL}/{{film_id}}", response=(200, 304), summary="One film")
def get_film(job: ViewersJob, film_id: RowId) -> FilmShape:
    return _film(_film_in(job, film_id))


@router.get(f"{_ALL}/{{film_id}}/file", summary="A film's file", openapi_extra=a_file("image/webp"))
def get_film_file(job: ViewersJob, film_id: RowId, part: _Part = "film") -> HttpResponseBase:
    film = _film_in(job, film_id)
    if film.state != FilmState.READY:
        why = f"The film is {film.get_state_display().lower()}. {film.reason}".strip()
        raise ApiRefused(
            409, "not-yet", "There is no file.", why, "Ask again later, or request the film again."
        )
    try:
        file = film_path(film, still=part == "still").open("rb")
    except OSError:
        raise Http404("The film's file is gone.") from None
    name = f"starling-{film.job_id}-round-{film.round_no}.webp"
    answer = FileResponse(file, as_attachment=True, filename=name, content_type="image/webp")
    answer["Cache-Control"] = "no-store"
    return answer


def _film_in(job: Job, film_id: int) -> Film:
    film: Film | None = job.films.filter(pk=film_id).first()
    if film is None:
        raise Http404("This job has no such film.")
    return film


def _film(one: Film) -> FilmShape:
    ready = one.state == FilmState.READY
    return FilmShape.of(
        one,
        automatic=one.automatic,
        shows=one.facts if ready else None,
        file=reverse("api_v1:get_film_file", args=[one.job.project.slug, one.job_id, one.pk])
        if ready
        else None,
    )
