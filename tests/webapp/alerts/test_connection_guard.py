"""A library that sends for us opens what its guard names, in its thread, whatever it was asked to do."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from apprise.plugins.slack import NotifySlack

from tests.figures import figures_in
from tests.own_network import OwnNetwork, own_network
from tests.receivers import web_receiver
from webapp.alerts import connection_guard
from webapp.alerts.connection_guard import Guard, NotAllowed, limit_to
from webapp.alerts.senders import chat


@pytest.fixture
def network() -> Iterator[OwnNetwork]:
    with own_network() as one:
        yield one


def _slack(template: str) -> Any:
    """What Apprise makes of an address that no one judged."""
    made = NotifySlack(
        token_a="T00000000", token_b="B00000000", token_c="X" * 24, template=template, targets=["#ops"]
    )
    made.socket_connect_timeout = made.socket_read_timeout = 0.5
    return made


def test_a_template_that_got_as_far_as_the_library_is_not_fetched(network: OwnNetwork) -> None:
    made = _slack(f"http://127.0.0.1:{network.port}/")
    with limit_to(Guard(frozenset({"hooks.slack.com"}))) as guard:
        assert not made.notify(body="x")
    assert network.connections() == 0
    (refusal,) = guard.refusals
    assert refusal.startswith("127.0.0.1 is")


def test_a_template_that_got_as_far_as_the_library_is_not_read(tmp_path: Path, network: OwnNetwork) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    made = _slack(str(secret))
    with limit_to(Guard(frozenset({"hooks.slack.com"}))):
        assert not made.notify(body="x")
        with pytest.raises(NotAllowed, match="reads no files"):
            secret.open()
    assert network.connected == [], "there is nothing to send"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST.", b"localhost"])
def test_other_names_are_not_looked_up(name: Any) -> None:
    with (
        limit_to(Guard(frozenset({"hooks.slack.com"}))),
        pytest.raises(NotAllowed, match="not a host"),
    ):
        socket.getaddrinfo(name, 443)
    for look_up in (socket.gethostbyname, socket.gethostbyname_ex):
        with limit_to(Guard()), pytest.raises(NotAllowed):
            look_up("localhost")


def test_an_own_host_that_leads_to_this_network_is_not_connected_with(network: OwnNetwork) -> None:
    guard = Guard(frozenset({"localhost"}), network.port)
    with limit_to(guard), pytest.raises(requests.ConnectionError):
        requests.get(f"http://localhost:{network.port}/", timeout=0.5)
    assert network.connections() == 0
    assert all("private network" in words for words in guard.refusals)
    assert guard.refusals


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "10.0.0.1", "0.0.0.0"])
def test_a_socket_is_judged_by_the_address_it_is_given(host: str, network: OwnNetwork) -> None:
    for connect in ("connect", "connect_ex"):
        with socket.socket() as one, limit_to(Guard(port=network.port)), pytest.raises(NotAllowed):
            getattr(one, connect)((host, network.port))
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        limit_to(Guard()),
        pytest.raises(NotAllowed),
    ):
        one.sendto(b"x", (host, 53))
    assert network.connections() == 0


def test_another_port_and_a_socket_in_a_file_are_refused(tmp_path: Path) -> None:
    with socket.socket() as one, limit_to(Guard()), pytest.raises(NotAllowed, match="Port 22 "):
        one.connect(("8.8.8.8", 22))
    path = str(tmp_path / "docker.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with socket.socket(socket.AF_UNIX) as one, limit_to(Guard()), pytest.raises(NotAllowed):
            one.connect(path)


def test_no_other_program_is_started() -> None:
    with limit_to(Guard()), pytest.raises(NotAllowed):
        subprocess.run(["true"], check=False)


def test_a_redirect_to_another_host_is_refused_where_it_is_followed(network: OwnNetwork) -> None:
    with web_receiver() as receiver:
        receiver.status, receiver.headers = 307, {"Location": f"http://127.0.0.1:{network.port}/"}
        guard = Guard(frozenset({"127.0.0.1"}), receiver.port, private_too=True)
        with limit_to(guard), contextlib.suppress(requests.RequestException):
            requests.post(receiver.url, data=b"{}", timeout=60)
        assert len(receiver.posts) == 1
    assert network.connections() == 0
    assert [figures_in(refusal) for refusal in guard.refusals] == [[str(network.port)]]


def test_certificates_are_checked_as_without_a_guard() -> None:
    with web_receiver() as receiver:
        guard = Guard(frozenset({"127.0.0.1"}), receiver.port, private_too=True)
        with limit_to(guard), pytest.raises(requests.exceptions.SSLError):
            requests.post(f"https://127.0.0.1:{receiver.port}/", timeout=60)
    assert guard.refusals == []


def test_the_guard_is_for_one_thread_and_one_block(network: OwnNetwork, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("read")
    read: list[str] = []
    with limit_to(Guard()):
        other = threading.Thread(target=lambda: read.append((tmp_path / "file").read_text()))
        other.start()
        other.join()
        with pytest.raises(NotAllowed):
            (tmp_path / "file").read_text()
    assert read == ["read"]
    with socket.create_connection(("127.0.0.1", network.port), timeout=60):
        assert network.connections() == 1


def test_every_service_has_its_hosts_or_goes_to_named_ones() -> None:
    guard = chat.guard_for(chat.notifier("slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"))
    assert "hooks.slack.com" in guard.hosts
    assert not guard.private_too
    teams = chat.guard_for(chat.notifier("workflows://prod-15.uksouth.logic.azure.com/3XXX5/iXXXU/"))
    assert teams == connection_guard.Guard(frozenset({"prod-15.uksouth.logic.azure.com"}))
