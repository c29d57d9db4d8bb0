"""Drafts of jobs, which belong to one person, and saved views of the list of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from pydantic import BaseModel, Field, StringConstraints

from webapp.accounts.models import Project, User
from webapp.api.auth import Token, project_of
from webapp.api.idempotency import create_once
from webapp.api.paging import RowId
from webapp.api.problems import ApiRefused, FieldError, spec_refused
from webapp.api.router import ApiRouter, Dependency, EditorsProject, Person, ViewersProject, caller_of
from webapp.api.routes.jobs import Key
from webapp.api.schemas import Name, Request, Shape
from webapp.jobs.form import drafts
from webapp.jobs.form.form_page import FormState
from webapp.jobs.form.form_prefill import FILE, starting_point
from webapp.jobs.form.forms import job_form
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.form.variant_switch import with_switches
from webapp.jobs.list import run_table
from webapp.jobs.models import Draft, SavedView
from webapp.jobs.spec import JobSpec

router = ApiRouter(tags=["jobs"])


_Control = Annotated[str, StringConstraints(max_length=200)]
_Typed = Annotated[str, StringConstraints(max_length=20_000)] | bool | list[str]
_Values = Annotated[
    dict[_Control, _Typed],
    Field(
        max_length=1_000,
        description="By control of the form, as in a draft, valid or not. They override the spec's."
        " `seeds` and `checkpoint` are what the form has beside it.",
    ),
]


class NewDraft(Request):
    spec: JobSpec | None = Field(None, description="Its fields; null: those of its starting point.")
    values: _Values = {}
    begun_with: Annotated[str, StringConstraints(max_length=300, pattern=r"^[^\x00]*$")] = Field(
        "",
        description="What its fields are compared with, as the form's address has it: preset=cartpole,"
        " clone=job_…, fork=job_…",
    )


class DraftChange(Request):
    """A spec replaces all fields, values replace some."""

    spec: JobSpec | None = None
    values: _Values = {}


class DraftShape(Shape):
    """A job's form as its person left it."""

    id: int
    title: str
    begun_with: str
    created_at: datetime
    saved_at: datetime
    url: str = Field(description="The form with it.")


class DraftDetail(DraftShape):
    values: dict[str, Any] = Field(description="The value of each control.")
    spec: dict[str, Any] | None = Field(
        description="The spec of its values; null if they are no valid spec yet."
    )
    problems: list[FieldError] = Field(description="What prevents a launch, by control.")


class NewView(Request):
    """One of the same name is replaced."""

    name: Name
    q: Annotated[str, StringConstraints(max_length=400, pattern=r"^[^\x00]*$")] = Field(
        "", description="A search as above the list, such as state:failed cost>1."
    )
    sort: Annotated[str, StringConstraints(max_length=40, pattern=r"^-?[a-z_]*$")] = Field(
        "", description="A column's key; with a minus, the most first."
    )
    columns: list[Annotated[str, StringConstraints(max_length=40, pattern=r"^[a-z_]+$")]] = Field(
        [], max_length=50, description="Their keys; none: the usual ones."
    )


class ViewShape(Shape):
    """A saved view of the list of jobs."""

    id: int
    name: str
    q: str
    sort: str
    columns: list[str]
    url: str = Field(description="The list in this view.")
    created_at: datetime


class _DraftRequest(BaseModel):
    """The request of an Idempotency-Key. It contains the person: keys of two people do not collide."""

    person: int
    draft: NewDraft


def _form_state(project: Project, person: User, draft_id: int) -> FormState:
    form_state = FormState.of(project, person, {"draft": str(draft_id)})
    if form_state.draft is None:
        raise Http404("You have no such draft in this project.")
    return form_state


def _form_state_of(request: HttpRequest, slug: str, draft_id: RowId) -> FormState:
    return _form_state(project_of(request, slug, "editor"), caller_of(request), draft_id)


_OwnFormState = Annotated[FormState, Dependency(_form_state_of)]


@router.get("/projects/{slug}/drafts", summary="Your drafts of jobs")
def list_drafts(project: EditorsProject, person: Person) -> list[DraftShape]:
    """Last saved first."""
    return [
        DraftShape.of(one, url=_draft_url(project.slug, one)) for one in drafts.drafts_of(project, person)
    ]


@router.get("/projects/{slug}/drafts/{draft_id}", response=(200, 304), summary="One draft, with its spec")
def get_draft(form_state: _OwnFormState) -> DraftDetail:
    """To launch it, send its `spec` to `jobs`."""
    return _detail(form_state)


@router.post("/projects/{slug}/drafts", auth=Token("jobs"), response=201, summary="Save a draft")
def save_draft(
    project: EditorsProject,
    person: Person,
    response: HttpResponse,
    draft: NewDraft,
    idempotency_key: Key = "",
) -> DraftDetail:
    """Nothing is launched, and the draft need not be valid yet. The same Idempotency-Key gives the same draft again."""
    query = QueryDict(draft.begun_with)
    form_state = FormState(
        project, person, starting_point(project, query or ({FILE: "spec.json"} if draft.spec else {}))
    )

    def make() -> Draft:
        return _kept(form_state, draft)

    made = create_once(
        project, "draft", idempotency_key, _DraftRequest(person=person.pk, draft=draft), make, response
    )
    response["Location"] = reverse("api_v1:get_draft", args=[project.slug, made])
    return _detail(_form_state(project, person, int(made)))


@router.put("/projects/{slug}/drafts/{draft_id}", auth=Token("jobs"), summary="Change a draft")
def change_draft(form_state: _OwnFormState, draft: DraftChange) -> DraftDetail:
    kept = _kept(form_state, draft)
    return _detail(_form_state(form_state.project, form_state.user, kept.pk))


@router.delete(
    "/projects/{slug}/drafts/{draft_id}", auth=Token("jobs"), response=204, summary="Delete a draft"
)
def delete_draft(project: EditorsProject, person: Person, draft_id: RowId) -> None:
    if not drafts.delete_draft(project=project, user=person, draft_id=str(draft_id)):
        raise Http404("You have no such draft in this project.")


@router.get("/projects/{slug}/views", summary="Saved views of the list of jobs")
def list_views(project: ViewersProject) -> list[ViewShape]:
    return [_view(project.slug, view) for view in run_table.saved_views(project)]


@router.post("/projects/{slug}/views", auth=Token("jobs"), response=201, summary="Save a view")
def save_view(project: EditorsProject, person: Person, view: NewView) -> ViewShape:
    address = urlencode({"q": view.q, "sort": view.sort, "columns": ",".join(view.columns)})
    try:
        made = run_table.save_view(project=project, user=person, name=view.name, address=address)
    except run_table.ViewRefused as refusal:
        raise ApiRefused(409, "view", "No view was saved.", str(refusal), "Then save it again.") from None
    return _view(project.slug, made)


@router.delete("/projects/{slug}/views/{view_id}", auth=Token("jobs"), response=204, summary="Delete a view")
def remove_view(project: EditorsProject, view_id: RowId) -> None:
    try:
        run_table.remove_view(project=project, view_id=view_id)
    except run_table.ViewRefused as refusal:
        raise Http404(str(refusal)) from None


def _kept(form_state: FormState, wish: NewDraft | DraftChange) -> Draft:
    """The form's fields: those of the spec, or the stored ones, with the values over them. Refuses unknown fields."""
    stood = (
        job_form(start=wish.spec).as_typed()
        if wish.spec
        else form_state.typed or form_state.build_form(None).as_typed()
    )
    if strange := [name for name in wish.values if name not in stood and name not in drafts.BESIDE]:
        raise spec_refused([SpecProblem(f"values.{name}", f"The form has no {name}.") for name in strange])
    form_state.sent = with_switches(form_state.build_form(stood).tree.choices(), stood, wish.values)
    return form_state.save(form_state.form(form_state.sent))


def _detail(form_state: FormState) -> DraftDetail:
    assert form_state.draft is not None
    form = form_state.form(form_state.typed)
    form.is_valid()
    faults = [(name, str(words[0])) for name, words in form.errors.items()]
    return DraftDetail.of(
        form_state.draft,
        url=_draft_url(form_state.project.slug, form_state.draft),
        spec=form.understood.model_dump(mode="json") if form.understood else None,
        problems=[FieldError(path=name if name in form.fields else "", sentence=one) for name, one in faults],
    )


def _draft_url(slug: str, draft: Draft) -> str:
    return f"{settings.STARLING_BASE_URL}{reverse('jobs:new', args=[slug])}?draft={draft.pk}"


def _view(slug: str, view: SavedView) -> ViewShape:
    query = QueryDict(view.address.lstrip("?"))
    columns = query.get("columns", "")
    return ViewShape.of(
        view,
        q=query.get("q", ""),
        sort=query.get("sort", ""),
        columns=columns.split(",") if columns else [],
        url=f"{settings.STARLING_BASE_URL}{reverse('jobs:list', args=[slug])}{view.address}",
    )
