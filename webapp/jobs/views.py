"""The form of a job, and what people do to one; pages are `list_page` and `job_page`. Changes go through `services`."""

from __future__ import annotations

import secrets
from decimal import Decimal, InvalidOperation
from typing import Any

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from training.environments import catalogue
from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.credentials.services import emulated
from webapp.jobs import clouds, forecasting, queries, seeds, services
from webapp.jobs.filled_in import begun_with
from webapp.jobs.forms import SpecForm, job_form, sections
from webapp.jobs.learned import lessons_of
from webapp.jobs.presets import presets
from webapp.jobs.problems import Problem
from webapp.jobs.spec import JobSpec
from webapp.jobs.states import TERMINAL
from webapp.schedulers import choosing


@project_page(needs="editor")
@require_http_methods(["GET", "HEAD", "POST"])
def job_new(request: HttpRequest, project: Project) -> HttpResponse:
    """The form, and its launch. Nothing is created while anything is wrong."""
    chosen, begun = begun_with(request.GET)
    if request.method != "POST":
        return _form_page(request, _form(project, None, begun), chosen.name)
    form = _form(project, request.POST, chosen.spec)
    if not form.is_valid():
        return _form_page(request, form, chosen.name, status=422)
    key = request.POST.get("idempotency_key", "")[:100] or None
    launch = {"project": project, "user": request.user, "spec": form.spec}
    try:
        count = seeds.seeds_asked(request.POST.get("seeds", ""))
        if count > 1:
            group = seeds.launch_seeds(**launch, count=count, key=key[:90] if key else None)
            return redirect("comparing:group", project.slug, group.pk)
        job = services.submit_job(**launch, idempotency_key=key)
    except services.SpecRefused as refusal:  # what a cloud has changed between the look and the launch
        form.add_error(None, str(refusal))
        return _form_page(request, form, chosen.name, status=422)
    return redirect("jobs:detail", project.slug, job.pk)


@project_page(needs="editor")
@require_POST
def job_forecast(request: HttpRequest, project: Project) -> HttpResponse:
    """What the job in the form would take and cost; nothing while the form has a fault."""
    form = _form(project, request.POST, None)
    if not form.is_valid():
        return HttpResponse()
    spec = choosing.placed(project, clouds.placed(project, form.spec))
    shown = forecasting.panel(spec, lessons_of(project, spec))
    return render(request, "jobs/forecast.html", {**shown, "simulated": spec.simulated})


def _form(project: Project, data: Any, start: JobSpec | None) -> SpecForm:
    """The job's form in this project: with its connections, and with what stands against a launch here."""

    def checks(spec: JobSpec) -> list[Problem]:
        whole = choosing.placed(project, spec)
        stands = [*choosing.obstacles(project, spec), *clouds.obstacles(project, spec)]
        return [*whole.check_limits(services.limits()), *stands]

    connected = (clouds.offered(project), clouds.none_yet(project))
    trained = (choosing.offered(project), choosing.none_yet(project))
    return job_form(data, start, checks, *connected, *trained)


def _form_page(request: HttpRequest, form: SpecForm, preset: str, status: int = 200) -> HttpResponse:
    context = {
        "section": "jobs",
        "form": form,
        "sections": sections(form.tree),
        "presets": presets().values(),
        "chosen": preset,
        "environments": catalogue.ENTRIES.values(),
        "emulated_kinds": [kind for kind, cloud in clouds.CLOUD_OF.items() if emulated(cloud)],
        "seeds": request.POST.get("seeds", "1"),
        "idempotency_key": request.POST.get("idempotency_key") or secrets.token_urlsafe(12),
    }
    return render(request, "jobs/new.html", context, status=status)


@project_page(needs="editor")
@require_POST
def job_stop(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    job = services.stop_job(job=queries.job_in(project, job_id), user=request.user)
    if job.observed not in TERMINAL:
        messages.info(request, "Stopping: no new calls start, and those in flight are cancelled.")
    return redirect("jobs:detail", project.slug, job.pk)


@project_page(needs="editor")
@require_POST
@reauthentication_required
def job_raise_budget(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """More may be spent: whoever says so has just given the password."""
    job = queries.job_in(project, job_id)
    try:
        limit = Decimal(request.POST.get("limit_usd", "").replace(",", "").strip().removeprefix("$"))
        if not limit.is_finite():
            raise InvalidOperation
        services.raise_budget(job=job, user=request.user, limit_usd=limit)
    except InvalidOperation:
        messages.error(request, "The new budget must be a number of dollars, such as 2.50.")
    except ValueError as refusal:  # too low, too many decimals, or the job is over: the text says which
        messages.error(request, str(refusal))
    return redirect("jobs:detail", project.slug, job.pk)


@project_page(needs="editor")
@require_POST
def job_go_on(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """For a job that a budget above it had stopped."""
    try:
        services.go_on(job=queries.job_in(project, job_id), user=request.user)
    except ValueError as refusal:
        messages.error(request, str(refusal))
    return redirect("jobs:detail", project.slug, job_id)


@project_page()
@require_safe
@never_cache
def job_stream(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """What a socket would have sent since number `after`, for pages that have none."""
    after = queries.event_number(request.GET.get("after"))
    return JsonResponse(queries.stream_messages(queries.job_in(project, job_id), after), safe=False)
