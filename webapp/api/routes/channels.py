"""Channels of alerts: list, add, change, test and remove. Deliveries: list, and send again."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables

from webapp.accounts.models import Project
from webapp.alerts import channels, queries, services
from webapp.alerts.forms import KINDS, NEW_FORMS, ChannelForm
from webapp.alerts.models import Channel, Delivery, Way
from webapp.alerts.text import channel_status, mail_readers, readers
from webapp.api.auth import Token
from webapp.api.page_forms import cleaned
from webapp.api.paging import Cursor, Limit, Page, newest_first
from webapp.api.router import ApiRouter, EditorsProject, OwnersProject, Person, Viewer
from webapp.api.schemas.channels import (
    AddedChannel,
    ChannelChange,
    ChannelShape,
    DeliveryShape,
    NewChannel,
    SigningKey,
)
from webapp.connections.secret import Secret

router = ApiRouter(tags=["alerts"])


@router.get("/projects/{slug}/channels", response=list[ChannelShape], summary="Channels of alerts")
def list_channels(member: Viewer) -> list[ChannelShape]:
    """Viewers do not see the readers."""
    services.built_in_channel(member.project_id)
    may_see = member.allows("editor")
    return [ChannelShape(**_channel_fields(one, may_see)) for one in queries.channels_of(member.project)]


@router.get(
    "/projects/{slug}/channels/{channel_id}",
    response={200: ChannelShape, 304: None},
    url_name="get_channel",
    summary="One channel",
)
def get_channel(project: EditorsProject, channel_id: str) -> ChannelShape:
    channel = queries.channel_in(project, channel_id)
    return ChannelShape(**_channel_fields(channel))


@router.post(
    "/projects/{slug}/channels",
    auth=Token("manage"),
    response={201: AddedChannel},
    summary="Add a channel",
)
def add_channel(project: OwnersProject, response: HttpResponse, channel: NewChannel) -> AddedChannel:
    """The response contains a webhook's signing key. A name that is taken is refused (409), so that a repeated request
    adds no second channel."""
    made, key = _added(project, channel)
    response["Location"] = reverse("api_v1:get_channel", args=[project.slug, made.pk])
    return AddedChannel(**_channel_fields(made), signing_key=key.reveal() if key else None)


@router.put(
    "/projects/{slug}/channels/{channel_id}",
    auth=Token("manage"),
    response=ChannelShape,
    summary="Change a channel",
)
def change_channel(project: OwnersProject, channel_id: str, change: ChannelChange) -> ChannelShape:
    channel = queries.channel_in(project, channel_id)
    given = change.model_dump(exclude_none=True)
    fields = cleaned(ChannelForm(_form_data(channel, given), channel=channel), given=given)
    channels.change(channel=channel, **{"name": channel.name, **fields})
    return ChannelShape(**_channel_fields(channel))


@router.post(
    "/projects/{slug}/channels/{channel_id}/test",
    auth=Token("manage"),
    response={202: DeliveryShape},
    summary="Send a test message",
)
def send_test(
    project: OwnersProject, person: Person, response: HttpResponse, channel_id: str
) -> DeliveryShape:
    """It goes the way of all others. Location shows its outcome. One at a time."""
    channel = queries.channel_in(project, channel_id)
    sent = channels.send_test(channel=channel, user=person)
    response["Location"] = reverse("api_v1:get_delivery", args=[project.slug, sent.pk])
    return _delivery(sent)


@router.post(
    "/projects/{slug}/channels/{channel_id}/key",
    auth=Token("manage"),
    response=SigningKey,
    summary="Replace a webhook's signing key",
)
def renew_key(project: OwnersProject, channel_id: str) -> SigningKey:
    """At once. The previous key signs no more messages."""
    channel = queries.channel_in(project, channel_id)
    return SigningKey(signing_key=channels.renew_key(channel=channel).reveal())


@router.delete(
    "/projects/{slug}/channels/{channel_id}",
    auth=Token("manage"),
    response={204: None},
    summary="Remove a channel with its log",
)
def remove_channel(project: OwnersProject, channel_id: str) -> None:
    """The built-in one can only be turned off (409)."""
    channel = queries.channel_in(project, channel_id)
    channels.remove(channel=channel)


@router.get(
    "/projects/{slug}/channels/{channel_id}/deliveries",
    response=Page[DeliveryShape],
    summary="Deliveries of a channel, newest first",
)
def list_deliveries(
    project: EditorsProject, channel_id: str, cursor: Cursor = "", limit: Limit = 50
) -> Page[DeliveryShape]:
    channel = queries.channel_in(project, channel_id)
    return newest_first(queries.deliveries_of(channel), "created_at", cursor, limit, _delivery)


@router.get(
    "/projects/{slug}/deliveries/{delivery_id}",
    response=DeliveryShape,
    url_name="get_delivery",
    summary="One delivery",
)
def get_delivery(project: EditorsProject, delivery_id: str) -> DeliveryShape:
    return _delivery(queries.delivery_in(project, delivery_id))


@router.post(
    "/projects/{slug}/deliveries/{delivery_id}/replay",
    auth=Token("manage"),
    response={202: DeliveryShape},
    summary="Send a message again",
)
def replay(project: OwnersProject, delivery_id: str) -> DeliveryShape:
    """A delivery that was sent or given up, under the same id. One that is on its way stays as it is."""
    channels.replay(delivery=queries.delivery_in(project, delivery_id))
    return _delivery(queries.delivery_in(project, delivery_id))


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
    where = channel_status(channel)
    return {
        "id": channel.pk,
        "way": channel.way,
        "name": channel.name,
        "built_in": channel.built_in,
        "on": channel.on,
        "kinds": [kind for kind, _ in KINDS if kind not in channel.silent_kinds],
        "to": readers(channel) if may_see else None,
        "unconfirmed": _unconfirmed(channel) if may_see else None,
        "state": where.word,
        "words": where.sentence,
        "failures": channel.failures,
        "last_sent_at": channel.last_sent_at,
        "last_failed_at": channel.last_failed_at,
    }


def _unconfirmed(channel: Channel) -> list[str]:
    if channel.way != Way.EMAIL:
        return []
    return [one.address for one in mail_readers(channel) if not one.gets_mails]


def _delivery(one: Delivery) -> DeliveryShape:
    return DeliveryShape(
        id=one.pk,
        channel=one.channel_id,
        alert=one.alert_id,
        kind=one.alert.kind,
        sentence=one.alert.sentence,
        over=one.over,
        state=one.state,
        created_at=one.created_at,
        due_at=one.due_at,
        sent_at=one.sent_at,
        attempts=one.attempts,
        replays=one.replays,
        last_error=one.last_error,
        response_status=one.response_status,
    )
