"""A project's overview, the palette's results, the rate in the top bar, and hiding of the first steps."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from webapp.accounts import services as people
from webapp.accounts.access import live_page, person_of, project_action
from webapp.accounts.models import Membership, Project
from webapp.alerts.models import Severity
from webapp.alerts.queries import bell_of
from webapp.alerts.views import alert_row
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.queries import headings_of
from webapp.money.models import Budget, BudgetScope, Period
from webapp.overview import month, running_jobs, search
from webapp.overview.first_steps import guide_for
from webapp.overview.recording import demo_card
from webapp.overview.running_jobs import rate, state_sentence

SHOWN_NEEDS = 4


@live_page()
def page(request: HttpRequest, project: Project) -> HttpResponse:
    """The overview. With ?now=1 only the parts that change, for the page that updates itself."""
    context = {"section": "overview", **_now(request, project)}
    return render(request, "overview/now.html" if request.GET.get("now") else "overview/page.html", context)


def _now(request: HttpRequest, project: Project) -> dict[str, Any]:
    now = SYSTEM_CLOCK.now()
    membership: Membership = request.membership  # type: ignore[attr-defined]
    burn, rows = rate(project), running_jobs.running(project)
    alerts = bell_of(person_of(request), project).alerts
    needs = [alert_row(alert) for alert in alerts if alert.severity != Severity.INFO]
    recent = running_jobs.recent(project)
    guided = membership.allows("editor")
    return {
        "guide": guide_for(membership) if guided else None,
        "demo": demo_card(project) if guided and membership.guide_put_away_at is None else None,
        "sentence": state_sentence(burn),
        "running": rows,
        "running_title": "Running and queued" if burn.queued else "Running",
        "headings": headings_of(row.job for row in rows),
        "more_running": max(0, burn.jobs + burn.queued - len(rows)),
        "needs": needs[:SHOWN_NEEDS],
        "recent": recent,
        "nothing_yet": not rows and not recent,
        "months": _months(project, now),
    }


def _months(project: Project, now: datetime) -> list[dict[str, Any]]:
    """The card of each kind of money. A budget counts all kinds, so its line is drawn only if there is one kind."""
    months = month.months(project, now)
    limit = _monthly_limit(project) if len(months) == 1 else None
    return [
        {
            "month": row,
            "limit": limit,
            "drawing": month.drawing(row, limit),
            "words": month.month_in_words(row, limit),
            "pace": month.pace_sentence(row),
        }
        for row in months
    ]


def _monthly_limit(project: Project) -> int | None:
    budgets = Budget.objects.filter(
        project=project, scope=BudgetScope.PROJECT, period=Period.MONTHLY, closed_at=None
    )
    return budgets.order_by("limit_picodollars").values_list("limit_picodollars", flat=True).first()


@live_page()
def spending(request: HttpRequest, project: Project) -> HttpResponse:
    return render(request, "overview/rate.html", {"rate": rate(project)})


@live_page()
def find(request: HttpRequest, project: Project) -> HttpResponse:
    """Results for the typed words: as a page, or with ?options=1 as the palette's options."""
    text = request.GET.get("q", "")[:200]
    kinds = search.find(request.membership, text)  # type: ignore[attr-defined]
    template = "overview/options.html" if request.GET.get("options") else "overview/find.html"
    return render(request, template, {"kinds": kinds, "text": text})


@project_action("editor")
def guide(request: HttpRequest, project: Project) -> HttpResponse:
    """Hide the first steps for this person, or (`again`) show them."""
    away = None if "again" in request.POST else SYSTEM_CLOCK.now()
    people.put_guide_away(request.membership, away)  # type: ignore[attr-defined]
    return redirect("overview:page", project.slug)
