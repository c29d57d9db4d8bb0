"""The pages of schedulers: those that are trained, one of them, a training under way, and the form for another."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import F, Q
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from training.data.shipped import SHIPPED
from training.scheduling.agents import AnyAgent, agent_for
from training.scheduling.siren.model import SirenWorkload
from webapp.accounts.access import live_page, person_of, project_action, project_page
from webapp.accounts.models import Project
from webapp.jobs.form.presets import presets
from webapp.jobs.models import Job, Round
from webapp.jobs.queries import job_in
from webapp.schedulers import persist, queries, services
from webapp.schedulers.forms import training_form
from webapp.schedulers.models import JUDGED, EpisodeKind, SchedulerTraining, Version
from webapp.schedulers.persist import exported
from webapp.schedulers.request import AGENT_NAMES, TrainingRequest
from webapp.schedulers.text import (
    choices,
    chosen,
    dots,
    format_decisions,
    format_target,
    gap,
    scale,
    status_of,
    subject,
    unit_of_rounds,
    worth_of,
)

_TRAININGS_SHOWN = 20
_EPISODES_SHOWN = 100


@live_page()
def scheduler_list(request: HttpRequest, project: Project) -> HttpResponse:
    newest = queries.newest_versions(project)
    schedulers = [(scheduler, newest.get(scheduler.pk)) for scheduler in queries.schedulers_of(project)]
    trainings = Paginator(queries.trainings_of(project), _TRAININGS_SHOWN).get_page(request.GET.get("page"))
    context = {
        "section": "schedulers",
        "cards": [{"scheduler": one, "newest": version, **_words(version)} for one, version in schedulers],
        "page": trainings,
        "rows": [{"training": training, "status": status_of(training)} for training in trainings],
    }
    return render(request, "schedulers/list.html", context)


def _words(version: Version | None) -> dict[str, Any]:
    """What a version was trained for, in words."""
    if version is None:
        return {}
    spec = version.training.parsed_spec
    data = spec.workload.data if isinstance(spec, SirenWorkload) else ""
    return {
        **_task_words(spec),
        "best": format_target(spec, version.facts["best_return"]),
        "agent": AGENT_NAMES[spec.kind],
        "worth": worth_of(version),
        "data": data,
        "own_data": bool(data) and data not in SHIPPED,
    }


def _task_words(spec: AnyAgent) -> dict[str, Any]:
    return {
        "subject": subject(spec),
        "choices": choices(spec),
        "score": spec.workload.score.name,
        "target": format_target(spec, spec.target),
        "round": unit_of_rounds(spec),
    }


@project_page(needs="editor")
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def training_new(request: HttpRequest, project: Project) -> HttpResponse:
    """The form; nothing is stored while anything in it is wrong."""
    form = training_form(project, request.POST if request.method == "POST" else None, request.GET)
    if request.method == "POST" and form.is_valid():
        wanted = form.spec
        assert isinstance(wanted, TrainingRequest)  # the model of this form
        training = services.request_training(project=project, user=person_of(request), request=wanted)
        return redirect("schedulers:training", project.slug, training.pk)
    agents = {name: agent_for(preset.spec.training) for name, preset in presets().items()}
    context = {"section": "schedulers", "form": form, "group": form.tree, "agents": agents}
    return render(request, "schedulers/new.html", context, status=422 if request.method == "POST" else 200)


@live_page()
def training_page(request: HttpRequest, project: Project, training_id: int) -> HttpResponse:
    return render(request, "schedulers/training.html", _context(project, training_id))


@live_page()
def training_progress(request: HttpRequest, project: Project, training_id: int) -> HttpResponse:
    """The part of the page with the progress, for a page that updates it."""
    return render(request, "schedulers/progress.html", _context(project, training_id))


@project_action("editor")
def training_stop(request: HttpRequest, project: Project, training_id: int) -> HttpResponse:
    services.stop_training(training=queries.training_in(project, training_id))
    messages.info(request, "Stopping: the episode under way does not count, what was recorded stays.")
    return redirect("schedulers:training", project.slug, training_id)


@live_page()
def scheduler_page(request: HttpRequest, project: Project, scheduler_id: str) -> HttpResponse:
    scheduler = queries.scheduler_in(project, scheduler_id)
    versions = list(queries.versions_of(project).filter(scheduler=scheduler))
    context = {
        "section": "schedulers",
        "scheduler": scheduler,
        "versions": [
            {
                "version": version,
                **_words(version),
                "gap": gap(version.facts, version.training.parsed_spec),
                "chosen": chosen(version.facts),
            }
            for version in versions
        ],
    }
    return render(request, "schedulers/scheduler.html", context)


@project_page()
@require_safe
def scheduler_export(request: HttpRequest, project: Project, scheduler_id: str, number: int) -> HttpResponse:
    """A version with its weights, as a document."""
    version = queries.version_in(project, f"{scheduler_id}.{number}")
    if version is None:
        raise Http404("There is no such version in this project.")
    name = f'attachment; filename="starling-scheduler-{version.key}.json"'
    return JsonResponse(exported(version), headers={"Content-Disposition": name})


@project_action("owner")
def scheduler_remove(request: HttpRequest, project: Project, scheduler_id: str) -> HttpResponse:
    scheduler = queries.scheduler_in(project, scheduler_id)
    services.remove_scheduler(scheduler=scheduler)
    messages.success(request, f"{scheduler.name} is removed. Jobs that use it keep their own copy.")
    return redirect("schedulers:list", project.slug)


def _context(project: Project, training_id: int) -> dict[str, Any]:
    training: SchedulerTraining = queries.training_in(project, training_id)
    spec = training.parsed_spec
    episodes = list(training.episodes.defer("reports"))
    facts = persist.facts(training)
    real = [episode for episode in episodes if episode.kind == EpisodeKind.REAL]
    ran = [episode for episode in episodes if episode.kind != EpisodeKind.REHEARSAL]
    return {
        "section": "schedulers",
        "training": training,
        "spec": spec,
        **_task_words(spec),
        "status": status_of(training),
        "facts": facts,
        "gap": gap(facts, spec),
        "dots": dots(episodes),
        "scale": scale(episodes),
        "real_done": len(real),
        "rows": [
            {
                "episode": episode,
                "number": episode.number - facts["rehearsals"],
                "agent": JUDGED[episode.number - 1] if episode.kind == EpisodeKind.JUDGED else "",
                "drawn": format_decisions(episode.actors),
                "memory": format_decisions(episode.memory_mb),
                "best": format_target(spec, episode.best_return),
            }
            for episode in reversed(ran)
        ][:_EPISODES_SHOWN],
        "hidden": max(0, len(ran) - _EPISODES_SHOWN),
    }


MOST_POINTS = 600


def decisions(job: Job) -> dict[str, Any]:
    """Reasons by round, each once where it begins to hold. Of a long run only every n-th round and the last are read,
    which are the rounds of the chart's points.
    """
    last = job.round_no
    every = 1
    while last / every > MOST_POINTS:
        every *= 2
    rounds = Round.objects.filter(job=job, round_no__lte=last).annotate(left=F("round_no") % every)
    rows = rounds.filter(Q(left=0) | Q(round_no=last)).order_by("round_no")
    said: list[tuple[int, str]] = []
    for round_no, why in rows.values_list("payload__report__round_no", "payload__report__plan_reason"):
        if not said or said[-1][1] != why:
            said.append((round_no, why))
    return {"every": every, "last": last, "said": said}


@live_page()
def job_decisions(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    return JsonResponse(decisions(job_in(project, job_id)))
