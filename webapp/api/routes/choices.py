"""Projects, and what there is to choose from: presets, environments, prices."""

from __future__ import annotations

from typing import Annotated

from django.conf import settings
from django.http import Http404, HttpRequest
from django.urls import reverse
from ninja import Query, Router

from cloud.billing.price_book import PriceBook
from training.environments import catalogue
from webapp.accounts.models import Membership
from webapp.api.auth import project_of
from webapp.api.schemas.choices import EnvironmentShape, PresetShape, PriceShape
from webapp.api.schemas.jobs import ProjectShape
from webapp.jobs.form.presets import presets

router = Router(tags=["places"])
choices = Router(tags=["what there is"])


@router.get("/projects", response=list[ProjectShape], summary="Your projects")
def list_projects(request: HttpRequest) -> list[ProjectShape]:
    """Those that the token is for."""
    caller = request.auth  # type: ignore[attr-defined]
    rows = (
        Membership.objects.filter(user_id=caller.pk).select_related("project").order_by("project__name", "pk")
    )
    if caller.token.project_id is not None:
        rows = rows.filter(project_id=caller.token.project_id)
    return [_project(row) for row in rows]


@router.get("/projects/{slug}", response=ProjectShape, summary="One project")
def get_project(request: HttpRequest, slug: str) -> ProjectShape:
    project = project_of(request, slug)
    return _project(
        Membership.objects.select_related("project").get(project=project, user_id=request.auth.pk)
    )  # type: ignore[attr-defined]


def _project(row: Membership) -> ProjectShape:
    return ProjectShape(
        slug=row.project.slug,
        name=row.project.name,
        role=row.role,
        created_at=row.project.created_at,
        url=settings.STARLING_BASE_URL + reverse("jobs:list", args=[row.project.slug]),
    )


@choices.get("/presets", response=list[PresetShape], summary="Specs to start from")
def list_presets(request: HttpRequest) -> list[PresetShape]:
    return [PresetShape(**one._asdict()) for one in presets().values()]


@choices.get("/presets/{name}", response=PresetShape, summary="One preset")
def get_preset(request: HttpRequest, name: str) -> PresetShape:
    if name not in presets():
        raise Http404(f"There is no such preset. There are: {', '.join(presets())}.")
    return PresetShape(**presets()[name]._asdict())


@choices.get("/environments", response=list[EnvironmentShape], summary="Environments known well")
def list_environments(request: HttpRequest) -> list[EnvironmentShape]:
    """Any other Gymnasium id that is installed works too."""
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
    request: HttpRequest,
    region: Annotated[str, Query(max_length=60)] = "",
    sku: Annotated[str, Query(max_length=100, description="How its name begins.")] = "",
) -> list[PriceShape]:
    """Every price with its source and day."""
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
