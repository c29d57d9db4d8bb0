"""The pages of A/B tests: the project's tests, the form of a new one, and one test with its answer."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from webapp.accounts.access import live_page, person_of, project_action, project_page
from webapp.accounts.models import Project
from webapp.comparing.abtests import services, text
from webapp.comparing.abtests.changes import ChangeRefused
from webapp.comparing.abtests.drawing import drawing_of
from webapp.comparing.abtests.forms import ABTestForm
from webapp.comparing.abtests.models import ABTest, AbTestState
from webapp.comparing.abtests.results import results_of
from webapp.job_states import Observed
from webapp.jobs.billing.bill_panel import cap_of_jobs
from webapp.jobs.queries import job_in
from webapp.money.budgets import BudgetRefused

TESTS_A_PAGE = 50
JOBS_OFFERED = 20


@project_page()
@require_safe
def test_list(request: HttpRequest, project: Project) -> HttpResponse:
    """List the project's tests, newest first."""
    page = Paginator(services.in_project(project), TESTS_A_PAGE).get_page(request.GET.get("page"))
    rows = [
        {"test": test, "question": text.question(test), "pill": text.PILLS[AbTestState(test.state)]}
        for test in page.object_list
    ]
    return render(request, "comparing/abtests/list.html", {"section": "compare", "page": page, "rows": rows})


@project_page(needs="editor")
@require_http_methods(["GET", "HEAD", "POST"])
def test_new(request: HttpRequest, project: Project) -> HttpResponse:
    """The form of a test of a finished job, and its start."""
    context: dict[str, Any] = {"section": "compare"}
    if not request.GET.get("job"):
        finished = project.jobs.filter(observed=Observed.SUCCEEDED, archived_at=None).order_by("-finished_at")
        return render(request, "comparing/abtests/pick.html", {**context, "jobs": finished[:JOBS_OFFERED]})
    job = context["job"] = job_in(project, request.GET["job"])
    try:
        spec = services.require_finished(job)
    except services.ABTestRefused as refusal:
        return render(request, "comparing/abtests/new.html", {**context, "refusal": str(refusal)}, status=409)
    form = ABTestForm(request.POST if request.method == "POST" else None, job=job, spec=spec)
    context |= {"form": form, "key": request.POST.get("idempotency_key") or secrets.token_urlsafe(12)}
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            given = form.cleaned_data
            try:
                test = services.start_test(
                    job=job,
                    user=person_of(request),
                    change=form.whole_change,
                    effect=given["effect"],
                    budget_usd=given["budget_usd"],
                    key=request.POST.get("idempotency_key", "")[:100] or None,
                )
                return redirect("abtests:detail", project.slug, test.pk)
            except (services.ABTestRefused, ChangeRefused, BudgetRefused) as refusal:
                form.add_error(None, str(refusal))
    return render(request, "comparing/abtests/new.html", context, status=status)


@project_page()
@require_safe
def test_page(request: HttpRequest, project: Project, test_id: int) -> HttpResponse:
    """One test: its question, its answer, its money and its pairs."""
    return render(
        request,
        "comparing/abtests/detail.html",
        {"section": "compare", **_panel(services.ab_test_in(project, test_id))},
    )


@live_page()
def test_progress(request: HttpRequest, project: Project, test_id: int) -> HttpResponse:
    """The changing part of a test's page, for a page that updates it."""
    return render(request, "comparing/abtests/progress.html", _panel(services.ab_test_in(project, test_id)))


@project_action("editor")
def test_stop(request: HttpRequest, project: Project, test_id: int) -> HttpResponse:
    test = services.stop_test(test=services.ab_test_in(project, test_id), user=person_of(request))
    return redirect("abtests:detail", project.slug, test.pk)


def _panel(test: ABTest) -> dict[str, Any]:
    results = results_of(test)
    spent = test.budget.spent_picodollars + test.budget.overrun_picodollars
    jobs = results.jobs
    return {
        "test": test,
        "question": text.question(test),
        "answer": text.answer(test, results),
        "certainty": text.CERTAINTY if test.state in (AbTestState.BETTER, AbTestState.WORSE) else "",
        "progress": text.progress(test, results),
        "pill": text.PILLS[AbTestState(test.state)],
        "waiting": test.state == AbTestState.RUNNING,
        "rows": text.pair_rows(results),
        "drawing": drawing_of(results),
        "score": results.score,
        "spent": spent,
        "cap": cap_of_jobs(jobs, later=services.budgets_of_further_runs(test)),
        "unreal": next((job.unreal for job in jobs if job.unreal), test.job.unreal if test.job else ""),
    }
