"""Projects, and choices for jobs: presets, environments, prices."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from django.conf import settings
from django.http import Http404
from django.urls import reverse
from ninja import Query
from pydantic import BaseModel, Field

from cloud.billing.price_book import PriceBook
from training.environments import catalogue
from webapp.accounts.models import Membership
from webapp.api.router import ApiRouter, Person, Viewer
from webapp.api.schemas import Shape, Usd
from webapp.jobs.form.presets import presets
from webapp.jobs.spec import JobSpec

router = ApiRouter(tags=["places"])
choices = ApiRouter(tags=["what there is"])


class ProjectShape(BaseModel):
    slug: str
    name: str
    role: Literal["viewer", "editor", "owner"]
    created_at: datetime
    url: str = Field(description="Its page.")


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
    reference_return: float | None
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


@router.get("/projects/{slug}", summary="One project")
def get_project(member: Viewer) -> ProjectShape:
    return _project(member)


def _project(row: Membership) -> ProjectShape:
    return ProjectShape(
        slug=row.project.slug,
        name=row.project.name,
        role=row.role,
        created_at=row.project.created_at,
        url=settings.STARLING_BASE_URL + reverse("jobs:list", args=[row.project.slug]),
    )


@choices.get("/presets", summary="Specs to start from")
def list_presets() -> list[PresetShape]:
    return [PresetShape.of(one) for one in presets().values()]


@choices.get("/presets/{name}", summary="One preset")
def get_preset(name: str) -> PresetShape:
    if name not in presets():
        raise Http404(f"There is no such preset. There are: {', '.join(presets())}.")
    return PresetShape.of(presets()[name])


@choices.get("/environments", summary="Environments known well")
def list_environments() -> list[EnvironmentShape]:
    """Any other installed Gymnasium id works too."""
    return [EnvironmentShape.of(one) for one in catalogue.ENTRIES.values()]


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
