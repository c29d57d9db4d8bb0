"""Projects, their connections to clouds, and what there is to choose from: presets, environments, prices."""

from __future__ import annotations

from typing import Annotated

from django.conf import settings
from django.http import Http404, HttpRequest
from django.urls import reverse
from ninja import Query, Router

from cloud.billing.price_book import PriceBook
from training.environments import catalogue
from webapp.accounts.models import Membership
from webapp.api.guard import Token, project_of
from webapp.api.other_shapes import ConnectionShape, EnvironmentShape, PresetShape, PriceShape
from webapp.api.shapes import ProjectShape
from webapp.credentials import queries
from webapp.credentials.models import Connection
from webapp.credentials.testing import ask_for_test
from webapp.jobs.presets import presets

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


@router.get("/projects/{slug}/connections", response=list[ConnectionShape], summary="Connections to clouds")
def list_connections(request: HttpRequest, slug: str) -> list[ConnectionShape]:
    return [_connection(one) for one in queries.connections_of(project_of(request, slug, "editor"))]


@router.get(
    "/projects/{slug}/connections/{connection_id}", response=ConnectionShape, summary="One connection"
)
def get_connection(request: HttpRequest, slug: str, connection_id: str) -> ConnectionShape:
    return _connection(queries.connection_in(project_of(request, slug, "editor"), connection_id))


@router.post(
    "/projects/{slug}/connections/{connection_id}/test",
    auth=Token("jobs"),
    response={202: ConnectionShape},
    summary="Test a connection",
)
def test_connection(request: HttpRequest, slug: str, connection_id: str) -> ConnectionShape:
    """By the worker, right by right; read the connection again until `test` is done."""
    connection = queries.connection_in(project_of(request, slug, "editor"), connection_id)
    return _connection(ask_for_test(connection=connection))


def _connection(one: Connection) -> ConnectionShape:
    return ConnectionShape(
        id=one.pk,
        name=one.name,
        cloud=one.cloud,
        kind=one.kind,
        region=one.region,
        emulated=one.emulated,
        account=one.account_id,
        test=one.test_state,
        tested_at=one.test_since,
        report=one.test_report,
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
