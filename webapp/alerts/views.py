"""Pages of alerts: the list, the bell of every page, and what people do about an alert."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe

from webapp.accounts.access import live_page, person_of, project_action, project_page
from webapp.accounts.models import Project, User
from webapp.alerts import queries, rules, services
from webapp.alerts.message import path_to
from webapp.alerts.models import Alert, AlertKind, AlertState
from webapp.alerts.senders import mail
from webapp.alerts.text import ICONS, SNOOZE_WORDS, TONES
from webapp.database.faults import dispensable_write

ALERTS_A_PAGE = 50
MOST_KEPT = 50
KEEP = "keep"
"""The parameter with alerts that stay in the list whatever their state is: those that were just acted on."""


@live_page()
def alert_list(request: HttpRequest, project: Project) -> HttpResponse:
    """All alerts, by state. With ?rows=1 only the rows, for the page that refreshes itself."""
    chosen, keep = request.GET.get("state", ""), _kept(request.GET)
    chosen = chosen if chosen in queries.FILTERS else ""
    everything = queries.alerts_for(person_of(request), project)
    page = Paginator(queries.list_of(person_of(request), project, chosen, keep), ALERTS_A_PAGE).get_page(
        request.GET.get("page")
    )
    here = [("state", chosen), ("page", page.number if page.number > 1 else ""), *((KEEP, pk) for pk in keep)]
    query = urlencode([(name, value) for name, value in here if value])
    context: dict[str, Any] = {
        "page": page,
        "rows": [alert_row(alert) for alert in page],
        "state": chosen,
        "filters": [(key, queries.FILTERS[key][0]) for key in queries.SHOWN_FILTERS],
        "snoozes": SNOOZE_WORDS,
        "back": f"{request.path}?{query}" if query else request.path,
    }
    if request.GET.get("rows"):
        return render(request, "alerts/rows.html", context)
    context["nothing_yet"] = not page.paginator.count and not everything.exists()
    context["kept"] = [*keep, *(alert.pk for alert in page if alert.kind == AlertKind.JOB_FINISHED)][
        -MOST_KEPT:
    ]
    with dispensable_write():
        services.mark_seen(user=person_of(request), project=project)
    return render(request, "alerts/list.html", context)


@live_page()
def bell(request: HttpRequest, project: Project) -> HttpResponse:
    """The bell as it is now, for pages that stay open."""
    return render(request, "alerts/bell.html", bell_context(person_of(request), project))


@project_action("viewer")
def seen(request: HttpRequest, project: Project) -> HttpResponse:
    """The bell was opened: what it shows is no longer new to this person."""
    services.mark_seen(user=person_of(request), project=project)
    return HttpResponse()


@project_action("editor")
def acknowledge(request: HttpRequest, project: Project, alert_id: int) -> HttpResponse:
    services.acknowledge(
        alert=queries.alert_for(person_of(request), project, alert_id), user=person_of(request)
    )
    return _back(request, project, alert_id)


@project_action("editor")
def snooze(request: HttpRequest, project: Project, alert_id: int) -> HttpResponse:
    """Puts it off for as long as the pressed button says."""
    alert, how_long = queries.alert_for(person_of(request), project, alert_id), request.POST.get("for", "")
    if how_long in services.SNOOZES:
        services.snooze(alert=alert, user=person_of(request), how_long=how_long)
    return _back(request, project, alert_id)


@project_action("editor")
def settle(request: HttpRequest, project: Project, alert_id: int) -> HttpResponse:
    services.settle(alert=queries.alert_for(person_of(request), project, alert_id), user=person_of(request))
    return _back(request, project, alert_id)


@project_page()
@require_safe
def rule_list(request: HttpRequest, project: Project) -> HttpResponse:
    """The project's rules, and the form of a new one."""
    return render(request, "alerts/rules.html", _rules_context(project))


@project_action("editor")
def rule_add(request: HttpRequest, project: Project) -> HttpResponse:
    text = request.POST.get("text", "")[:200]
    try:
        rules.add_rule(project=project, user=person_of(request), text=text)
    except rules.RuleRefused as refusal:
        context = {**_rules_context(project), "typed": text, "problem": str(refusal)}
        return render(request, "alerts/rules.html", context, status=422)
    return redirect("alerts:rules", project.slug)


@project_action("editor")
def rule_remove(request: HttpRequest, project: Project) -> HttpResponse:
    """Remove the rule; one that is gone already stays gone."""
    wanted = request.POST.get("rule", "")
    known = queries.rules_of(project).filter(pk=int(wanted)) if _is_row_id(wanted) else ()
    for rule in known:
        rules.remove_rule(rule=rule)
    return redirect("alerts:rules", project.slug)


def _is_row_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 18


def _rules_context(project: Project) -> dict[str, Any]:
    return {
        "rules": queries.rules_of(project),
        "examples": rules.EXAMPLES,
        "figures": rules.FIGURES,
        "quiet_minutes": rules.QUIET_MINUTES,
    }


def bell_context(user: User, project: Project) -> dict[str, Any]:
    """The context of the bell's template."""
    state = queries.bell_of(user, project)
    return {
        "bell": state,
        "tone": TONES.get(state.worst, ""),
        "rows": [alert_row(alert) for alert in state.alerts],
        "bell_slug": project.slug,
        "mail_missing": not mail.can_send(),
    }


def alert_row(alert: Alert) -> dict[str, Any]:
    """An alert with what a page draws it from."""
    return {
        "alert": alert,
        "icon": ICONS[alert.kind],
        "tone": "ok" if alert.kind == AlertKind.JOB_FINISHED else TONES[alert.severity],
        "path": path_to(alert),
        "is_open": alert.state != AlertState.RESOLVED and alert.kind != AlertKind.JOB_FINISHED,
    }


def _back(request: HttpRequest, project: Project, alert_id: int) -> HttpResponse:
    """Redirect to the page with the button. The alert stays in its list until that page is opened without `keep`."""
    back = request.POST.get("back", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = reverse("alerts:list", args=[project.slug])
    path, _, query = back.partition("?")
    given = QueryDict(query, mutable=True)
    kept = list(dict.fromkeys([*_kept(given), alert_id]))[-MOST_KEPT:]
    given.setlist(KEEP, [str(pk) for pk in kept])
    return HttpResponseRedirect(f"{path}?{given.urlencode()}")


def _kept(given: QueryDict) -> list[int]:
    return [int(pk) for pk in given.getlist(KEEP)[-MOST_KEPT:] if _is_row_id(pk)]
