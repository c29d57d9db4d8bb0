"""A job's form in a project: prefilled, filled with what the user typed, checked, saved as a draft, launched."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, BinaryIO, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from cloud.platforms.options import CLOUD_OF
from training.rl.environments import catalogue
from webapp.accounts.access import person_of, project_action, project_page
from webapp.accounts.models import Project, User
from webapp.connections.services import is_emulated
from webapp.jobs import seed_groups, services
from webapp.jobs.form import drafts
from webapp.jobs.form.form_prefill import FILE, StartingPoint, of_address, starting_point
from webapp.jobs.form.form_tree import FieldGroup, UnionChoice, part_of
from webapp.jobs.form.forms import SpecForm, is_short, job_form, reviewed
from webapp.jobs.form.presets import presets
from webapp.jobs.form.spec_documents import SpecError, read_spec_file
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.launch import checklist, cloud_requirements, forecast_panel
from webapp.jobs.launch.preflight import training_obstacle
from webapp.jobs.launch.project_choices import data_sets, schedulers
from webapp.jobs.models import Draft
from webapp.jobs.spec import JobSpec
from webapp.jobs.views import spec_file


@dataclass
class FormState:
    """One form: its project and user, its starting point, its draft if any, and the submitted data."""

    project: Project
    user: User
    begun: StartingPoint
    draft: Draft | None = None
    sent: Mapping[str, Any] | None = None
    seeds_problem: str = ""

    @classmethod
    def of(
        cls, project: Project, user: User, query: Mapping[str, Any], sent: Mapping[str, Any] | None = None
    ) -> FormState:
        """Return the form that the URL names: the user's draft, else a fresh starting point."""
        draft = drafts.draft_in(project, user, query.get("draft", ""))
        begun = starting_point(project, query) if draft is None else of_address(project, draft.begun_with)
        return cls(project, user, begun, draft, sent)

    @property
    def address(self) -> str:
        """The query part of the form's URL."""
        return "?" + (f"draft={self.draft.pk}" if self.draft else self.begun.address)

    @property
    def typed(self) -> Any:
        """What the user typed, now or when the draft was saved; None for a fresh form."""
        if self.sent is not None or self.draft is None:
            return self.sent
        return {**self.build_form(None).as_typed(), **self.draft.values}

    @property
    def beside(self) -> dict[str, str]:
        """The form's fields beside the spec's."""
        typed = self.typed or {}
        return {
            "seeds": typed.get("seeds", "1"),
            "checkpoint": typed.get("checkpoint", self.begun.chosen_name),
        }

    def form(self, data: Any) -> SpecForm:
        """Return the form in this project, with each field compared with the starting point."""
        form = self.build_form(data)
        if self.begun.compared is not None:
            form.compare_with(self.begun.compared)
        return form

    def build_form(self, data: Any) -> SpecForm:
        """Return the form with the project's connections and schedulers, and with the obstacles to a launch."""
        return job_form(data, self.begun.start, self._obstacles, *self._offered)

    @cached_property
    def _offered(self) -> tuple[Any, ...]:
        project = self.project
        connected = (
            cloud_requirements.list_connections(project),
            cloud_requirements.missing_connection_texts(project),
        )
        trained = schedulers().list_options(project), schedulers().empty_text(project)
        return (*connected, *trained, data_sets().list_options(project))

    def _obstacles(self, spec: JobSpec) -> list[SpecProblem]:
        complete = schedulers().fill_in_weights(self.project, spec)
        made_from = self.begun.made_from(self.beside["checkpoint"])
        problems = [
            *schedulers().obstacles(self.project, spec),
            *data_sets().obstacles(self.project, complete),
            *cloud_requirements.obstacles(self.project, spec),
            *filter(None, [training_obstacle(spec.training)]),
        ]
        problems += made_from.obstacles(spec) if made_from is not None else []
        return [*complete.check_limits(services.limits()), *problems]

    def count(self) -> int:
        """Return the number of seeds; 1 if it is invalid, with `seeds_problem` set."""
        try:
            return seed_groups.parse_seed_count(self.beside["seeds"])
        except services.SpecRefused as refusal:
            self.seeds_problem = str(refusal)
            return 1

    def checks(self, form: SpecForm) -> list[checklist.ChecklistRow]:
        if not isinstance(form.understood, JobSpec):
            return [checklist.fields_row([str(words[0]) for words in form.errors.values()])]
        made_from = self.begun.made_from(self.beside["checkpoint"])
        return checklist.checklist(
            self.project, self.user, form.understood, count=self.count(), made_from=made_from
        )

    def save(self, form: SpecForm) -> Draft:
        """Save the form's values, valid or not, in the draft if there is one. Raises DraftRefused."""
        return drafts.save_draft(
            project=self.project,
            user=self.user,
            values={**form.as_typed(), **self.beside},
            begun_with=self.begun.address,
            draft=self.draft,
        )


SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("what", "What is learned", ("name", "tags", "group", "training", "films")),
    ("scaling", "Scaling and loop", ("training.scaling", "training.loop")),
    ("where", "Where it runs", ("platform",)),
    ("how-much", "How much", ("training.stop", "budget_usd", "at_line")),
)
"""Key, heading and paths of each section. The longest path wins; other fields go into the last section."""


def sections(tree: FieldGroup) -> list[dict[str, Any]]:
    """Return the sections of More settings in order, each with its key, its heading and a group of fields."""
    tree = part_of(tree, lambda leaf: not is_short(leaf))
    parts = {key: FieldGroup("", (), tree.model) for key, _, _ in SECTIONS}
    own_place = {path: key for key, _, paths in SECTIONS for path in paths}
    for item in tree.items:
        key = own_place.get(".".join(item.path), SECTIONS[-1][0])
        variants = []
        for variant in item.variants if isinstance(item, UnionChoice) else []:
            moved = [child for child in variant.items if ".".join(child.path) in own_place]
            for child in moved:
                own = own_place[".".join(child.path)]
                parts[own].items.append(replace(variant, description="", items=[child]))
            variants.append(replace(variant, items=[c for c in variant.items if c not in moved]))
        whole = (
            replace(item, variants=variants, whole=item.whole or item)
            if isinstance(item, UnionChoice)
            else item
        )
        parts[key].items.append(whole)
    return [{"key": key, "title": title, "group": parts[key]} for key, title, _ in SECTIONS]


def _form_state(request: HttpRequest, project: Project) -> FormState:
    return FormState.of(
        project, person_of(request), request.GET, request.POST if request.method == "POST" else None
    )


def _page(
    request: HttpRequest,
    form_state: FormState,
    form: SpecForm,
    status: int = 200,
    refused: bool = False,
    file_faults: Sequence[str] = (),
) -> HttpResponse:
    looked_at = form if form.is_bound else form_state.build_form(form.as_typed())
    looked_at.is_valid()
    context = {
        "section": "jobs",
        "form": form,
        "short": part_of(form.tree, is_short),
        "sections": (more := sections(form.tree)),
        "more_has_problems": any(part["group"].has_problems for part in more),
        "reviewed": reviewed(form),
        "presets": presets().values(),
        "chosen": form_state.begun.preset.name if form_state.begun.preset else "",
        "begun": form_state.begun,
        "draft": form_state.draft,
        "drafts": drafts.drafts_of(form_state.project, person_of(request)),
        "gone": drafts.unknown_fields(form_state.draft, form.fields) if form_state.draft else [],
        "action": form_state.address,
        "environments": catalogue.ENTRIES.values(),
        "emulated_kinds": [kind for kind, cloud in CLOUD_OF.items() if is_emulated(cloud)],
        **form_state.beside,
        **checklist.folded(form_state.checks(looked_at)),
        "seeds_problem": form_state.seeds_problem,
        "refused": refused,
        "file_faults": file_faults,
        "idempotency_key": request.POST.get("idempotency_key") or secrets.token_urlsafe(12),
    }
    return render(request, "jobs/new.html", context, status=status)


@project_page(needs="editor")
@require_http_methods(["GET", "HEAD", "POST"])
def job_new(request: HttpRequest, project: Project) -> HttpResponse:
    """Show the form and handle its buttons. Nothing is launched while the form has a problem."""
    form_state = _form_state(request, project)
    form = form_state.form(form_state.typed)
    if request.method != "POST" or "look" in request.POST:
        return _page(request, form_state, form)
    if "back" in request.POST:
        return _page(request, form_state, _reset_field(form_state, form, request.POST["back"]))
    if "save" in request.POST:
        return _save(request, form_state, form)
    if not form.is_valid():
        return _page(request, form_state, form, status=422, refused=True)
    if "download" in request.POST:
        return spec_file(form.spec.model_dump(mode="json"), "starling-job.json")
    return _launch(request, form_state, form)


def _reset_field(form_state: FormState, form: SpecForm, name: str) -> SpecForm:
    """Return the form with one control reset to the value it is compared with."""
    leaf = next((leaf for leaf in form.tree.leaves() if leaf.name == name and leaf.was is not None), None)
    return form if leaf is None else form_state.form({**form.as_typed(), name: leaf.was})


def _launch(request: HttpRequest, form_state: FormState, form: SpecForm) -> HttpResponse:
    project, count = form_state.project, form_state.count()
    if form_state.seeds_problem:
        return _page(request, form_state, form, status=422, refused=True)
    key = request.POST.get("idempotency_key", "")[:100] or None
    launch: dict[str, Any] = {"project": project, "user": request.user, "spec": form.spec}
    launch["made_from"] = form_state.begun.made_from(form_state.beside["checkpoint"])
    try:
        if count > 1:
            group = seed_groups.launch_seeds(**launch, count=count, key=key[:90] if key else None)
            answer = redirect("comparing:group", project.slug, group.pk)
        else:
            job = services.submit_job(**launch, idempotency_key=key)
            answer = redirect("jobs:detail", project.slug, job.pk)
    except services.SpecRefused as refusal:  # a cloud or a budget changed after the form was checked
        form.add_error(None, str(refusal))
        return _page(request, form_state, form, status=422, refused=True)
    if form_state.draft is not None:
        form_state.draft.delete()
    return answer


def _save(request: HttpRequest, form_state: FormState, form: SpecForm) -> HttpResponse:
    """Save the form as a draft. A request for JSON gets a short answer instead of a redirect."""
    by_itself = request.headers.get("Accept") == "application/json"
    try:
        draft = form_state.save(form)
    except drafts.DraftRefused as refusal:
        if by_itself:
            return JsonResponse({"refused": str(refusal)}, status=409)
        messages.error(request, str(refusal))
        return _page(request, form_state, form, status=409)
    if by_itself:
        return JsonResponse({"saved_at": draft.saved_at.isoformat(), "title": draft.title})
    messages.success(request, f"“{draft.title}” is saved as a draft. Nothing was launched.")
    return redirect(f"{reverse('jobs:new', args=[form_state.project.slug])}?draft={draft.pk}")


@project_action("editor")
def job_file(request: HttpRequest, project: Project) -> HttpResponse:
    """Put a spec from a JSON, TOML or YAML file into the form as a draft, or show all its problems."""
    file = request.FILES.get("spec")
    form_state = FormState(project, person_of(request), starting_point(project, {}))
    try:
        if file is None:
            raise SpecError([SpecProblem("", "Choose a JSON, TOML or YAML file first.")])
        name = (file.name or "spec.json")[:60]
        spec = read_spec_file(cast(BinaryIO, file.file), name)
    except SpecError as refusal:
        faults = [problem.sentence for problem in refusal.problems]
        return _page(request, form_state, form_state.form(None), status=422, file_faults=faults)
    begun = starting_point(project, {FILE: name})
    values = job_form(start=spec).as_typed()
    try:
        draft = drafts.save_draft(
            project=project, user=person_of(request), values=values, begun_with=begun.address
        )
    except drafts.DraftRefused as refusal:
        messages.error(request, str(refusal))
        return redirect("jobs:new", project.slug)
    return redirect(f"{reverse('jobs:new', args=[project.slug])}?draft={draft.pk}")


@project_action("editor")
def draft_delete(request: HttpRequest, project: Project) -> HttpResponse:
    if drafts.delete_draft(project=project, user=person_of(request), draft_id=request.POST.get("draft", "")):
        messages.success(request, "The draft is deleted.")
    return redirect("jobs:new", project.slug)


@project_action("editor")
def job_forecast(request: HttpRequest, project: Project) -> HttpResponse:
    """Return the forecast of the job in the form, or say that the form has a problem."""
    form = _form_state(request, project).form(request.POST)
    if not form.is_valid():
        refusal = "The forecast appears once every field is valid."
        return render(request, "jobs/forecast.html", {"refusal": refusal})
    spec = schedulers().fill_in_weights(
        project, cloud_requirements.fill_in_setup(project, cast(JobSpec, form.spec))
    )
    context = forecast_panel.panel(spec, project)
    return render(request, "jobs/forecast.html", {**context, "simulated": spec.simulated})


@project_action("editor")
def job_checks(request: HttpRequest, project: Project) -> HttpResponse:
    """Return the checklist of the job in the form."""
    form_state = _form_state(request, project)
    form = form_state.form(request.POST)
    form.is_valid()
    return render(request, "jobs/checks.html", checklist.folded(form_state.checks(form)))
