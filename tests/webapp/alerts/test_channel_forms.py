"""Channels as their forms make and change them: what is wrong is said, secrets are shown once and kept sealed."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import serializers
from django.test import Client

from tests.factories import make_alert, make_project, make_user, make_webhook
from tests.signed_in import sign_in
from webapp.alerts import secrets, services
from webapp.alerts.models import Channel, ChannelSecret, Delivery
from webapp.connections import key_ring
from webapp.connections.sealing import CannotOpen

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(client: Client) -> Any:
    """One of the user that the client is signed in as."""
    sign_in(client, owner := make_user("ada@example.org"))
    return make_project(owner, "Walking")


def test_a_signing_key_is_shown_once_and_an_address_never(
    client: Client, project: Any, settings: Any
) -> None:
    settings.STARLING_ALERT_HOSTS = ["127.0.0.1:9"]
    secret_path = "http://127.0.0.1:9/t0p-s3cret-token"
    page = client.post(f"/p/{project.slug}/alerts/channels/new/webhook/", {"name": "Ops", "url": secret_path})
    channel = Channel.objects.get(way="webhook")
    key = secrets.open_secret(channel, "signing_key").reveal()
    assert page.status_code == 200
    assert key in page.content.decode()
    assert "no-store" in page.headers["Cache-Control"]
    stored = serializers.serialize("json", [*Channel.objects.all(), *ChannelSecret.objects.all()])
    shown = "".join(
        client.get(f"/p/{project.slug}/alerts/channels/{path}").content.decode()
        for path in ("", f"{channel.pk}/")
    )
    for place in (stored, shown):
        assert key not in place
        assert "t0p-s3cret-token" not in place
    assert "127.0.0.1" in shown
    renewed = client.post(f"/p/{project.slug}/alerts/channels/{channel.pk}/key/").content.decode()
    assert key not in renewed
    assert secrets.open_secret(channel, "signing_key").reveal() in renewed


def test_secrets_of_channels_get_other_master_keys_and_a_moved_one_does_not_open(project: Any) -> None:
    first, second = (
        make_webhook(project, "https://one.example.org/"),
        make_webhook(project, "https://two.example.org/"),
    )
    before = key_ring.ring().first.id
    done = key_ring.rotate(retire=True)
    assert (done.rewrapped, done.retired) == (4, (before,))
    assert secrets.open_secret(first, "url").reveal() == "https://one.example.org/"
    row, other = (ChannelSecret.objects.get(channel=one, field="url") for one in (first, second))
    row.wrapped_key, row.ciphertext = other.wrapped_key, other.ciphertext
    row.save()
    with pytest.raises(CannotOpen):
        secrets.open_secret(first, "url")


def test_a_form_says_what_is_wrong_and_stores_nothing(client: Client, project: Any) -> None:
    path = f"/p/{project.slug}/alerts/channels/new/"
    for way, given, words in (
        ("webhook", {"name": "x", "url": "https://127.0.0.1/"}, "private network"),
        ("webhook", {"name": "x", "url": "http://example.org/"}, "by https only"),
        ("email", {"name": "x", "addresses": "ada@example.org, nobody"}, "nobody is no e-mail address"),
        ("chat", {"name": "x", "url": "https://example.org/hook"}, "no address of Slack"),
        ("chat", {"name": "x", "url": "json://127.0.0.1:99/"}, "a self-hosted server"),
    ):
        answer = client.post(f"{path}{way}/", given)
        assert answer.status_code == 422
        assert words in answer.content.decode(), way
    assert not Channel.objects.filter(built_in=False).exists()


def test_the_built_in_channel_can_be_turned_off_and_not_taken_away(client: Client, project: Any) -> None:
    channel = services.built_in_channel(project.pk)
    path = f"/p/{project.slug}/alerts/channels/{channel.pk}/"
    client.post(f"{path}remove/")
    client.post(f"{path}change/", {"kinds": ["budget"], "name": "Mine"})
    channel.refresh_from_db()
    assert (channel.on, channel.name) == (False, services.BUILT_IN_NAME)
    make_alert(project)
    assert not Delivery.objects.exists()
