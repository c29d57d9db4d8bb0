"""The form of a job: drawn from a beginning or a draft, looked at, kept, taken away, launched."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from training.environments import catalogue
from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.credentials.services import emulated
from webapp.jobs import checklist, clouds, drafts, forecasting, seeds, services
from webapp.jobs.beginnings import FILE, Beginning, beginning, of_address
from webapp.jobs.documents import SpecError
from webapp.jobs.forms import SpecForm, job_form, sections
from webapp.jobs.learned import lessons_of
from webapp.jobs.making_views import spec_file
from webapp.jobs.models import Draft
from webapp.jobs.presets import presets
from webapp.jobs.problems import Problem
from webapp.jobs.spec import JobSpec
from webapp.jobs.spec_files import read_spec_file
from webapp.schedulers import choosing


@dataclass
class Sheet:
    """One form on one request: what it began with, its draft if it has one, and what was sent of it."""

    request: HttpRequest
    project: Project
    begun: Beginning
    draft: Draft | None = None
    sent: Mapping[str, Any] | None = None
    seeds_problem: str = ""

    @classmethod
    def of(cls, request: HttpRequest, project: Project) -> Sheet:
        draft = drafts.draft_in(project, request.user, request.GET.get("draft", ""))
        begun = beginning(project, request.GET) if draft is None else of_address(project, draft.begun_with)
        return cls(request, project, begun, draft, request.POST if request.method == "POST" else None)

    @property
    def typed(self) -> Any:
        """What was typed: now, or when the draft was saved; None for a fresh form."""
        if self.sent is not None or self.draft is None:
            return self.sent
        return {**self._drawn(None).as_typed(), **self.draft.values}

    @property
    def beside(self) -> dict[str, str]:
        """What the form holds beside the spec's fields."""
        typed = self.typed or {}
        return {
            "seeds": typed.get("seeds", "1"),
            "checkpoint": typed.get("checkpoint", self.begun.chosen_name),
        }

    def form(self, data: Any) -> SpecForm:
        """The form in this project, each field with what it is compared with."""
        form = self._drawn(data)
        if self.begun.compared is not None:
            form.compare_with(self.begun.compared)
        return form

    def _drawn(self, data: Any) -> SpecForm:
        """With the project's connections and schedulers, and with what stands against a launch here."""
        return job_form(data, self.begun.start, self._obstacles, *self._offered)

    @cached_property
    def _offered(self) -> tuple[Any, ...]:
        project = self.project
        connected = (clouds.offered(project), clouds.none_yet(project))
        return (*connected, choosing.offered(project), choosing.none_yet(project))

    def _obstacles(self, spec: JobSpec) -> list[Problem]:
        whole = choosing.placed(self.project, spec)
        made_from = self.begun.made_from(self.beside["checkpoint"])
        stands = [*choosing.obstacles(self.project, spec), *clouds.obstacles(self.project, spec)]
        stands += made_from.obstacles(spec) if made_from is not None else []
        return [*whole.check_limits(services.limits()), *stands]

    def count(self) -> int:
        """How many seeds; 1 where that is not to be understood, which the page then says."""
        try:
            return seeds.seeds_asked(self.beside["seeds"])
        except services.SpecRefused as refusal:
            self.seeds_problem = str(refusal)
            return 1

    def checks(self, form: SpecForm) -> list[checklist.Check]:
        if not isinstance(form.understood, JobSpec):
            return [checklist.fields_row([str(words[0]) for words in form.errors.values()])]
        made_from = self.begun.made_from(self.beside["checkpoint"])
        return checklist.checklist(
            self.project, self.request.user, form.understood, count=self.count(), made_from=made_from
        )

    def page(
        self, form: SpecForm, status: int = 200, refused: bool = False, file_faults: Sequence[str] = ()
    ) -> HttpResponse:
        request = self.request
        looked_at = form if form.is_bound else self._drawn(form.as_typed())
        looked_at.is_valid()
        context = {
            "section": "jobs",
            "form": form,
            "sections": sections(form.tree),
            "presets": presets().values(),
            "chosen": self.begun.preset.name if self.begun.preset else "",
            "begun": self.begun,
            "draft": self.draft,
            "drafts": drafts.drafts_of(self.project, request.user),
            "gone": drafts.unknown_fields(self.draft, form.fields) if self.draft else [],
            "action": "?" + (f"draft={self.draft.pk}" if self.draft else self.begun.address),
            "environments": catalogue.ENTRIES.values(),
            "emulated_kinds": [kind for kind, cloud in clouds.CLOUD_OF.items() if emulated(cloud)],
            **self.beside,
            "checks": self.checks(looked_at),
            "seeds_problem": self.seeds_problem,
            "refused": refused,
            "file_faults": file_faults,
            "idempotency_key": request.POST.get("idempotency_key") or secrets.token_urlsafe(12),
        }
        return render(request, "jobs/new.html", context, status=status)


@project_page(needs="editor")
@require_http_methods(["GET", "HEAD", "POST"])
def job_new(request: HttpRequest, project: Project) -> HttpResponse:
    """The form, and what its buttons do. Nothing is launched while anything is wrong."""
    sheet = Sheet.of(request, project)
    form = sheet.form(sheet.typed)
    if request.method != "POST" or "look" in request.POST:
        return sheet.page(form)
    if "back" in request.POST:
        return sheet.page(_put_back(sheet, form, request.POST["back"]))
    if "save" in request.POST:
        return _save(sheet, form)
    if not form.is_valid():
        return sheet.page(form, status=422, refused=True)
    if "download" in request.POST:
        return spec_file(form.spec.model_dump(mode="json"), "starling-job.json")
    return _launch(sheet, form)


def _put_back(sheet: Sheet, form: SpecForm, name: str) -> SpecForm:
    """The form with one control as it is in what it is compared with."""
    leaf = next((one for one in form.tree.leaves() if one.name == name and one.was is not None), None)
    return form if leaf is None else sheet.form({**form.as_typed(), name: leaf.was})


def _launch(sheet: Sheet, form: SpecForm) -> HttpResponse:
    request, project, count = sheet.request, sheet.project, sheet.count()
    if sheet.seeds_problem:
        return sheet.page(form, status=422, refused=True)
    key = request.POST.get("idempotency_key", "")[:100] or None
    launch = {"project": project, "user": request.user, "spec": form.spec}
    launch["made_from"] = sheet.begun.made_from(sheet.beside["checkpoint"])
    try:
        if count > 1:
            group = seeds.launch_seeds(**launch, count=count, key=key[:90] if key else None)
            answer = redirect("comparing:group", project.slug, group.pk)
        else:
            job = services.submit_job(**launch, idempotency_key=key)
            answer = redirect("jobs:detail", project.slug, job.pk)
    except (
        services.SpecRefused
    ) as refusal:  # what a cloud or a budget has changed between the look and the launch
        form.add_error(None, str(refusal))
        return sheet.page(form, status=422, refused=True)
    if sheet.draft is not None:
        sheet.draft.delete()
    return answer


def _save(sheet: Sheet, form: SpecForm) -> HttpResponse:
    """Keep what stands there as a draft; to the page itself (which asks for JSON) it is told in a word."""
    request, by_itself = sheet.request, sheet.request.headers.get("Accept") == "application/json"
    values = {**form.as_typed(), **sheet.beside}
    try:
        draft = drafts.save_draft(
            project=sheet.project,
            user=request.user,
            values=values,
            begun_with=sheet.begun.address,
            draft=sheet.draft,
        )
    except drafts.DraftRefused as refusal:
        if by_itself:
            return JsonResponse({"refused": str(refusal)}, status=409)
        messages.error(request, str(refusal))
        return sheet.page(form, status=409)
    if by_itself:
        return JsonResponse({"saved_at": draft.saved_at.isoformat(), "title": draft.title})
    messages.success(request, f"“{draft.title}” is kept as a draft. Nothing was launched.")
    return redirect(f"{reverse('jobs:new', args=[sheet.project.slug])}?draft={draft.pk}")


@project_page(needs="editor")
@require_POST
def job_file(request: HttpRequest, project: Project) -> HttpResponse:
    """A spec as a JSON file, put into the form as a draft; or every fault of it."""
    file = request.FILES.get("spec")
    sheet = Sheet(request, project, beginning(project, {}))
    try:
        if file is None:
            raise SpecError([Problem("", "Choose a JSON file first.")])
        name = (file.name or "spec.json")[:60]
        spec = read_spec_file(file.file, name)
    except SpecError as refusal:
        faults = [problem.sentence for problem in refusal.problems]
        return sheet.page(sheet.form(None), status=422, file_faults=faults)
    begun = beginning(project, {FILE: name})
    values = job_form(start=spec).as_typed()
    try:
        draft = drafts.save_draft(project=project, user=request.user, values=values, begun_with=begun.address)
    except drafts.DraftRefused as refusal:
        messages.error(request, str(refusal))
        return redirect("jobs:new", project.slug)
    return redirect(f"{reverse('jobs:new', args=[project.slug])}?draft={draft.pk}")


@project_page(needs="editor")
@require_POST
def draft_delete(request: HttpRequest, project: Project) -> HttpResponse:
    if drafts.delete_draft(project=project, user=request.user, draft_id=request.POST.get("draft", "")):
        messages.success(request, "The draft is deleted.")
    return redirect("jobs:new", project.slug)


@project_page(needs="editor")
@require_POST
def job_forecast(request: HttpRequest, project: Project) -> HttpResponse:
    """What the job in the form would take and cost; nothing while the form has a fault."""
    form = Sheet.of(request, project).form(request.POST)
    if not form.is_valid():
        return HttpResponse()
    spec = choosing.placed(project, clouds.placed(project, form.spec))
    shown = forecasting.panel(spec, lessons_of(project, spec))
    return render(request, "jobs/forecast.html", {**shown, "simulated": spec.simulated})


@project_page(needs="editor")
@require_POST
def job_checks(request: HttpRequest, project: Project) -> HttpResponse:
    """The check-list of the job in the form as it stands."""
    sheet = Sheet.of(request, project)
    form = sheet.form(request.POST)
    form.is_valid()
    return render(request, "jobs/checks.html", {"checks": sheet.checks(form)})
