"""Projects, and choices for jobs: presets, environments, prices."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from django.conf import settings
from django.http import Http404
from django.urls import reverse
from ninja import Query
from pydantic import BaseModel, Field

from cloud.billing.price_book import PriceBook
from training.environments import catalogue
from webapp.accounts.models import Membership
from webapp.api.router import ApiRouter, Person, Viewer
from webapp.api.schemas.jobs import ProjectShape, Usd
from webapp.jobs.form.presets import presets
from webapp.jobs.spec import JobSpec

router = ApiRouter(tags=["places"])
choices = ApiRouter(tags=["what there is"])


class PresetShape(BaseModel):
    name: str
    title: str
    description: str
    spec: JobSpec


class EnvironmentShape(BaseModel):
    id: str
    family: str
    title: str
    description: str
    reference_return: float | None
    reference: str


class PriceShape(BaseModel):
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


@router.get("/projects", response=list[ProjectShape], summary="Your projects")
def list_projects(person: Person) -> list[ProjectShape]:
    """The projects that the token is for."""
    rows = (
        Membership.objects.filter(user_id=person.pk).select_related("project").order_by("project__name", "pk")
    )
    if person.token.project_id is not None:
        rows = rows.filter(project_id=person.token.project_id)
    return [_project(row) for row in rows]


@router.get("/projects/{slug}", response=ProjectShape, summary="One project")
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


@choices.get("/presets", response=list[PresetShape], summary="Specs to start from")
def list_presets() -> list[PresetShape]:
    return [PresetShape(**one._asdict()) for one in presets().values()]


@choices.get("/presets/{name}", response=PresetShape, summary="One preset")
def get_preset(name: str) -> PresetShape:
    if name not in presets():
        raise Http404(f"There is no such preset. There are: {', '.join(presets())}.")
    return PresetShape(**presets()[name]._asdict())


@choices.get("/environments", response=list[EnvironmentShape], summary="Environments known well")
def list_environments() -> list[EnvironmentShape]:
    """Any other installed Gymnasium id works too."""
    return [
        EnvironmentShape(
            id=one.id,
            family=one.family,
            title=one.title,
            description=one.description,
            reference_return=one.reference_return,
            reference=one.reference,
        )
        for one in catalogue.ENTRIES.values()
    ]


@choices.get("/prices", response=list[PriceShape], summary="The price book")
def list_prices(
    region: Annotated[str, Query(max_length=60)] = "",
    sku: Annotated[str, Query(max_length=100, description="How its name begins.")] = "",
) -> list[PriceShape]:
    """Every price with its source and date."""
    return [
        PriceShape(
            sku=row.sku,
            region=row.region,
            unit=row.unit,
            usd=None if row.usd is None else f"{row.usd:f}",
            from_quantity=row.from_quantity,
            valid_from=row.valid_from,
            valid_to=row.valid_to,
            as_of=row.as_of,
            kind=row.kind,
            source=row.source,
        )
        for row in PriceBook.load().rows()
        if row.sku.startswith(sku) and region in ("", row.region)
    ]
