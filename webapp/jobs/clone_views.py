"""Views of `run_again` and `actor_bounds`, and the spec as a file."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.jobs import queries
from webapp.jobs.actor_bounds import BoundsRefused, change_bounds, number
from webapp.jobs.seed_groups import run_again
from webapp.jobs.services import SpecRefused


@project_page(needs="editor")
@require_POST
def job_again(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Run the job again; if that is refused, show the form with the obstacles."""
    job = queries.job_in(project, job_id)
    key = request.POST.get("idempotency_key", "")[:100] or None
    try:
        made = run_again(job=job, user=request.user, new_seed=request.POST.get("seed") == "new", key=key)
    except SpecRefused as refusal:
        messages.error(request, f"Nothing was launched. {refusal}")
        return redirect(f"{reverse('jobs:new', args=[project.slug])}?clone={job.pk}")
    return redirect("jobs:detail", project.slug, made.pk)


@project_page(needs="editor")
@require_POST
def job_bounds(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Change the fewest and most actors from the next round on."""
    job = queries.job_in(project, job_id)
    try:
        least = number(request.POST.get("least", ""), "The fewest actors")
        most = number(request.POST.get("most", ""), "The most actors")
        change_bounds(job=job, user=request.user, least=least, most=most)
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
