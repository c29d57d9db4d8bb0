"""Reads of trackers for pages, launches and jobs. Nothing here writes."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.db.models import QuerySet

from webapp.accounts.models import Project
from webapp.formatting import Status
from webapp.http.responses import or_404
from webapp.trackers import wandb
from webapp.trackers.models import TrackedRun, Tracker, TrackerKind


def trackers_of(project: Project) -> QuerySet[Tracker]:
    return Tracker.objects.filter(project=project)


def tracker_in(project: Project, kind: str) -> Tracker:
    """The project's tracker of this kind. Http404 if it has none."""
    return or_404(trackers_of(project).filter(kind=kind).first(), "tracker")


def runs_of(job: Any) -> QuerySet[TrackedRun]:
    """The job's runs in trackers."""
    return TrackedRun.objects.filter(job=job)


def server_of(tracker: Tracker) -> str:
    """The host that it sends to."""
    return urlsplit(tracker.address).netloc or "wandb.ai"


def tracker_status(tracker: Tracker | None) -> Status:
    """Return the status of a project's tracker; None: it is not set."""
    if tracker is None:
        return Status("waiting", "circle", "Not set", "Runs are not sent here.")
    if not tracker.on:
        return Status("waiting", "pause-fill", "Off", "Runs are not sent here until it is switched on.")
    if problem := problem_of(tracker):
        return Status("failed", "x-octagon-fill", "Missing", problem)
    last = (
        TrackedRun.objects.filter(job__project=tracker.project_id, kind=tracker.kind).order_by("-at").first()
    )
    if last is not None and last.problem:
        return Status("warning", "exclamation-triangle-fill", "Incomplete", f"Last run: {last.problem}")
    return Status("ok", "check-circle-fill", "On", f"Every job's rounds go to {server_of(tracker)}.")


def problem_of(tracker: Tracker) -> str:
    """Why no job can be sent there, as far as this server knows; empty if jobs can."""
    return wandb.MISSING if tracker.kind == TrackerKind.WANDB and not wandb.is_installed() else ""
