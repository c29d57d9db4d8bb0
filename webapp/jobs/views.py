"""Actions on a job; the pages are in `list_page`, `job_page` and `form_page`. Changes go through `services`."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from webapp.accounts.access import live_page, person_of, project_action, project_page
from webapp.accounts.fresh_sign_in import fresh_sign_in
from webapp.accounts.models import Project
from webapp.formatting import display_usd
from webapp.job_states import TERMINAL
from webapp.jobs import queries, services
from webapp.jobs.actor_bounds import BoundsRefused, change_bounds, number
from webapp.jobs.billing.bill_panel import limit_version
from webapp.jobs.seed_groups import run_again
from webapp.jobs.services import SpecRefused
from webapp.money.amounts import picodollars, read_usd


@project_action("editor")
def job_stop(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    job = services.stop_job(job=queries.job_in(project, job_id), user=person_of(request))
    if job.observed not in TERMINAL:
        messages.info(request, "Stopping: no new calls start, and those in flight are cancelled.")
    return redirect("jobs:detail", project.slug, job.pk)


@project_action("editor")
@fresh_sign_in
def job_raise_budget(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Raise the job's budget. Needs a fresh sign-in, because the job can spend more."""
    job = queries.job_in(project, job_id)
    limit_version(job).refuse_if_stale(request.POST)
    try:
        limit = read_usd(request.POST.get("limit_usd", ""))
        services.raise_budget(job=job, user=person_of(request), limit_usd=limit)
    except (
        ValueError
    ) as refusal:  # no amount, too low, too many decimals, or the job has ended: the text says which
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"The job's budget is now {display_usd(picodollars(limit))}.")
    return redirect("jobs:detail", project.slug, job.pk)


@project_action("editor")
def job_go_on(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Resume a paused job, or one that a budget above it stopped."""
    try:
        services.go_on(job=queries.job_in(project, job_id), user=person_of(request))
    except ValueError as refusal:
        messages.error(request, str(refusal))
    return redirect("jobs:detail", project.slug, job_id)


@project_action("editor")
def job_start_over(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Begin a job again whose recorded checkpoints cannot be read."""
    try:
        services.start_over(job=queries.job_in(project, job_id), user=person_of(request))
    except ValueError as refusal:
        messages.error(request, str(refusal))
    return redirect("jobs:detail", project.slug, job_id)


@live_page()
def job_stream(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Return what a socket would have sent since number `after`, for pages without one."""
    after = queries.event_number(request.GET.get("after"))
    return JsonResponse(queries.stream_messages(queries.job_in(project, job_id), after), safe=False)


@project_action("editor")
def job_again(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Run the job again; if that is refused, show the form with the obstacles."""
    job = queries.job_in(project, job_id)
    key = request.POST.get("idempotency_key", "")[:100] or None
    try:
        made = run_again(
            job=job, user=person_of(request), new_seed=request.POST.get("seed") == "new", key=key
        )
    except SpecRefused as refusal:
        messages.error(request, f"Nothing was launched. {refusal}")
        return redirect(f"{reverse('jobs:new', args=[project.slug])}?clone={job.pk}")
    return redirect("jobs:detail", project.slug, made.pk)


@project_action("editor")
def job_bounds(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Change the fewest and most actors from the next round on."""
    job = queries.job_in(project, job_id)
    if changes := limit_version(job).changes_since(request.POST):
        messages.error(request, " ".join(changes))
        return redirect("jobs:detail", project.slug, job.pk)
    try:
        least = number(request.POST.get("least", ""), "The fewest actors")
        most = number(request.POST.get("most", ""), "The most actors")
        change_bounds(job=job, user=person_of(request), least=least, most=most)
    except BoundsRefused as refusal:
        messages.error(request, f"Nothing was changed. {refusal}")
    return redirect("jobs:detail", project.slug, job.pk)


@project_page()
@require_safe
def job_spec_file(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Return the job's spec as it was launched. The form, the command line and the API accept it."""
    job = queries.job_in(project, job_id)
    return spec_file(job.spec, f"starling-{job.pk}.json")


def spec_file(document: object, name: str) -> HttpResponse:
    answer = HttpResponse(
        json.dumps(document, indent=2, ensure_ascii=False) + "\n", content_type="application/json"
    )
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
