"""The page of one job: a head that all its tabs share, and one URL a tab. Each works without JavaScript."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from training.rl.environments import catalogue
from training.tasks.reinforcement import ReinforcementLearning
from training.tasks.supervised import SupervisedLearning
from webapp.accounts.access import live_page, project_page
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import TERMINAL
from webapp.jobs import machines, queries
from webapp.jobs.billing import bill_panel
from webapp.jobs.charts.figures import panels_of
from webapp.jobs.charts.history import series_of
from webapp.jobs.events import job_summary
from webapp.jobs.events.event_text import EVENT_ICONS
from webapp.jobs.form.spec_documents import shorten_values
from webapp.jobs.launch.launch_budget import free_for_next_round
from webapp.jobs.models import Job
from webapp.jobs.policies import policy_views
from webapp.jobs.reasons import (
    checkpoint_unreadable,
    look_of_job,
    looks_for_script,
    reason_beside_pill,
    stopped_by_budget,
)
from webapp.jobs.round_calls import round_calls
from webapp.jobs.running import platform_notes, run_log
from webapp.money.queries import budgets_above, find_limiting_budget
from webapp.trackers.queries import runs_of

TABS = (
    ("detail", "Charts"),
    ("actors", "{Actors}"),
    ("events", "Events"),
    ("logs", "Logs"),
    ("cost", "Cost"),
    ("checkpoints", "Checkpoints"),
    ("spec", "Spec"),
)
"""By URL name, in order."""
_ALSO = {ReinforcementLearning.kind: "video", SupervisedLearning.kind: "model"}
"""What the tab of checkpoints has beside them, by kind of training."""
EVENTS_A_PAGE = 200

Gather = Callable[[HttpRequest, Job], dict[str, Any]]
View = Callable[..., HttpResponseBase]


def _tab(name: str) -> Callable[[Gather], View]:
    """Make the view of one tab: the shared head, and the context that the function returns."""

    def view_of(gather: Gather) -> View:
        @project_page()
        @require_safe
        def view(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
            job = queries.job_in(project, job_id)
            context = {**_head(job), "tab": name, "tabs": _tabs_of(job), **gather(request, job)}
            return render(request, f"jobs/tabs/{name}.html", context)

        return view

    return view_of


def _tabs_of(job: Job) -> list[tuple[str, str]]:
    """Return the tabs of a job's page, by URL name and title."""
    also = _ALSO.get(job.training_facts.kind)
    titles = {"checkpoints": f"Checkpoints & {also}"} if also else {}
    return [(name, titles.get(name, job.declaration.say(title))) for name, title in TABS]


def _live_part(template: str, gather: Gather) -> View:
    """Return the view of one part of a tab alone, for live updates."""

    @project_page()
    @require_safe
    @never_cache
    def view(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
        return render(request, template, gather(request, queries.job_in(project, job_id)))

    return view


def _head(job: Job) -> dict[str, Any]:
    now = SYSTEM_CLOCK.now()
    above = budgets_above(job.account.pk, now)
    return {
        "section": "jobs",
        "job": job,
        "state": look_of_job(job),
        "reason": job_summary.why_waiting(job, now) or reason_beside_pill(job),
        **bill_panel.spent_of(job),
        "header": queries.header(job),
        "states": looks_for_script(),
        "event_icons": EVENT_ICONS,
        "steps_wanted": job.training_facts.progress_limit,
        "declared": job.declaration,
        "progress_unit": job.training_facts.progress_unit,
        "over": job.observed in TERMINAL,
        "stopped_by_budget": stopped_by_budget(job),
        "free_again": free_for_next_round(job, now) if stopped_by_budget(job) else 0,
        "checkpoint_unreadable": checkpoint_unreadable(job),
        "limit_version": bill_panel.limit_version(job),
        "suggested_limit": f"{bill_panel.suggested_limit(job):f}",
        "budgets_above": above,
        "held_by": find_limiting_budget(job.account, above),
        **machines.panel(job),
    }


@_tab("detail")
def job_charts(request: HttpRequest, job: Job) -> dict[str, Any]:
    return {**charts_of(job), "tracked": runs_of(job), "film_card": policy_views.film_card(job)}


def charts_of(job: Job) -> dict[str, Any]:
    """Return the charts of a job's page, and the reference that the first one draws."""
    training = job.training_facts
    reference: Any = catalogue.ENTRIES.get(training.subject)
    if training.kind == SupervisedLearning.kind and (known := job_summary.reference_of(job)) is not None:
        reference = {"reference_score": known[0], "reference_spread": None}
    return {"reference": reference, "panels": panels_of(training)}


def _actors(request: HttpRequest, job: Job) -> dict[str, Any]:
    typed = request.GET.get("round", "")
    round_no = int(typed) if typed.isdecimal() and len(typed) < 10 else None
    calls = round_calls(job, round_no, SYSTEM_CLOCK.now())
    return {
        "job": job,
        "calls": calls,
        "following": round_no is None,
        "cache": platform_notes.cache_words(job),
    }


@_tab("events")
def job_events(request: HttpRequest, job: Job) -> dict[str, Any]:
    before = queries.event_number(request.GET.get("before")) or None
    rounds = bool(request.GET.get("rounds"))
    rows = queries.events_before(job, before, EVENTS_A_PAGE, rounds=rounds)
    older = rows[0]["seq"] if len(rows) == EVENTS_A_PAGE else None
    return {"events": rows[::-1], "rounds": rounds, "older": older, "newest": before is None}


@_tab("logs")
def job_logs(request: HttpRequest, job: Job) -> dict[str, Any]:
    level = request.GET.get("level", "")
    wanted = request.GET.get("q", "")[:200]
    page = run_log.read(job.pk, level=level, wanted=wanted)
    return {"log": page, "level": level, "q": wanted, "levels": run_log.LEVELS}


@_tab("cost")
def job_cost(request: HttpRequest, job: Job) -> dict[str, Any]:
    return {"cost_rows": bill_panel.cost_by_kind(job.account), **bill_panel.panel(job)}


@_tab("checkpoints")
def job_checkpoints(request: HttpRequest, job: Job) -> dict[str, Any]:
    return policy_views.panel(job)


@_tab("spec")
def job_spec(request: HttpRequest, job: Job) -> dict[str, Any]:
    shortened = shorten_values(job.spec)
    return {
        "spec_json": _pretty(job.spec),
        "spec_shortened": _pretty(shortened) if shortened != job.spec else "",
    }


def _pretty(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


job_actors = _tab("actors")(_actors)
job_calls = _live_part("jobs/calls.html", _actors)
job_bill = _live_part("jobs/bill.html", lambda request, job: bill_panel.panel(job))
job_policy = _live_part("jobs/policy.html", lambda request, job: policy_views.panel(job))


@live_page()
def job_log_lines(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Return lines after a position, for a page that follows the log."""
    job = queries.job_in(project, job_id)
    after = queries.event_number(request.GET.get("after"))
    level, wanted = request.GET.get("level", ""), request.GET.get("q", "")[:200]
    page = run_log.read(job.pk, after=after, level=level, wanted=wanted)
    answer = render(request, "jobs/log_lines.html", {"log": page})
    answer["Starling-Position"] = str(page.position)
    return answer


@project_page()
@require_safe
def job_log_file(request: HttpRequest, project: Project, job_id: str) -> HttpResponseBase:
    """Return the whole log file."""
    path = run_log.log_file(queries.job_in(project, job_id).pk)
    if not path.is_file():
        raise Http404("This job has no log yet.")
    return FileResponse(
        path.open("rb"), as_attachment=True, filename=path.name, content_type="application/jsonl"
    )


@live_page()
def job_series(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Return the columns of some rounds in finer points, for zooming."""
    job = queries.job_in(project, job_id)
    first, last = (queries.event_number(request.GET.get(end)) for end in ("from", "to"))
    return JsonResponse(series_of(job, first or 1, last or job.round_no))
