"""Connections to clouds: list without secrets, make, set an identity, test, set up, clear and remove."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from django.db.models import Prefetch
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from pydantic import AliasPath, BaseModel, ConfigDict, Field, SecretStr, StringConstraints

from cloud.money.billing.price_book import PriceBook
from webapp.accounts.models import Membership, Project, User
from webapp.api.auth import Token
from webapp.api.problems import cleaned
from webapp.api.router import ApiRouter, Editor, EditorsProject, Owner, OwnersProject, Person
from webapp.api.schemas import Name, Request, Shape
from webapp.clock import SYSTEM_CLOCK
from webapp.connections import account_setup, connection_check, forms, iam_documents, queries, services
from webapp.connections.models import Connection, SealedSecret, SetUp
from webapp.connections.text import before_set_up, connection_status, set_up_status

router = ApiRouter(tags=["clouds"])
_HINTS = Prefetch("secrets", SealedSecret.objects.only("field", "hint", "set_at", "connection_id"))


_Kind = Literal["aws_role", "aws_keys", "azure_principal"]
_Plain = Annotated[str, StringConstraints(max_length=600, pattern=r"^[^\x00]*$")]
_Secret = Annotated[SecretStr, Field(max_length=4096)]
# Refusals of these name fields, never what was in them.
_WRITE_ONLY = ConfigDict(hide_input_in_errors=True)


class Identity(Request):
    """Starling's identity in the account: all fields of the connection's kind, and no others.

    `aws_role`: role_arn. `aws_keys`: access_key_id and secret_access_key. `azure_principal`: tenant_id, client_id and
    client_secret. Secrets are sealed at once, and never returned.
    """

    model_config = _WRITE_ONLY

    role_arn: _Plain | None = None
    access_key_id: _Plain | None = None
    secret_access_key: _Secret | None = None
    tenant_id: _Plain | None = None
    client_id: _Plain | None = None
    client_secret: _Secret | None = None


class NewConnection(Request):
    """`subscription_id` and `resource_group` are for Azure alone."""

    model_config = _WRITE_ONLY

    kind: _Kind
    name: Name
    region: Annotated[str, StringConstraints(min_length=1, max_length=40)] = Field(
        description="As the cloud names it: eu-central-1, westeurope."
    )
    subscription_id: _Plain | None = None
    resource_group: _Plain | None = None
    identity: Identity | None = Field(
        None,
        description="Optional. A role needs the external id that the new connection gets.",
    )


class StoredIdentity(Shape):
    """The identity without secrets: when the secret was set, and its last letters."""

    role_arn: str
    access_key_id: str
    tenant_id: str
    client_id: str
    secret_set_at: datetime | None
    secret_hint: str = Field(description="Its last letters; empty for short ones.")


class ConnectionShape(Shape):
    """An account of a cloud, without secrets."""

    id: str
    name: str
    cloud: Literal["aws", "azure"]
    kind: _Kind
    region: str
    emulated: bool
    account: str = Field(validation_alias="account_id")
    prefix: str = Field(description="All names in the account begin with it: roles, functions, logs, groups.")
    external_id: str = Field(
        description="The external id that a role must require, so that no one else can assume it."
    )
    subscription_id: str
    resource_group: str
    identity: StoredIdentity | None = Field(description="For owners. Null: not for you, or none yet.")
    created_at: datetime
    created_by: str = Field(validation_alias=AliasPath("created_by", "email"))
    jobs: int = Field(description="Unfinished jobs that need it.")
    state: str = Field(description="Not set up, Testing, Ready, …")
    words: str
    test: Literal["never", "asked", "running", "done"] = Field(validation_alias="test_state")
    tested_at: datetime | None = Field(validation_alias="test_since")
    report: dict[str, Any] | None = Field(
        validation_alias="test_report", description="The last test's report on each right."
    )


class PolicyDocumentShape(Shape):
    """A policy or template for the cloud's own tools."""

    key: str
    title: str
    file_name: str
    document: dict[str, Any]


class SetUpWish(Request):
    """On AWS a function of this memory, beside existing ones; on Azure the image that containers run."""

    memory_mb: int | list[int] | None = Field(
        None, description="AWS: one size or several, from 128 to 10,240; 1,024 if it is left out."
    )
    bucket: bool | None = Field(None, description="AWS: also a bucket, for large networks.")
    image: _Plain | None = Field(None, description="Azure: such as registry.example.org/starling-actor:1.")


class StepShape(BaseModel):
    name: str
    state: str = Field(description="done, made, gone or missing.")
    words: str
    fix: str


class SetUpShape(Shape):
    """The set-up of the account, and its progress."""

    aim: Literal["set_up", "take_down", "profile"] | None = Field(
        description="Null: nothing was requested yet."
    )
    state: Literal["never", "asked", "running", "done"]
    state_words: str
    words: str
    since: datetime | None
    ready: bool = Field(description="Whether jobs may start there.")
    ready_mb: list[int]
    ready_bucket: bool
    ready_image: str
    asked_mb: list[int] = Field(
        validation_alias="requested_mb", description="Memory sizes of functions that may exist."
    )
    asked_bucket: bool = Field(validation_alias="requested_bucket")
    image: str
    steps: list[StepShape]
    before: list[str] = Field(description="What to do before it is set up.")


@router.get("/projects/{slug}/connections", summary="Connections to clouds")
def list_connections(member: Editor) -> list[ConnectionShape]:
    rows = queries.connections_of(member.project).select_related("created_by").prefetch_related(_HINTS)
    listed = list(rows)
    needed = queries.unfinished_job_counts(listed)
    return [_shape(connection, member, needed.get(connection.pk, 0)) for connection in listed]


@router.get("/projects/{slug}/connections/{connection_id}", response=(200, 304), summary="One connection")
def get_connection(member: Editor, connection_id: str) -> ConnectionShape:
    return _connection(member, connection_id)


@router.post("/projects/{slug}/connections", auth=Token("manage"), response=201, summary="Connect a cloud")
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
    response=202,
    summary="Set the connection's identity",
)
def set_connection_identity(member: Owner, connection_id: str, identity: Identity) -> ConnectionShape:
    """It replaces the whole stored identity and its secrets. The last test is void, and a new one starts."""
    connection = queries.connection_in(member.project, connection_id)
    connection = services.set_identity(connection=connection, **_identity(connection, identity))
    connection_check.request_test(connection=connection)
    return _connection(member, connection_id)


@router.post(
    "/projects/{slug}/connections/{connection_id}/test",
    auth=Token("jobs"),
    response=202,
    summary="Test a connection",
)
def test_connection(member: Editor, connection_id: str) -> ConnectionShape:
    """The worker tests each right. Poll the connection until `test` is done."""
    connection_check.request_test(connection=queries.connection_in(member.project, connection_id))
    return _connection(member, connection_id)


@router.delete(
    "/projects/{slug}/connections/{connection_id}",
    auth=Token("manage"),
    response=204,
    summary="Remove a connection with its secrets",
)
def remove_connection(project: OwnersProject, connection_id: str) -> None:
    """Refused while jobs need it (409). The set-up stays in the account: clear it first."""
    connection = queries.connection_in(project, connection_id)
    services.remove_connection(connection=connection)


@router.get(
    "/projects/{slug}/connections/{connection_id}/policies",
    summary="Policies and templates for the account's owner",
)
def list_connection_policies(project: EditorsProject, connection_id: str) -> list[PolicyDocumentShape]:
    """Made for this connection. A role without a principal to trust has none."""
    connection = queries.connection_in(project, connection_id)
    return [
        PolicyDocumentShape.of(document, document=json.loads(document.text))
        for document in iam_documents.policy_documents(connection).values()
    ]


@router.get("/projects/{slug}/connections/{connection_id}/set-up", summary="The account's set-up")
def get_connection_set_up(project: EditorsProject, connection_id: str) -> SetUpShape:
    return _set_up(queries.connection_in(project, connection_id))


@router.post(
    "/projects/{slug}/connections/{connection_id}/set-up",
    auth=Token("manage"),
    response=202,
    summary="Set an account up",
)
def set_up_connection(project: OwnersProject, connection_id: str, wish: SetUpWish) -> SetUpShape:
    """The worker does it step by step. Poll it until `state` is done. A repeated set-up updates everything."""
    connection = queries.connection_in(project, connection_id)
    azure = connection.cloud == "azure"
    given = wish.model_dump(exclude_none=True)
    if isinstance(wish.memory_mb, list):
        given["memory_mb"] = ", ".join(map(str, wish.memory_mb))
    wanted = cleaned(
        forms.set_up_form(connection, given if azure else {"memory_mb": 1024, **given}), given=given
    )
    ask: Any = account_setup.request_containers if azure else account_setup.request_set_up
    ask(connection=connection, **wanted)
    return _set_up(connection)


@router.delete(
    "/projects/{slug}/connections/{connection_id}/set-up",
    auth=Token("manage"),
    response=202,
    summary="Remove an account's set-up",
)
def take_down_connection(project: OwnersProject, connection_id: str) -> SetUpShape:
    """The worker does it. No job starts there from now on. Refused while jobs need it (409)."""
    connection = queries.connection_in(project, connection_id)
    account_setup.request_removal(connection=connection)
    return _set_up(connection)


@sensitive_variables()
def _made(project: Project, user: User, wish: NewConnection) -> Connection:
    given = wish.model_dump(exclude_none=True, exclude={"kind", "identity"})
    fields = cleaned(forms.NewConnectionForm(given, kind=wish.kind), given=given)
    fields |= {"project": project, "user": user, "kind": wish.kind}
    if wish.identity is None:
        return services.create_connection(**fields)
    identity = _identity(Connection(kind=wish.kind), wish.identity)
    made = services.create_with_identity(**fields, **identity)
    return connection_check.request_test(connection=made)


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


def _shape(connection: Connection, member: Membership, jobs: int) -> ConnectionShape:
    where = connection_status(connection, SYSTEM_CLOCK.now())
    return ConnectionShape.of(
        connection,
        identity=_stored(connection) if connection.has_identity and member.allows("owner") else None,
        jobs=jobs,
        state=where.word,
        words=where.sentence,
    )


def _stored(connection: Connection) -> StoredIdentity:
    secret = next(iter(connection.secrets.all()), None)
    return StoredIdentity.of(
        connection, secret_set_at=secret.set_at if secret else None, secret_hint=secret.hint if secret else ""
    )


def _set_up(connection: Connection) -> SetUpShape:
    made = queries.set_up_of(connection)
    where = set_up_status(made, SYSTEM_CLOCK.now())
    return SetUpShape.of(
        made or SetUp(),
        aim=made.aim if made else None,
        state_words=where.word,
        words=where.sentence,
        before=before_set_up(connection, PriceBook.load()),
    )
