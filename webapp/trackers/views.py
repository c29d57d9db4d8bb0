"""Pages of trackers: both kinds, and the setting of one."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_safe

from webapp.accounts.access import project_action, project_page
from webapp.accounts.fresh_sign_in import fresh_sign_in, fresh_sign_in_for_secrets
from webapp.accounts.models import Project
from webapp.http.form_versions import FormVersion, Value, refuse_if_stale, version_of
from webapp.trackers import queries, services
from webapp.trackers.forms import TrackerForm
from webapp.trackers.models import Tracker, TrackerKind

_WORDS = {
    TrackerKind.MLFLOW: "A tracking server, by its REST API.",
    TrackerKind.WANDB: "wandb.ai, or a server of your own.",
}


@project_page()
@require_safe
def tracker_list(request: HttpRequest, project: Project) -> HttpResponse:
    """Both kinds, set or not. Viewers see where runs go."""
    there = {tracker.kind: tracker for tracker in queries.trackers_of(project)}
    cards = [
        {
            "kind": kind,
            "words": _WORDS[kind],
            "tracker": there.get(kind),
            "status": queries.tracker_status(there.get(kind)),
        }
        for kind in TrackerKind
    ]
    return render(request, "trackers/list.html", {"cards": cards})


@sensitive_post_parameters()
@project_page(needs="owner")
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@fresh_sign_in_for_secrets
@sensitive_variables("form")
def tracker_page(request: HttpRequest, project: Project, tracker: str) -> HttpResponse:
    """The setting of one kind: to begin with, or to change."""
    if tracker not in TrackerKind.values:
        raise Http404("There is no such tracker.")
    kind = TrackerKind(tracker)
    before = queries.trackers_of(project).filter(kind=kind).first()
    secret = before.secrets.first() if before else None
    form = TrackerForm(request.POST or None, kind=kind, tracker=before)
    refuse_if_stale(form, _version(project, kind, before))
    if request.method == "POST" and form.is_valid():
        try:
            given = {**form.cleaned_data, "token": form.cleaned_data["token"] or None}
            services.set_tracker(project=project, kind=kind, **given)
        except services.TrackerRefused as refusal:
            form.add_error(refusal.field or None, str(refusal))
        else:
            messages.success(request, f"{kind.label} is set. Jobs that begin from now on are sent there.")
            return redirect("trackers:list", project.slug)
    context = {
        "form": form,
        "kind": kind,
        "tracker": before,
        "secret": secret,
        "status": queries.tracker_status(before),
    }
    return render(request, "trackers/tracker.html", context, status=422 if form.errors else 200)


@project_action("owner")
@fresh_sign_in
def tracker_remove(request: HttpRequest, project: Project, tracker: str) -> HttpResponse:
    tracker_row = queries.tracker_in(project, tracker)
    _version(project, TrackerKind(tracker_row.kind), tracker_row).refuse_if_stale(request.POST)
    services.remove_tracker(tracker=tracker_row)
    messages.success(
        request, f"{tracker_row.get_kind_display()} is removed, with its token. What was sent stays there."
    )
    return redirect("trackers:list", project.slug)


def _version(project: Project, kind: TrackerKind, tracker: Tracker | None) -> FormVersion:
    """What a tracker's form is drawn from, and when its token was set."""
    form = TrackerForm(kind=kind, tracker=tracker)
    secret = tracker.secrets.first() if tracker else None
    token_set = Value(
        str(form.fields["token"].label), f"set {secret.set_at:%Y-%m-%d %H:%M:%S}" if secret else ""
    )
    return version_of(form, f"tracker {kind} of {project.pk}", token_set)
