"""Schemas of channels and deliveries. Responses contain no secret addresses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints

from webapp.alerts.channels import ADDRESSES_A_CHANNEL
from webapp.alerts.forms import KINDS

_Way = Literal["email", "chat", "webhook"]
_KINDS = ", ".join(kind for kind, _ in KINDS)
_Name = Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[^\x00]*$")]
_Addresses = Annotated[
    list[Annotated[str, StringConstraints(min_length=3, max_length=254)]],
    Field(min_length=1, max_length=ADDRESSES_A_CHANNEL),
]


class NewChannel(BaseModel):
    """`email` takes addresses; `chat` and `webhook` one address to send to, which is sealed at once."""

    # Errors name fields, never their values, which may be secrets.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    way: _Way
    name: _Name
    addresses: _Addresses | None = None
    url: Annotated[SecretStr, Field(max_length=4096)] | None = None


class ChannelChange(BaseModel):
    """Only the fields that are sent change. The built-in channel keeps its name and its readers."""

    model_config = {"extra": "forbid"}

    name: _Name | None = None
    on: bool | None = None
    kinds: list[Annotated[str, StringConstraints(max_length=16)]] | None = Field(
        None, max_length=20, description=f"Only these kinds are sent. There are: {_KINDS}."
    )
    addresses: _Addresses | None = Field(None, description="Of a channel by e-mail.")


class ChannelShape(BaseModel):
    """A channel of a project's alerts."""

    id: str
    way: _Way
    name: str
    built_in: bool
    on: bool
    kinds: list[str] = Field(description="The kinds that it sends.")
    to: list[str] | None = Field(
        description="Its readers; of a secret address only the host. Null for viewers."
    )
    unconfirmed: list[str] | None = Field(
        description="Readers who get no mails before they confirm the address or agree. Null for viewers."
    )
    state: str = Field(description="Off, Missing, Unconfirmed, Failing, Working or Not used yet.")
    words: str
    failures: int = Field(description="Failed attempts since the last success.")
    last_sent_at: datetime | None
    last_failed_at: datetime | None


class SigningKey(BaseModel):
    """Only this response contains it."""

    signing_key: str


class AddedChannel(ChannelShape):
    signing_key: str | None = Field(description="Of a webhook. Only this response contains it.")


class DeliveryShape(BaseModel):
    """One sending of an alert by one channel, and its outcome."""

    id: str
    channel: str
    alert: int
    kind: str
    sentence: str
    over: bool = Field(description="Whether it says that the alert is over.")
    state: Literal["waiting", "sending", "sent", "failed"]
    created_at: datetime
    due_at: datetime
    sent_at: datetime | None
    attempts: int
    replays: int
    last_error: str
    response_status: int | None
