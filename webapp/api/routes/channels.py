"""Channels of alerts: list, add, change, test and remove. Deliveries: list, and send again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from pydantic import AliasPath, BaseModel, ConfigDict, Field, SecretStr, StringConstraints

from webapp.accounts.models import Project
from webapp.alerts import channels, queries, services
from webapp.alerts.channels import ADDRESSES_A_CHANNEL
from webapp.alerts.forms import KINDS, NEW_FORMS, ChannelForm
from webapp.alerts.models import Channel, ChannelKind
from webapp.alerts.text import channel_status, mail_readers, readers
from webapp.api.auth import Token
from webapp.api.paging import Cursor, Limit, Page, newest_first
from webapp.api.problems import cleaned
from webapp.api.router import ApiRouter, EditorsProject, OwnersProject, Person, Viewer
from webapp.api.schemas import Address, Name, Request, Shape
from webapp.connections.sealing import Secret

router = ApiRouter(tags=["alerts"])


_Way = Literal["email", "chat", "webhook"]
_KINDS = ", ".join(kind for kind, _ in KINDS)
_Addresses = Annotated[
    list[Address],
    Field(min_length=1, max_length=ADDRESSES_A_CHANNEL),
]


class NewChannel(Request):
    """`email` takes addresses; `chat` and `webhook` one address to send to, which is sealed at once."""

    # Errors name fields, never their values, which may be secrets.
    model_config = ConfigDict(hide_input_in_errors=True)

    way: _Way
    name: Name
    addresses: _Addresses | None = None
    url: Annotated[SecretStr, Field(max_length=4096)] | None = None


class ChannelChange(Request):
    """Only the fields that are sent change. The built-in channel keeps its name and its readers."""

    name: Name | None = None
    on: bool | None = None
    kinds: list[Annotated[str, StringConstraints(max_length=16)]] | None = Field(
        None, max_length=20, description=f"Only these kinds are sent. There are: {_KINDS}."
    )
    addresses: _Addresses | None = Field(None, description="Of a channel by e-mail.")


class ChannelShape(Shape):
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


class DeliveryShape(Shape):
    """One sending of an alert by one channel, and its outcome."""

    id: str
    channel: str = Field(validation_alias="channel_id")
    alert: int = Field(validation_alias="alert_id")
    kind: str = Field(validation_alias=AliasPath("alert", "kind"))
    sentence: str = Field(validation_alias=AliasPath("alert", "sentence"))
    over: bool = Field(description="Whether it says that the alert is over.")
    state: Literal["waiting", "sending", "sent", "failed"]
    created_at: datetime
    due_at: datetime
    sent_at: datetime | None
    attempts: int
    replays: int
    last_error: str
    response_status: int | None


@router.get("/projects/{slug}/channels", summary="Channels of alerts")
def list_channels(member: Viewer) -> list[ChannelShape]:
    """Viewers do not see the readers."""
    services.built_in_channel(member.project_id)
    may_see = member.allows("editor")
    return [
        ChannelShape.of(one, **_channel_fields(one, may_see)) for one in queries.channels_of(member.project)
    ]


@router.get("/projects/{slug}/channels/{channel_id}", response=(200, 304), summary="One channel")
def get_channel(project: EditorsProject, channel_id: str) -> ChannelShape:
    channel = queries.channel_in(project, channel_id)
    return ChannelShape.of(channel, **_channel_fields(channel))


@router.post("/projects/{slug}/channels", auth=Token("manage"), response=201, summary="Add a channel")
def add_channel(project: OwnersProject, response: HttpResponse, channel: NewChannel) -> AddedChannel:
    """The response contains a webhook's signing key. A name that is taken is refused (409), so that a repeated request
    adds no second channel."""
    made, key = _added(project, channel)
    response["Location"] = reverse("api_v1:get_channel", args=[project.slug, made.pk])
    return AddedChannel.of(made, **_channel_fields(made), signing_key=key.reveal() if key else None)


@router.put("/projects/{slug}/channels/{channel_id}", auth=Token("manage"), summary="Change a channel")
def change_channel(project: OwnersProject, channel_id: str, change: ChannelChange) -> ChannelShape:
    channel = queries.channel_in(project, channel_id)
    given = change.model_dump(exclude_none=True)
    fields = cleaned(ChannelForm(_form_data(channel, given), channel=channel), given=given)
    channels.change(channel=channel, **{"name": channel.name, **fields})
    return ChannelShape.of(channel, **_channel_fields(channel))


@router.post(
    "/projects/{slug}/channels/{channel_id}/test",
    auth=Token("manage"),
    response=202,
    summary="Send a test message",
)
def test_channel(
    project: OwnersProject, person: Person, response: HttpResponse, channel_id: str
) -> DeliveryShape:
    """It goes the way of all others. Location shows its outcome. One at a time."""
    channel = queries.channel_in(project, channel_id)
    sent = channels.send_test(channel=channel, user=person)
    response["Location"] = reverse("api_v1:get_delivery", args=[project.slug, sent.pk])
    return DeliveryShape.of(sent)


@router.post(
    "/projects/{slug}/channels/{channel_id}/key",
    auth=Token("manage"),
    summary="Replace a webhook's signing key",
)
def renew_channel_key(project: OwnersProject, channel_id: str) -> SigningKey:
    """At once. The previous key signs no more messages."""
    channel = queries.channel_in(project, channel_id)
    return SigningKey(signing_key=channels.renew_key(channel=channel).reveal())


@router.delete(
    "/projects/{slug}/channels/{channel_id}",
    auth=Token("manage"),
    response=204,
    summary="Remove a channel with its log",
)
def remove_channel(project: OwnersProject, channel_id: str) -> None:
    """The built-in one can only be turned off (409)."""
    channel = queries.channel_in(project, channel_id)
    channels.remove(channel=channel)


@router.get(
    "/projects/{slug}/channels/{channel_id}/deliveries", summary="Deliveries of a channel, newest first"
)
def list_deliveries(
    project: EditorsProject, channel_id: str, cursor: Cursor = "", limit: Limit = 50
) -> Page[DeliveryShape]:
    channel = queries.channel_in(project, channel_id)
    return newest_first(queries.deliveries_of(channel), "created_at", cursor, limit, DeliveryShape.of)


@router.get("/projects/{slug}/deliveries/{delivery_id}", summary="One delivery")
def get_delivery(project: EditorsProject, delivery_id: str) -> DeliveryShape:
    return DeliveryShape.of(queries.delivery_in(project, delivery_id))


@router.post(
    "/projects/{slug}/deliveries/{delivery_id}/replay",
    auth=Token("manage"),
    response=202,
    summary="Send a message again",
)
def replay_delivery(project: OwnersProject, delivery_id: str) -> DeliveryShape:
    """A delivery that was sent or given up, under the same id. One that is on its way stays as it is."""
    channels.replay(delivery=queries.delivery_in(project, delivery_id))
    return DeliveryShape.of(queries.delivery_in(project, delivery_id))


@sensitive_variables()
def _added(project: Project, wish: NewChannel) -> tuple[Channel, Secret | None]:
    given: dict[str, Any] = {"name": wish.name}
    if wish.addresses is not None:
        given["addresses"] = "\n".join(wish.addresses)
    if wish.url is not None:
        given["url"] = wish.url.get_secret_value()
    fields = cleaned(NEW_FORMS[wish.way](given), given=list(given))
    return channels.add(project=project, way=wish.way, **fields)


def _form_data(channel: Channel, given: dict[str, Any]) -> dict[str, Any]:
    """The data of the channel's form, with the changes in place of present values."""
    form = ChannelForm(channel=channel)
    typed = {name: form[name].value() for name in form.fields} | given
    if "addresses" in given:
        typed["addresses"] = "\n".join(given["addresses"])
    return typed


def _channel_fields(channel: Channel, may_see: bool = True) -> dict[str, Any]:
    """What is no field of the row."""
    where = channel_status(channel)
    return {
        "kinds": [kind for kind, _ in KINDS if kind not in channel.silent_kinds],
        "to": readers(channel) if may_see else None,
        "unconfirmed": _unconfirmed(channel) if may_see else None,
        "state": where.word,
        "words": where.sentence,
    }


def _unconfirmed(channel: Channel) -> list[str]:
    if channel.way != ChannelKind.EMAIL:
        return []
    return [reader.address for reader in mail_readers(channel) if not reader.gets_mails]
