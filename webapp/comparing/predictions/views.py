"""The page "What if": sliders for actors and limit, what they are predicted to do, and the button that applies them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from allauth.core.exceptions import ReauthenticationRequired
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from webapp.accounts.access import live_page, person_of, project_action
from webapp.accounts.fresh_sign_in import is_fresh
from webapp.accounts.models import Project
from webapp.comparing.predictions import services, text
from webapp.comparing.predictions.drawing import HEIGHT, WIDTH, charts
from webapp.comparing.predictions.predict import NoPrediction, predict
from webapp.formatting import display_usd
from webapp.job_states import TERMINAL
from webapp.jobs.actor_bounds import BoundsRefused
from webapp.jobs.actor_bounds import number as actors_of
from webapp.jobs.billing.bill_panel import limit_version
from webapp.jobs.models import Job
from webapp.jobs.queries import job_in
from webapp.jobs.reasons import look_of_job
from webapp.jobs.services import JobFinished, SpecRefused, limits
from webapp.money.amounts import PICODOLLARS_PER_USD, exact_usd, picodollars, read_usd
from webapp.money.budgets import NoRoom
from webapp.money.services import LimitTooLow, least_limit

_TIMES = 4
"""How far the sliders go beyond what is now."""
_REFUSALS = (NoPrediction, BoundsRefused, LimitTooLow, JobFinished, SpecRefused, NoRoom)


@live_page()
def what_if(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """The page of a running job: it works without scripts as well, by its button."""
    job = job_in(project, job_id)
    return render(
        request,
        "comparing/predictions/page.html",
        {"section": "jobs", **_sliders(job), **_predicted(job, request.GET)},
    )


@live_page()
def predicted(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """The prediction alone, for sliders that are moved."""
    return render(
        request, "comparing/predictions/predicted.html", _predicted(job_in(project, job_id), request.GET)
    )


@project_action("editor")
def what_if_apply(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Apply the actors and the limit, and keep the prediction. A higher limit needs a fresh sign-in."""
    job = job_in(project, job_id)
    limit_version(job).refuse_if_stale(request.POST)
    try:
        actors, limit = _read_choice(job, request.POST)
        if limit is not None and limit > job.account.limit_picodollars and not is_fresh(request):
            raise ReauthenticationRequired
        services.apply(job=job, user=person_of(request), actors=actors, limit_picodollars=limit)
    except _REFUSALS as refusal:
        messages.error(request, f"Nothing was changed. {refusal}")
        return redirect("predictions:what_if", project.slug, job.pk)
    messages.success(
        request,
        f"Applied from the next {job.declaration.round_name} on. The prediction is kept and judged at the job's end.",
    )
    return redirect("jobs:detail", project.slug, job.pk)


def _read_choice(job: Job, sent: QueryDict) -> tuple[int | None, int | None]:
    """Return the number of actors and the limit in picodollars that were chosen; None for what stays as it is.

    Raises NoPrediction for what is no amount, and BoundsRefused for what is no number of actors.
    """
    actors = actors_of(sent.get("actors", ""), "The actors")
    if actors is not None and actors == (services.own_actors(job) or job.actors):
        actors = None
    typed = sent.get("limit_usd", "")
    if not typed.strip():
        return actors, None
    try:
        limit = picodollars(read_usd(typed))
    except ValueError as refusal:
        raise NoPrediction(str(refusal)) from None
    return actors, None if limit == job.account.limit_picodollars else limit


def _sliders(job: Job) -> dict[str, Any]:
    """What the form begins with: the job as it is, and how far its sliders go."""
    allowed = limits().actors(job.spec["platform"]["kind"])
    limit = job.account.limit_picodollars
    now = Decimal(limit) / PICODOLLARS_PER_USD
    step = Decimal(1).scaleb(now.adjusted() - 1)
    # Whole steps below the limit, so that the slider can stand at it.
    down = (limit - least_limit(job.account)) // picodollars(step)
    return {
        "job": job,
        "limit_version": limit_version(job),
        "state": look_of_job(job),
        "over": job.observed in TERMINAL,
        "actors_most": min(allowed, max(8, _TIMES * max(1, job.actors))),
        "limit_least": f"{now - max(0, down) * step:f}",
        "limit_most": exact_usd(_TIMES * limit),
        "limit_step": f"{step:f}",
        "limit_floor": least_limit(job.account),
    }


def _predicted(job: Job, sent: QueryDict) -> dict[str, Any]:
    context: dict[str, Any] = {
        "job": job,
        "chosen_actors": sent.get("actors", "")[:6] or services.own_actors(job) or max(1, job.actors),
        "chosen_limit": sent.get("limit_usd", "")[:20] or exact_usd(job.account.limit_picodollars),
    }
    context["chosen_words"] = f"${context['chosen_limit']}"
    try:
        actors, limit = _read_choice(job, sent)
        context["chosen_words"] = display_usd(job.account.limit_picodollars if limit is None else limit)
        outcome = predict(job, actors=actors, limit_picodollars=limit)
    except (NoPrediction, BoundsRefused) as refusal:
        return {**context, "refusal": str(refusal)}
    return {
        **context,
        "rows": text.figures(job, outcome),
        "ending": text.ending(job, outcome),
        "charts": charts(job, outcome),
        "box": (WIDTH, HEIGHT),
    }
