"""Addresses that people give for chat and webhooks open no file here and no connection to this network.

Seen where it happens: a listener on this machine counts who comes, and every file and socket that Python opens is
written down.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.factories import make_alert, make_project
from tests.own_network import OwnNetwork, own_network
from webapp.alerts import channels, secrets
from webapp.alerts.message import AlertMessage, message_of
from webapp.alerts.models import Channel
from webapp.alerts.senders import chat, webhook
from webapp.connections.sealing import Secret
from webapp.http import safe_http

pytestmark = pytest.mark.django_db

SLACK = "slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX/#ops"
SLACK_WEB = "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
DISCORD = "discord://123456789/abcDEFghi/"
DISCORD_WEB = "https://discord.com/api/webhooks/123456789/abcDEFghi"
TEAMS = "workflows://prod-15.uksouth.logic.azure.com/3XXX5/iXXXU/"
TEAMS_WEB = (
    "https://prod-15.uksouth.logic.azure.com:443/workflows/3XXX5/triggers/manual/paths/invoke"
    "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=iXXXU"
)
TELEGRAM = "tgram://123456789:abcdefghijklmnopqrstuvwxyzABCDEFGHI/12315544/"

FILES = (
    SLACK + "?template={file}",
    SLACK + "?Template={file}",
    SLACK + "?TEMPLATE=file://{file}",
    SLACK + "?%74emplate={file}",
    SLACK + "?t%65mpl%61te=%66ile://{file}",
    SLACK + "?%20template={file}",
    SLACK + "?template%20={file}",
    SLACK + "?+template={file}&template={file}",
    SLACK + "?footer=no;template={file}",
    SLACK + "?template=&template={file}",
    SLACK_WEB + "?template={file}",
    SLACK_WEB + "?tEmPlAtE=FILE://{file}",
    SLACK_WEB + "?%2574emplate={file}&template={file}",
    DISCORD + "?template={file}",
    DISCORD_WEB + "?template={file}&:name=value",
    DISCORD_WEB + "?%54emplate={file}",
    TEAMS + "?template={file}",
    TEAMS_WEB + "&template={file}",
    TEAMS_WEB + "&TEMPLATE=file%3A%2F%2F{file}",
    TELEGRAM + "?template={file}",
    TELEGRAM + "?content=photo&image=yes&template={file}",
    "json://127.0.0.1:{port}/?attach={file}",
    "file://{file}",
)
"""Chat addresses that would have a file of this machine read."""

NETWORKS = (
    SLACK + "?template=http://127.0.0.1:{port}/",
    SLACK + "?template=http%3A%2F%2F127.1%3A{port}%2F",
    SLACK + "?Template=http://localhost:{port}/latest/meta-data/",
    SLACK_WEB + "?template=http://2130706433:{port}/",
    SLACK_WEB + "?template=http://0x7f.1:{port}/",
    DISCORD + "?template=http://[::1]:{port}/",
    DISCORD_WEB + "?template=https://127.0.0.1:{port}/%3Fverify=no",
    DISCORD_WEB + "?%74emplate=http://[::ffff:127.0.0.1]:{port}/",
    TEAMS + "?template=http://own.example.org:{port}/",
    TEAMS_WEB + "&template=http://127.0.0.1:{port}/",
    TELEGRAM + "?template=http://127.0.0.1:{port}/",
    "workflows://127.0.0.1:{port}/WORKFLOW/SIGNATURE/",
    "workflows://logic.azure.com.example.org:{port}/WORKFLOW/SIGNATURE/",
    "json://127.0.0.1:{port}/",
    "jsons://[::1]:{port}/",
    "form://2130706433:{port}/",
    "mmost://localhost:{port}/token",
    "rockets://user:pass@127.1:{port}/#room",
    "gotify://127.0.0.1:{port}/token",
    "xml://127.0.0.1:{port}/",
    "ntfy://127.0.0.1:{port}/topic",
    "apprise://127.0.0.1:{port}/token",
    "mailto://user:pass@127.0.0.1:{port}?smtp=127.0.0.1",
)
"""Chat addresses that would have this network asked."""

HONEST = (SLACK, SLACK_WEB, DISCORD, DISCORD_WEB, TEAMS, TEAMS_WEB, TELEGRAM)
"""Addresses as services give them out. Their names are made to lead here: rebinding, or a name service that lies."""

WEBHOOKS = (
    "https://127.0.0.1:{port}/",
    "http://127.1:{port}/",
    "https://2130706433:{port}/",
    "https://0177.0.0.1:{port}/",
    "https://localhost:{port}/",
    "https://[::1]:{port}/",
    "https://[::ffff:127.0.0.1]:{port}/",
    "https://[::ffff:7f00:1]:{port}/",
    "https://[::127.0.0.1]:{port}/",
    "https://[64:ff9b::127.0.0.1]:{port}/",
    "https://[64:ff9b:1::7f00:1]:{port}/",
    "https://[2002:7f00:1::]:{port}/",
    "https://[2001:0:7f00:1::80ff:fffe]:{port}/",
    "https://[fec0::1]:{port}/",
    "https://[fe80::1%25lo]:{port}/",
    "https://[2606:4700::5efe:7f00:1]:{port}/",
    "https://192.88.99.1:{port}/",
    "https://own.example.org:{port}/",
    "https://flips.example.org:{port}/",
)
"""Webhook addresses that lead here, or would by a translator or a tunnel."""


class Hostile(NamedTuple):
    network: OwnNetwork
    secret: Path
    message: AlertMessage
    project: Any

    def address(self, template: str) -> str:
        return template.replace("{file}", str(self.secret)).replace("{port}", str(self.network.port))


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Hostile]:
    """A secret that is a good template, something to tell, and a network in which both would show."""
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"text": "t0p-s3cret", "content": "t0p-s3cret", "blocks": []}))
    project = make_project(name="Walking")
    alert = make_alert(project, sentence="Hopper is done.")
    message = message_of(alert.deliveries.get())
    chat.notifier(SLACK)  # loads its library, which reads many files
    with own_network() as network:
        yield Hostile(network, secret, message, project)


@pytest.fixture
def here(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name leads to this machine's listener, whatever port was asked for; numbers stay numbers."""
    truth = socket.getaddrinfo

    def getaddrinfo(host: str, port: Any, *more: Any, **given: Any) -> list[Any]:
        try:
            return truth(host, port, *more, **(given | {"flags": socket.AI_NUMERICHOST}))
        except OSError:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", hostile.network.port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def _stored(project: Any, way: str, address: str) -> Channel:
    """A channel that was stored before its address would have been refused."""
    channel = Channel.objects.create(project=project, way=way, name="Old", created_at=project.created_at)
    secrets.seal_secret(channel, "url", Secret(address))
    if way == "webhook":
        secrets.seal_secret(channel, "signing_key", Secret("whsec_of_a_test"))
    return channel


def _require_nothing_reached(hostile: Hostile, what: str) -> None:
    assert hostile.network.connections() == 0, what
    assert str(hostile.secret) not in hostile.network.opened, what
    own = [address for address in hostile.network.connected if not safe_http.is_public(address)]
    assert own == [], what


@pytest.mark.parametrize("template", FILES + NETWORKS)
def test_a_chat_address_with_more_in_it_reaches_nothing(template: str, hostile: Hostile, here: None) -> None:
    address = hostile.address(template)
    outcome = chat.send(_stored(hostile.project, "chat", address), hostile.message)
    _require_nothing_reached(hostile, address)
    assert (outcome.sent, outcome.again) == (False, False)
    with pytest.raises(channels.ChannelRefused):
        channels.add_chat(project=hostile.project, name="Team", url=Secret(address))
    _require_nothing_reached(hostile, address)


@pytest.mark.parametrize("address", HONEST)
def test_a_chat_service_whose_name_leads_here_is_not_spoken_to(
    address: str, hostile: Hostile, here: None
) -> None:
    channel = channels.add_chat(project=hostile.project, name="Team", url=Secret(address))
    outcome = chat.send(channel, hostile.message)
    assert hostile.network.connections() == 0
    assert not outcome.sent
    assert "private network" in outcome.words


@pytest.mark.parametrize("template", WEBHOOKS)
def test_a_webhook_that_leads_here_reaches_nothing(template: str, hostile: Hostile, here: None) -> None:
    address = hostile.address(template)
    outcome = webhook.send(_stored(hostile.project, "webhook", address), hostile.message)
    _require_nothing_reached(hostile, address)
    assert not outcome.sent
    with pytest.raises(channels.ChannelRefused):
        channels.add_webhook(project=hostile.project, name="Ops", url=Secret(address))
