"""The checkpoint tab of a job's page: its checkpoints, policies to download, and films."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from training.engine.checkpoints import CheckpointError
from training.tasks.reinforcement import ReinforcementLearning
from webapp.accounts.access import live_page, person_of, project_action, project_page
from webapp.accounts.models import Project
from webapp.job_states import TERMINAL
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies import downloads as policies
from webapp.jobs.policies.film_process import film_path
from webapp.jobs.policies.films import ask_for_film
from webapp.jobs.policies.judgements import report_of
from webapp.jobs.queries import job_in

_PENDING = (FilmState.QUEUED, FilmState.FILMING)


def panel(job: Job) -> dict[str, Any]:
    """Return the tab's context. `policy_state` changes with the content; `policy_pending`: a film is being made."""
    kept = policies.list_checkpoints(job)
    films = [row.film for row in kept if row.film is not None]
    return {
        "job": job,
        "kept": kept,
        "policy_over": job.observed in TERMINAL,
        "model": report_of(job, kept[0]) if kept else None,
        "policy_pending": any(film.state in _PENDING for film in films),
        "policy_state": "|".join(f"{row.sha256[:8]}{row.film.state if row.film else ''}" for row in kept),
    }


@dataclass(frozen=True)
class FilmCard:
    """The films beside the return chart. `sentence` says why there is none; `failed`: in words of this machine."""

    films: list[dict[str, Any]]
    sentence: str
    failed: bool = False

    @property
    def newest(self) -> dict[str, Any] | None:
        return self.films[-1] if self.films else None


def film_card(job: Job, address: Callable[[Film, str], str] | None = None) -> FilmCard | None:
    """Return the job's films by round, or why there is none yet; None if it will have none.

    `address` returns where a film and its first picture are found; without it, on the pages of the project.
    """
    if job.training_facts.kind != ReinforcementLearning.kind:
        return None
    rows = list(job.films.order_by("round_no", "pk"))
    ready = [_film(row, address or _address_of(job)) for row in rows if row.state == FilmState.READY]
    if ready:
        return FilmCard(ready, "")
    coming = [row for row in rows if row.automatic]
    if not job.spec.get("films", True) or (
        job.observed in TERMINAL and not any(_pending(row) for row in coming)
    ):
        return None
    last = coming[-1] if coming else None
    failed = last is not None and last.state == FilmState.FAILED
    return FilmCard([], _why_no_film(last, over=job.observed in TERMINAL), failed)


def _pending(film: Film) -> bool:
    return film.state in _PENDING


WAITS_FOR_EVALUATION = "The first film follows the first evaluation."
WAITS_FOR_TIME = "The first film follows when the job has run longer: films take at most 5 % of its time."
BEING_MADE = "The film is being made."


def _why_no_film(film: Film | None, *, over: bool) -> str:
    if film is None:
        return WAITS_FOR_EVALUATION
    if film.state == FilmState.FAILED:
        return film.reason
    if film.state == FilmState.FILMING or over:
        return BEING_MADE
    return WAITS_FOR_TIME


def _address_of(job: Job) -> Callable[[Film, str], str]:
    return lambda film, part: reverse("jobs:film", args=[job.project.slug, job.pk, film.pk, part])


def _film(film: Film, address: Callable[[Film, str], str]) -> dict[str, Any]:
    shown = {key: film.facts.get(key) for key in ("steps", "ended")}
    addresses = {part: address(film, part) for part in ("film", "still")}
    return {"round": film.round_no, "return": film.returned, **shown, **addresses}


@live_page()
def film_list(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Return the films beside the return chart, for a page that waits for the next one."""
    card = film_card(job_in(project, job_id))
    return JsonResponse({"films": card.films if card else [], "sentence": card.sentence if card else ""})


@project_page()
@require_safe
def policy_download(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Return the policy of ?checkpoint= (default: the best, else the newest) as a zip."""
    job = job_in(project, job_id)
    chosen = policies.checkpoint_in(job, request.GET.get("checkpoint", ""))
    try:
        content = policies.policy_zip(job, chosen)
    except CheckpointError as error:
        messages.error(request, f"This policy cannot be exported: {error}.")
        return redirect("jobs:checkpoints", project.slug, job.pk)
    name = f"starling-{job.pk}-round-{chosen.round_no}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return HttpResponse(content, content_type="application/zip", headers=headers)


@project_action("editor")
def film_ask(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    job = job_in(project, job_id)
    chosen = policies.checkpoint_in(job, request.POST.get("checkpoint", ""))
    ask_for_film(job=job, chosen=chosen, user=person_of(request))
    return redirect("jobs:checkpoints", project.slug, job.pk)


@project_page()
@require_safe
def film_file(
    request: HttpRequest, project: Project, job_id: str, film_id: int, part: str
) -> HttpResponseBase:
    """Return a film, or its first picture."""
    film = get_object_or_404(job_in(project, job_id).films, pk=film_id, state=FilmState.READY)
    answer = film_response(film, part)
    # The URL contains the film's id, and a finished film never changes.
    answer["Cache-Control"] = "private, max-age=86400"
    return answer


def film_response(film: Film, part: str) -> FileResponse:
    """Return a finished film, or its first picture. Http404 if its file is gone."""
    try:
        file = film_path(film, still=part == "still").open("rb")
    except OSError:
        raise Http404("The film's file is gone.") from None
    return FileResponse(file, content_type="image/webp")
