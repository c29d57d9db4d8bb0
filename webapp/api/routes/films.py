"""Films of a job's policy by checkpoint: request, poll, and fetch."""

from __future__ import annotations

from typing import Annotated, Literal

from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Query

from webapp.api.auth import Token
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.problems import Refused
from webapp.api.router import ApiRouter, EditorsJob, Person, ViewersJob
from webapp.api.routes.history import a_file
from webapp.api.schemas.policies import FilmedShape, FilmShape, NewFilm
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies import downloads as policies
from webapp.jobs.policies import films

router = ApiRouter(tags=["a job's policies"])
_ALL = "/projects/{slug}/jobs/{job_id}/films"
_Part = Annotated[Literal["film", "still"], Query(description="The film, or its first picture.")]


@router.get(_ALL, response=NumberedPage[FilmShape], summary="Films of a job's policy")
def list_films(job: ViewersJob, after: After = 0, limit: Limit = 100) -> NumberedPage[FilmShape]:
    """At most one for each checkpoint, in the order of their first requests."""
    return oldest_first(job.films.all(), after, limit, _film)


@router.post(_ALL, auth=Token("jobs"), response={202: FilmShape}, summary="Film a checkpoint")
def ask_for_film(job: EditorsJob, person: Person, response: HttpResponse, film: NewFilm) -> FilmShape:
    """The worker does it. A film that exists or is being made stays; a failed one is tried again."""
    chosen = policies.checkpoint_in(job, film.checkpoint)
    made = films.ask_for_film(job=job, chosen=chosen, user=person)
    response["Location"] = reverse("api_v1:get_film", args=[job.project.slug, job.pk, made.pk])
    return _film(made)


@router.get(
    f"{_ALL}/{{film_id}}", response={200: FilmShape, 304: None}, url_name="get_film", summary="One film"
)
def get_film(job: ViewersJob, film_id: RowId) -> FilmShape:
    return _film(_film_in(job, film_id))


@router.get(
    f"{_ALL}/{{film_id}}/file",
    url_name="film_file",
    summary="A film's file",
    openapi_extra=a_file("image/webp"),
)
def get_film_file(job: ViewersJob, film_id: RowId, part: _Part = "film") -> HttpResponseBase:
    film = _film_in(job, film_id)
    if film.state != FilmState.READY:
        why = f"The film is {film.get_state_display().lower()}. {film.reason}".strip()
        raise Refused(409, "not-yet", "There is no file.", why, "Ask again later, or request the film again.")
    try:
        file = films.film_path(film, still=part == "still").open("rb")
    except OSError:
        raise Http404("The film's file is gone.") from None
    name = f"starling-{film.job_id}-round-{film.round_no}.webp"
    answer = FileResponse(file, as_attachment=True, filename=name, content_type="image/webp")
    answer["Cache-Control"] = "no-store"
    return answer


def _film_in(job: Job, film_id: int) -> Film:
    found: Film | None = job.films.filter(pk=film_id).first()
    if found is None:
        raise Http404("This job has no such film.")
    return found


def _film(one: Film) -> FilmShape:
    ready = one.state == FilmState.READY
    return FilmShape(
        id=one.pk,
        checkpoint=one.checkpoint,
        round_no=one.round_no,
        state=one.state,
        reason=one.reason,
        since=one.since,
        shows=FilmedShape(**one.facts) if ready else None,
        file=reverse("api_v1:film_file", args=[one.job.project.slug, one.job_id, one.pk]) if ready else None,
    )
