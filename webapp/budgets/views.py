"""A project's budgets: the list, a new one, and one budget's page.

A change that lets jobs spend more needs a fresh sign-in. Installation-wide budgets appear on the same pages;
only staff can create and change them.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.accounts.access import live_page, person_of, project_action, project_page
from webapp.accounts.fresh_sign_in import fresh_sign_in
from webapp.accounts.models import Membership, Project
from webapp.budgets.display import period_words, summarize_budget, summarize_budgets
from webapp.budgets.forms import BudgetForm, NewBudgetForm, budget_version, form_of
from webapp.clock import SYSTEM_CLOCK
from webapp.formatting import display_usd, read_whole
from webapp.http.form_versions import refuse_if_stale
from webapp.http.responses import or_404
from webapp.jobs.launch.forecasts import calibration_sentence
from webapp.jobs.models import Job
from webapp.money.budgets import BudgetRefused, change_budget, close_budget, create_budget
from webapp.money.models import Budget, BudgetScope


@live_page()
def budget_list(request: HttpRequest, project: Project) -> HttpResponse:
    now = SYSTEM_CLOCK.now()
    rows = Budget.objects.filter(Q(project=project) | Q(project=None), closed_at=None)
    budgets = summarize_budgets(rows.select_related("user", "tag", "group").order_by("pk"), now)
    context = {
        "section": "budgets",
        "budgets": [budget for budget in budgets if budget.budget.project_id],
        "above": [budget for budget in budgets if not budget.budget.project_id],
        "calibration": calibration_sentence(project),
    }
    return render(request, "budgets/list.html", context)


@project_page(needs="editor")
@require_http_methods(["GET", "HEAD", "POST"])
def budget_new(request: HttpRequest, project: Project) -> HttpResponse:
    whose = None if "above" in request.GET and _is_staff(request) else project
    form = NewBudgetForm(request.POST or None, project=whose)
    person = project.people.filter(pk=read_whole(request.GET.get("person", ""))).first()
    if person is not None:
        form.begin_with_person(person)
    if form.is_valid():
        try:
            with transaction.atomic():
                budget = create_budget(
                    project=whose, user=person_of(request), **form.changes(), **form.scope_values()
                )
        except BudgetRefused as refusal:
            form.add_error("limit", str(refusal))
        else:
            messages.success(request, f"The budget is made: {_limit_words(budget)}.")
            return redirect("budgets:list", project.slug)
    status = 422 if form.errors else 200
    context = {"section": "budgets", "form": form, "above": whose is None}
    return render(request, "budgets/new.html", context, status=status)


@project_page(needs="editor")
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def budget_detail(request: HttpRequest, project: Project, budget_id: int) -> HttpResponse:
    """One budget with its form. Raising it needs a fresh sign-in. `?job=` names the job that the user came
    from."""
    budget = budget_in(project, budget_id, above=_is_staff(request))
    job = Job.objects.filter(project=project, pk=request.GET.get("job", "")).first()
    form = BudgetForm(request.POST) if request.method == "POST" else form_of(budget, raised=job is not None)
    refuse_if_stale(form, budget_version(budget))
    if request.method == "POST" and form.is_valid():
        changes = form.changes()
        if changes["limit_picodollars"] > budget.limit_picodollars:
            require_may_lift(request.membership, budget)  # type: ignore[attr-defined]
        change = _raise if changes["limit_picodollars"] > budget.limit_picodollars else _change
        try:
            change(request, budget, changes)
            budget.refresh_from_db()
        except BudgetRefused as refusal:
            form.add_error("limit", str(refusal))
        else:
            messages.success(request, f"The budget is changed: {_limit_words(budget)}.")
            return (
                redirect("jobs:detail", project.slug, job.pk)
                if job
                else redirect("budgets:list", project.slug)
            )
    summary = summarize_budget(budget, SYSTEM_CLOCK.now())
    context = {"section": "budgets", "form": form, "summary": summary, "job": job}
    return render(request, "budgets/detail.html", context, status=422 if form.errors else 200)


def _is_staff(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_staff", False))


def _limit_words(budget: Budget) -> str:
    """Return a budget with its limit as it was understood."""
    return f"“{budget.name}”, {display_usd(budget.limit_picodollars)} {period_words(budget)}"


def _change(request: HttpRequest, budget: Budget, changes: dict[str, Any]) -> None:
    change_budget(budget=budget, **changes)


_raise = fresh_sign_in(_change)


@project_action("editor")
@fresh_sign_in
def budget_close(request: HttpRequest, project: Project, budget_id: int) -> HttpResponse:
    """Close a budget. Needs a fresh sign-in, because jobs can spend more without it."""
    budget = budget_in(project, budget_id, closed=True, above=_is_staff(request))
    require_may_lift(request.membership, budget)  # type: ignore[attr-defined]
    budget_version(budget).refuse_if_stale(request.POST)
    close_budget(budget=budget)
    messages.info(request, f"“{budget.name}” is closed.")
    return redirect("budgets:list", project.slug)


def require_may_lift(membership: Membership, budget: Budget) -> None:
    """PermissionDenied unless this member may raise or close the budget: that of a person only owners may, as it limits
    editors themselves."""
    if budget.scope == BudgetScope.USER and budget.project_id and not membership.allows("owner"):
        raise PermissionDenied(
            f"“{budget.name}” limits a person, so only an owner of the project can raise or close it."
        )


def budget_in(project: Project, budget_id: int, *, closed: bool = False, above: bool = False) -> Budget:
    """Return the project's budget, or with `above` an installation-wide one. Http404 for any other, and
    unless `closed` for a closed one."""
    mine = Q(project=project) | Q(project=None) if above else Q(project=project)
    rows = Budget.objects.filter(mine, pk=budget_id)
    rows = rows if closed else rows.filter(closed_at=None)
    return or_404(rows.select_related("user", "tag", "group").first(), "budget")
