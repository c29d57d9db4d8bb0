"""The pages that compare: picked runs, a group, a new sweep, dollars to the goal. What is shown is in the address."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from webapp.accounts.access import person_of, project_action, project_page
from webapp.accounts.models import Project
from webapp.comparing import text
from webapp.comparing.curves import AXES, curves_of, drawn, getting_to, goal_of
from webapp.comparing.figures import JobComparison, compared, differences
from webapp.comparing.goal_board import board_of, subjects_of
from webapp.comparing.goal_results import measured_rows, measured_subjects, references, title_of
from webapp.comparing.groups import MOST_SIDES, Picked, group_rows, list_groups, of_group, picked
from webapp.comparing.pareto import plane
from webapp.comparing.sweeps import SweepForm, SweepRefused, base_of, launch_sweep
from webapp.formatting import read_whole
from webapp.http.responses import or_404
from webapp.job_states import ACTIVE, TERMINAL
from webapp.jobs.billing.bill_panel import cap_of_jobs
from webapp.jobs.list import run_table
from webapp.jobs.models import JobGroup
from webapp.jobs.queries import headings_of
from webapp.jobs.seed_groups import MOST_SEEDS, more_seeds
from webapp.jobs.services import SpecRefused
from webapp.money.amounts import picodollars
from webapp.money.models import Budget

GROUPS_A_PAGE = 50
MEASURED_AT_ONCE = 8


@project_page()
@require_safe
def page(request: HttpRequest, project: Project) -> HttpResponse:
    """The comparison of the jobs and groups named in the address (`of`, or `job` as the list's boxes say)."""
    keys = [*request.GET.getlist("of"), *request.GET.getlist("job")]
    chosen = picked(project, keys)
    context: dict[str, Any] = {"section": "compare", **run_table.list_comparison_candidates(project)}
    context["chips"] = [
        {"side": side, "without": "?" + urlencode([("of", key) for key in _other_keys(chosen, side.key)])}
        for side in chosen.sides
    ]
    context["keys"] = list(dict.fromkeys(side.key for side in chosen.sides))
    context["may_add"] = len(chosen.sides) < MOST_SIDES
    context["running"] = any(job.observed in ACTIVE for job in chosen.jobs)
    context |= _comparison(chosen, request)
    return render(request, "comparing/page.html", context)


@project_page()
@require_safe
def groups(request: HttpRequest, project: Project) -> HttpResponse:
    """List the project's groups, newest first."""
    page = Paginator(list_groups(project), GROUPS_A_PAGE).get_page(request.GET.get("page"))
    rows = group_rows(list(page.object_list))
    waiting = any(row["active"] for row in rows)
    context = {"section": "jobs", "page": page, "rows": rows, "waiting": waiting}
    return render(request, "comparing/groups.html", context)


@project_page()
@require_safe
def group(request: HttpRequest, project: Project, group_id: int) -> HttpResponse:
    """A group of runs: its seeds as one curve, or the points of its sweep compared, each with its seeds."""
    group = _group_in(project, group_id)
    chosen = of_group(project, group)
    jobs = list(run_table.find_group_jobs(project, group))
    rows = text.member_rows(jobs)
    context = {
        "section": "compare",
        "group": group,
        "rows": rows,
        "unreal": next((row["job"].unreal for row in rows if row["job"].unreal), ""),
        "budgets": Budget.objects.filter(group=group, closed_at=None),
        "spent": sum(row["spent"] for row in rows),
        "cap": cap_of_jobs(jobs),
        "all_ended": all(job.observed in TERMINAL for job in jobs),
        "running": sum(row["active"] for row in rows),
        "headings": headings_of(row["job"] for row in rows),
        **_comparison(chosen, request),
    }
    return render(request, "comparing/group.html", context)


def _comparison(chosen: Picked, request: HttpRequest) -> dict[str, Any]:
    """What both pages show of the sides."""
    if not chosen.sides:
        return {"comparison": None, "left_out": chosen.left_out}
    curves = curves_of(chosen.jobs)
    comparison: JobComparison = compared(chosen, curves)
    headings = headings_of(chosen.jobs)
    goal = goal_of(chosen.sides, curves) if len(chosen.sides) > 1 else None
    found_differences = differences(chosen.sides) if len(chosen.sides) > 1 else []
    getting = {side.place: getting_to(goal, side, curves) for side in chosen.sides} if goal else {}
    return {
        "comparison": comparison,
        "headings": headings,
        "left_out": chosen.left_out,
        "verdicts": text.verdicts(comparison),
        "goal": goal,
        "table": [text.row(one, comparison, getting.get(one.side.place)) for one in comparison.sides],
        "chart": {"sides": drawn(chosen.sides, curves), "sentence": text.chart_sentence(comparison)},
        "planes": [
            ("usd", f"{comparison.named} and dollars a run", plane(comparison.sides, "usd")),
            ("time", f"{comparison.named} and time a run", plane(comparison.sides, "time")),
        ],
        "differences": found_differences,
        "on_all": [difference for difference in found_differences if difference.on_all],
        "on_some": [difference for difference in found_differences if not difference.on_all],
        "any_group": any(len(side.jobs) > 1 for side in chosen.sides),
        "axes": (
            ("steps", headings.progress),
            ("rounds", headings.rounds),
            ("wall", "Wall"),
            ("time", "Time"),
            ("usd", "Dollars"),
        ),
        "over": request.GET.get("over") if request.GET.get("over") in AXES else AXES[0],
        "simulated": any(side.unreal for side in chosen.sides),
        "chart_unreal": next((side.unreal for side in chosen.sides if side.unreal), ""),
        "idempotency_key": secrets.token_urlsafe(12),
    }


@project_action("editor")
def add_seeds(request: HttpRequest, project: Project) -> HttpResponse:
    """More seeds of each named job's question; then back to the comparison, in which jobs have become groups."""
    likes = [project.jobs.filter(pk=job_id).first() for job_id in request.POST.getlist("like")[:MOST_SIDES]]
    count = read_whole(request.POST.get("count", ""), MOST_SEEDS)
    if not likes or not count:
        messages.error(request, f"Nothing was launched: choose between 1 and {MOST_SEEDS} seeds of a run.")
        return redirect("comparing:page", project.slug)
    key, keys = request.POST.get("idempotency_key", "")[:60], request.POST.getlist("of")
    launched = 0
    for like in likes:
        if like is None:
            raise Http404("There is no such job in this project.")
        try:
            grown = more_seeds(
                user=person_of(request), like=like, count=count, key=f"{key}:{like.pk}" if key else None
            )
        except SpecRefused as refusal:
            messages.error(request, f"{like.name}: {refusal}")
            continue
        launched += count
        keys = [f"group_{grown.pk}" if chosen_key == like.pk else chosen_key for chosen_key in keys]
    if launched:
        messages.success(request, f"{launched} runs are launched; the figures here grow with them.")
    query = urlencode([("of", one) for one in dict.fromkeys(keys)])
    return redirect(f"{reverse('comparing:page', args=[project.slug])}?{query}")


@project_page(needs="editor")
@require_http_methods(["GET", "HEAD", "POST"])
def sweep_new(request: HttpRequest, project: Project) -> HttpResponse:
    """The form of a sweep, what it would run, and its launch."""
    base, chosen = base_of(project, request.GET)
    form = SweepForm(request.POST if request.method == "POST" else None, base=base)
    context: dict[str, Any] = {"section": "jobs", "form": form, "base": base, "chosen": chosen}
    context["idempotency_key"] = request.POST.get("idempotency_key") or secrets.token_urlsafe(12)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                sweep = form.sweep()
                context["points"] = [sweep.words_of(point) for point in sweep.changes()]
                context["specs"] = sweep.specs()
                context["share"] = picodollars(context["specs"][0].budget_usd)
                if request.POST.get("launch"):
                    made = launch_sweep(
                        project=project,
                        user=person_of(request),
                        sweep=sweep,
                        key=request.POST.get("idempotency_key", "")[:60] or None,
                    )
                    return redirect("comparing:group", project.slug, made.pk)
                status = 200
            except (SweepRefused, SpecRefused) as refusal:
                form.add_error(None, str(refusal))
    return render(request, "comparing/sweep.html", context, status=status)


def _other_keys(chosen: Picked, key: str) -> list[str]:
    return [one for one in dict.fromkeys(side.key for side in chosen.sides) if one != key]


def _group_in(project: Project, group_id: int) -> JobGroup:
    return or_404(JobGroup.objects.filter(project=project, pk=group_id).first(), "group")


@project_page()
@require_safe
def goals(request: HttpRequest, project: Project) -> HttpResponse:
    """The board of the subject in the address, else of the one with most finished jobs."""
    own = subjects_of(project)
    known = list(dict.fromkeys([*own, *measured_subjects(), *references()]))
    wanted = request.GET.get("subject", "")
    subject = wanted if wanted in known else known[0]
    measured = measured_rows(subject)
    context = {
        "section": "compare",
        "subjects": [(name, title_of(name), own.get(name, 0)) for name in known],
        "subject": subject,
        "title": title_of(subject),
        "board": board_of(project, subject),
        "measured": measured[:MEASURED_AT_ONCE],
        "more_measured": measured[MEASURED_AT_ONCE:],
    }
    return render(request, "comparing/goals.html", context)
