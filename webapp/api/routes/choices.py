"""Projects, and choices for jobs: presets, environments, prices."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import reverse
from ninja import Query
from pydantic import BaseModel, Field, StringConstraints

from cloud.money.billing.price_book import PriceBook
from training.rl.environments import catalogue
from webapp.accounts.access import ARCHIVED
from webapp.accounts.models import Membership
from webapp.accounts.services import LONGEST_NAME, rename_project, start_project
from webapp.api.auth import Token
from webapp.api.router import ApiRouter, ArchivedOwner, Person, Viewer
from webapp.api.schemas import Request, Shape, Usd, first_name_of
from webapp.jobs.form.presets import presets
from webapp.jobs.spec import JobSpec
from webapp.overview.projects.services import archive_project, unarchive_project

router = ApiRouter(tags=["places"])
choices = ApiRouter(tags=["what there is"])
ProjectName = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00]*$")]


class ProjectShape(BaseModel):
    slug: str
    name: str
    role: Literal["viewer", "editor", "owner"]
    created_at: datetime
    archived_at: datetime | None = Field(description="Since when it is read-only; null: it is open.")
    url: str = Field(description="Its page.")


class NewProject(Request):
    name: ProjectName


class ProjectChange(Request):
    """What is left out stays."""

    name: ProjectName | None = None
    archived: bool | None = None
    end_running: bool = Field(
        False,
        description="When it is archived: end jobs and trainings that run. Otherwise they forbid it (409).",
    )


class PresetShape(Shape):
    name: str
    title: str
    description: str
    spec: JobSpec


class EnvironmentShape(Shape):
    id: str
    family: str
    title: str
    description: str
    reference_score: float | None
    reference_return: float | None = first_name_of("reference_score")
    reference: str


class PriceShape(Shape):
    sku: str
    region: str
    unit: str
    usd: Usd | None = Field(description="US dollars for one unit; null: not known, never zero.")
    from_quantity: int
    valid_from: date | None
    valid_to: date | None
    as_of: date
    kind: str
    source: str


@router.get("/projects", summary="Your projects")
def list_projects(person: Person) -> list[ProjectShape]:
    """The projects that the token is for."""
    rows = (
        Membership.objects.filter(user_id=person.pk).select_related("project").order_by("project__name", "pk")
    )
    if person.token.project_id is not None:
        rows = rows.filter(project_id=person.token.project_id)
    return [_project(row) for row in rows]


@router.post("/projects", auth=Token("jobs"), response=201, summary="Make a project")
def create_project(person: Person, project: NewProject) -> ProjectShape:
    """You are its owner. A token that is for one project cannot make another (403)."""
    if person.token.project_id is not None:
        raise PermissionDenied(f"The token “{person.token.name}” is for one project alone.")
    made = start_project(project.name, person)
    return _project(Membership.objects.select_related("project").get(project=made, user_id=person.pk))


@router.get("/projects/{slug}", summary="One project")
def get_project(member: Viewer) -> ProjectShape:
    return _project(member)


@router.put("/projects/{slug}", auth=Token("manage"), summary="Rename, archive or unarchive a project")
def change_project(member: ArchivedOwner, person: Person, change: ProjectChange) -> ProjectShape:
    """An archived project is read-only: nothing is launched or changed in it. Its slug stays as it is."""
    project = member.project
    if change.archived is False:
        unarchive_project(project=project)
    if change.name is not None:
        if project.archived_at is not None:
            raise PermissionDenied(ARCHIVED)
        rename_project(project, change.name)
    if change.archived:
        archive_project(project=project, user=person, end_running=change.end_running)
    return _project(member)


def _project(row: Membership) -> ProjectShape:
    return ProjectShape(
        slug=row.project.slug,
        name=row.project.name,
        role=row.role,
        created_at=row.project.created_at,
        archived_at=row.project.archived_at,
        url=settings.STARLING_BASE_URL + reverse("jobs:list", args=[row.project.slug]),
    )


@choices.get("/presets", summary="Specs to start from")
def list_presets() -> list[PresetShape]:
    return [PresetShape.of(preset) for preset in presets().values()]


@choices.get("/presets/{name}", summary="One preset")
def get_preset(name: str) -> PresetShape:
    if name not in presets():
        raise Http404(f"There is no such preset. There are: {', '.join(presets())}.")
    return PresetShape.of(presets()[name])


@choices.get("/environments", summary="Environments known well")
def list_environments() -> list[EnvironmentShape]:
    """Any other installed Gymnasium id works too."""
    return [EnvironmentShape.of(entry) for entry in catalogue.ENTRIES.values()]


@choices.get("/prices", summary="The price book")
def list_prices(
    region: Annotated[str, Query(max_length=60)] = "",
    sku: Annotated[str, Query(max_length=100, description="How its name begins.")] = "",
) -> list[PriceShape]:
    """Every price with its source and date."""
    return [
        PriceShape.of(row, usd=None if row.usd is None else f"{row.usd:f}")
        for row in PriceBook.load().rows()
        if row.sku.startswith(sku) and region in ("", row.region)
    ]
