"""Connections to clouds: list without secrets, make, set an identity, test, set up, clear and remove."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import Prefetch
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from pydantic import SecretStr

from cloud.billing.price_book import PriceBook
from webapp.accounts.models import Membership, Project
from webapp.api.auth import Token
from webapp.api.page_forms import cleaned
from webapp.api.router import ApiRouter, Editor, EditorsProject, Owner, OwnersProject, Person
from webapp.api.schemas.connections import (
    ConnectionShape,
    Identity,
    NewConnection,
    PolicyDocumentShape,
    SetUpShape,
    SetUpWish,
    StepShape,
    StoredIdentity,
)
from webapp.clock import SYSTEM_CLOCK
from webapp.connections import account_setup, connection_test, forms, iam_documents, queries, services
from webapp.connections.models import Connection, SealedSecret
from webapp.connections.text import before_set_up, connection_status, set_up_status

router = ApiRouter(tags=["clouds"])
_HINTS = Prefetch("secrets", SealedSecret.objects.only("field", "hint", "set_at", "connection_id"))


@router.get("/projects/{slug}/connections", response=list[ConnectionShape], summary="Connections to clouds")
def list_connections(member: Editor) -> list[ConnectionShape]:
    rows = queries.connections_of(member.project).select_related("created_by").prefetch_related(_HINTS)
    found = list(rows)
    needed = queries.unfinished_job_counts(found)
    return [_shape(one, member, needed.get(one.pk, 0)) for one in found]


@router.get(
    "/projects/{slug}/connections/{connection_id}",
    response={200: ConnectionShape, 304: None},
    url_name="get_connection",
    summary="One connection",
)
def get_connection(member: Editor, connection_id: str) -> ConnectionShape:
    return _connection(member, connection_id)


@router.post(
    "/projects/{slug}/connections",
    auth=Token("manage"),
    response={201: ConnectionShape},
    summary="Connect a cloud",
)
def create_connection(
    member: Owner, person: Person, response: HttpResponse, connection: NewConnection
) -> ConnectionShape:
    """With an identity, which is tested at once, or without. A name that is taken is refused (409), so that a repeated
    request makes no second connection."""
    made = _made(member.project, person, connection)
    response["Location"] = reverse("api_v1:get_connection", args=[member.project.slug, made.pk])
    return _connection(member, made.pk)


@router.put(
    "/projects/{slug}/connections/{connection_id}/identity",
    auth=Token("manage"),
    response={202: ConnectionShape},
    summary="Set the connection's identity",
)
def set_identity(member: Owner, connection_id: str, identity: Identity) -> ConnectionShape:
    """It replaces the whole stored identity and its secrets. The last test is void, and a new one starts."""
    connection = queries.connection_in(member.project, connection_id)
    connection = services.set_identity(connection=connection, **_identity(connection, identity))
    connection_test.request_test(connection=connection)
    return _connection(member, connection_id)


@router.post(
    "/projects/{slug}/connections/{connection_id}/test",
    auth=Token("jobs"),
    response={202: ConnectionShape},
    summary="Test a connection",
)
def test_connection(member: Editor, connection_id: str) -> ConnectionShape:
    """The worker tests each right. Poll the connection until `test` is done."""
    connection_test.request_test(connection=queries.connection_in(member.project, connection_id))
    return _connection(member, connection_id)


@router.delete(
    "/projects/{slug}/connections/{connection_id}",
    auth=Token("manage"),
    response={204: None},
    summary="Remove a connection with its secrets",
)
def remove_connection(project: OwnersProject, connection_id: str) -> None:
    """Refused while jobs need it (409). The set-up stays in the account: clear it first."""
    connection = queries.connection_in(project, connection_id)
    services.remove_connection(connection=connection)


@router.get(
    "/projects/{slug}/connections/{connection_id}/policies",
    response=list[PolicyDocumentShape],
    summary="Policies and templates for the account's owner",
)
def list_policies(project: EditorsProject, connection_id: str) -> list[PolicyDocumentShape]:
    """Made for this connection. A role without a principal to trust has none."""
    connection = queries.connection_in(project, connection_id)
    return [
        PolicyDocumentShape(
            key=one.key, title=one.title, file_name=one.file_name, document=json.loads(one.text)
        )
        for one in iam_documents.policy_documents(connection).values()
    ]


@router.get("/projects/{slug}/connections/{connection_id}/papers", include_in_schema=False)
def redirect_to_policies(project: EditorsProject, connection_id: str) -> HttpResponse:
    """The address that policies had before release 0.1.0."""
    address = reverse("api_v1:list_policies", args=[project.slug, connection_id])
    return HttpResponse(status=308, headers={"Location": address})


@router.get(
    "/projects/{slug}/connections/{connection_id}/set-up",
    response=SetUpShape,
    summary="The account's set-up",
)
def get_set_up(project: EditorsProject, connection_id: str) -> SetUpShape:
    return _set_up(queries.connection_in(project, connection_id))


@router.post(
    "/projects/{slug}/connections/{connection_id}/set-up",
    auth=Token("manage"),
    response={202: SetUpShape},
    summary="Set an account up",
)
def set_up(project: OwnersProject, connection_id: str, wish: SetUpWish) -> SetUpShape:
    """The worker does it step by step. Poll it until `state` is done. A repeated set-up updates everything."""
    connection = queries.connection_in(project, connection_id)
    azure = connection.cloud == "azure"
    given = wish.model_dump(exclude_none=True)
    wanted = cleaned(
        forms.set_up_form(connection, given if azure else {"memory_mb": 1024, **given}), given=given
    )
    ask: Any = account_setup.request_containers if azure else account_setup.request_set_up
    ask(connection=connection, **wanted)
    return _set_up(connection)


@router.delete(
    "/projects/{slug}/connections/{connection_id}/set-up",
    auth=Token("manage"),
    response={202: SetUpShape},
    summary="Remove an account's set-up",
)
def take_down(project: OwnersProject, connection_id: str) -> SetUpShape:
    """The worker does it. No job starts there from now on. Refused while jobs need it (409)."""
    connection = queries.connection_in(project, connection_id)
    account_setup.request_removal(connection=connection)
    return _set_up(connection)


@sensitive_variables()
def _made(project: Project, user: Any, wish: NewConnection) -> Connection:
    given = wish.model_dump(exclude_none=True, exclude={"kind", "identity"})
    fields = cleaned(forms.NewConnectionForm(given, kind=wish.kind), given=given)
    fields |= {"project": project, "user": user, "kind": wish.kind}
    if wish.identity is None:
        return services.create_connection(**fields)
    identity = _identity(Connection(kind=wish.kind), wish.identity)
    made = services.create_with_identity(**fields, **identity)
    return connection_test.request_test(connection=made)


@sensitive_variables()
def _identity(connection: Connection, identity: Identity) -> dict[str, Any]:
    """The identity as `set_identity` takes it, validated by the page's form."""
    given = {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value
        for name, value in identity
        if value is not None
    }
    form = forms.identity_form(connection, given)
    cleaned(form, given=list(given))
    return {"plain": forms.plain_of(connection, form), "secrets": forms.secrets_of(connection, form)}


def _connection(member: Membership, connection_id: str) -> ConnectionShape:
    connection = queries.connection_in(member.project, connection_id)
    return _shape(connection, member, queries.unfinished_jobs(connection).count())


def _shape(one: Connection, member: Membership, jobs: int) -> ConnectionShape:
    where = connection_status(one, SYSTEM_CLOCK.now())
    return ConnectionShape(
        id=one.pk,
        name=one.name,
        cloud=one.cloud,
        kind=one.kind,
        region=one.region,
        emulated=one.emulated,
        account=one.account_id,
        external_id=one.external_id,
        subscription_id=one.subscription_id,
        resource_group=one.resource_group,
        identity=_stored(one) if one.has_identity and member.allows("owner") else None,
        created_at=one.created_at,
        created_by=one.created_by.email,
        jobs=jobs,
        state=where.word,
        words=where.sentence,
        test=one.test_state,
        tested_at=one.test_since,
        report=one.test_report,
    )


def _stored(one: Connection) -> StoredIdentity:
    secret = next(iter(one.secrets.all()), None)
    return StoredIdentity(
        role_arn=one.role_arn,
        access_key_id=one.access_key_id,
        tenant_id=one.tenant_id,
        client_id=one.client_id,
        secret_set_at=secret.set_at if secret else None,
        secret_hint=secret.hint if secret else "",
    )


def _set_up(connection: Connection) -> SetUpShape:
    made = queries.set_up_of(connection)
    where = set_up_status(made, SYSTEM_CLOCK.now())
    return SetUpShape(
        aim=made.aim if made else None,
        state=made.state if made else "never",
        state_words=where.word,
        words=where.sentence,
        since=made.since if made else None,
        ready=bool(made and made.ready),
        ready_mb=made.ready_mb if made else [],
        ready_bucket=bool(made and made.ready_bucket),
        ready_image=made.ready_image if made else "",
        asked_mb=made.asked_mb if made else [],
        asked_bucket=bool(made and made.asked_bucket),
        image=made.image if made else "",
        steps=[StepShape(**step) for step in made.steps] if made else [],
        before=before_set_up(connection, PriceBook.load()),
    )
