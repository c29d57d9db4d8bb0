"""Schemas of connections to clouds. Requests may contain secrets, responses never do."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints

_Kind = Literal["aws_role", "aws_keys", "azure_principal"]
_Plain = Annotated[str, StringConstraints(max_length=600, pattern=r"^[^\x00]*$")]
_Secret = Annotated[SecretStr, Field(max_length=4096)]
# Refusals of these name fields, never what was in them.
_WRITE_ONLY = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Identity(BaseModel):
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


class NewConnection(BaseModel):
    """`subscription_id` and `resource_group` are for Azure alone."""

    model_config = _WRITE_ONLY

    kind: _Kind
    name: Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[^\x00]*$")]
    region: Annotated[str, StringConstraints(min_length=1, max_length=40)] = Field(
        description="As the cloud names it: eu-central-1, westeurope."
    )
    subscription_id: _Plain | None = None
    resource_group: _Plain | None = None
    identity: Identity | None = Field(
        None,
        description="Optional. A role needs the external id that the new connection gets.",
    )


class StoredIdentity(BaseModel):
    """The identity without secrets: when the secret was set, and its last letters."""

    role_arn: str
    access_key_id: str
    tenant_id: str
    client_id: str
    secret_set_at: datetime | None
    secret_hint: str = Field(description="Its last letters; empty for short ones.")


class ConnectionShape(BaseModel):
    """An account of a cloud, without secrets."""

    id: str
    name: str
    cloud: Literal["aws", "azure"]
    kind: _Kind
    region: str
    emulated: bool
    account: str
    external_id: str = Field(
        description="The external id that a role must require, so that no one else can assume it."
    )
    subscription_id: str
    resource_group: str
    identity: StoredIdentity | None = Field(description="For owners. Null: not for you, or none yet.")
    created_at: datetime
    created_by: str
    jobs: int = Field(description="Unfinished jobs that need it.")
    state: str = Field(description="Not set up, Testing, Ready, …")
    words: str
    test: Literal["never", "asked", "running", "done"]
    tested_at: datetime | None
    report: dict[str, Any] | None = Field(description="The last test's report on each right.")


class PolicyDocumentShape(BaseModel):
    """A policy or template for the cloud's own tools."""

    key: str
    title: str
    file_name: str
    document: dict[str, Any]


class SetUpWish(BaseModel):
    """On AWS a function of this memory, beside existing ones; on Azure the image that containers run."""

    model_config = {"extra": "forbid"}

    memory_mb: int | None = Field(None, ge=128, le=10_240, description="AWS; 1,024 if it is left out.")
    bucket: bool | None = Field(None, description="AWS: also a bucket, for large networks.")
    image: _Plain | None = Field(None, description="Azure: such as registry.example.org/starling-actor:1.")


class StepShape(BaseModel):
    name: str
    state: str = Field(description="done, made, gone or missing.")
    words: str
    fix: str


class SetUpShape(BaseModel):
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
    asked_mb: list[int] = Field(description="Memory sizes of functions that may exist.")
    asked_bucket: bool
    image: str
    steps: list[StepShape]
    before: list[str] = Field(description="What to do before it is set up.")
