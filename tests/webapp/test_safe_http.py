"""Addresses that people type in are no way into this network, whatever they are dressed as."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies

from rig.servers import reserved_port
from tests.receivers import WebReceiver, web_receiver
from webapp.http import safe_http


@pytest.fixture
def receiver() -> Iterator[WebReceiver]:
    with web_receiver() as one:
        yield one


def _answers(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """What the name service says from now on, look-up by look-up; the names that were asked for."""
    left, looked_up = list(answers), []

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        looked_up.append(host)
        now = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in now]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return looked_up


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("100.100.100.200", "168.63.129.16", "192.0.0.192", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
        *("2002:7f00:1::", "2001:0:1::1", "2001:db8::1", "192.0.2.1", "198.18.0.1"),
        *("fec0::1", "feff:ffff::1", "192.88.99.1", "192.88.99.255", "64:ff9b::808:808", "64:ff9b:1::a00:1"),
        *("2002:808:808::1", "2001:0:808:808::1", "::808:808", "::ffff:0:7f00:1", "2606:4700::5efe:a00:1"),
        *("2606:4700::200:5efe:7f00:1", "4000::1", "100::1", "5f00::1", "3fff::1"),
    ],
)
def test_no_address_of_a_private_network_is_public(address: str) -> None:
    assert not safe_http.is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "192.88.98.1", "192.88.100.1", "2606:4700:4700::1111", "::ffff:8.8.8.8"]
)
def test_the_internet_is_public(address: str) -> None:
    assert safe_http.is_public(address)


@pytest.mark.parametrize(
    "dressed",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "localhost",
        "localhost.",
        "[::1]",
        "[::ffff:7f00:1]",
    ],
)
def test_this_machine_is_refused_in_every_dress_and_hears_nothing(
    dressed: str, receiver: WebReceiver
) -> None:
    for scheme in ("https", "http"):
        with pytest.raises(safe_http.AddressRefused):
            safe_http.post(f"{scheme}://{dressed}:{receiver.port}/hook", b"{}", {})
    assert receiver.posts == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://example.org/", "no web address"),
        ("file:///etc/passwd", "no web address"),
        ("https://", "no web address"),
        ("https://example.org:99999/", "no web address"),
        ("nonsense", "no web address"),
        ("http://example.org/", "by https only"),
        ("https://me:secret@example.org/", "name or password"),
        ("https://example.org/ü", "letters in it"),
    ],
)
def test_what_is_no_good_address_is_refused_in_words(url: str, words: str) -> None:
    with pytest.raises(safe_http.AddressRefused, match=words):
        safe_http.target_of(url)


def test_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    _answers(monkeypatch, ["93.184.215.14", "10.0.0.7"])
    with pytest.raises(safe_http.AddressRefused, match="private network"):
        safe_http.target_of("https://mixed.example.org/")


def test_a_name_that_changes_its_mind_gains_nothing(
    monkeypatch: pytest.MonkeyPatch, receiver: WebReceiver, settings: Any
) -> None:
    """Judged while public, private a moment later: the connection goes to the address that was judged."""
    gone_to: list[Any] = []

    def create_connection(address: Any, *_: Any, **__: Any) -> Any:
        gone_to.append(address)
        raise ConnectionRefusedError

    looked_up = _answers(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])
    monkeypatch.setattr(socket, "create_connection", create_connection)
    with pytest.raises(safe_http.HostUnreachable):
        safe_http.post(f"https://flips.example.org:{receiver.port}/hook", b"{}", {})
    assert looked_up == ["flips.example.org"]
    assert gone_to == [("93.184.215.14", receiver.port)]
    with pytest.raises(safe_http.AddressRefused):
        safe_http.post(f"https://flips.example.org:{receiver.port}/hook", b"{}", {})
    assert receiver.posts == []


def test_a_name_that_no_one_knows_may_be_known_later() -> None:
    with pytest.raises(safe_http.HostUnreachable, match="looked up"):
        safe_http.target_of("https://no-such-host.invalid/")


def test_a_host_that_the_operator_named_is_reached(receiver: WebReceiver, settings: Any) -> None:
    settings.STARLING_ALERT_HOSTS = [f"127.0.0.1:{receiver.port}"]
    answer = safe_http.post(receiver.url + "?a=b", b"{}", {"X-One": "1"})
    assert answer.status == 204
    (post,) = receiver.posts
    assert (post.path, post.body, post.headers["X-One"]) == ("/hook?a=b", b"{}", "1")
    with pytest.raises(safe_http.AddressRefused):
        safe_http.post(f"http://127.0.0.1:{reserved_port()}/hook", b"{}", {})


def test_redirects_are_not_followed(receiver: WebReceiver, settings: Any) -> None:
    settings.STARLING_ALERT_HOSTS = [f"127.0.0.1:{receiver.port}"]
    receiver.status, receiver.headers = 302, {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}
    assert safe_http.post(receiver.url, b"{}", {}).status == 302
    assert [post.path for post in receiver.posts] == ["/hook"]


@pytest.mark.parametrize("drip", [False, True])
def test_a_server_that_answers_slowly_is_left(receiver: WebReceiver, settings: Any, drip: bool) -> None:
    settings.STARLING_ALERT_HOSTS = [f"127.0.0.1:{receiver.port}"]
    receiver.pause_s, receiver.drip = (0.0, True) if drip else (60.0, False)
    began = time.monotonic()
    with pytest.raises(safe_http.HostUnreachable):
        safe_http.post(receiver.url, b"{}", {}, within_s=0.3)
    assert time.monotonic() - began < 20.0


def test_no_one_there_is_said_in_words(settings: Any) -> None:
    port = reserved_port()
    settings.STARLING_ALERT_HOSTS = [f"127.0.0.1:{port}"]
    with pytest.raises(safe_http.HostUnreachable, match=f"on port {port}"):
        safe_http.post(f"http://127.0.0.1:{port}/hook", b"{}", {})


def test_a_certificate_of_somebody_else_is_not_taken(settings: Any, receiver: WebReceiver) -> None:
    settings.STARLING_ALERT_HOSTS = [f"127.0.0.1:{receiver.port}"]
    with pytest.raises(safe_http.HostUnreachable):
        safe_http.post(f"https://127.0.0.1:{receiver.port}/hook", b"{}", {})
    assert receiver.posts == []


_IPV4 = strategies.ip_addresses(v=4)


@given(_IPV4, strategies.integers(0, 2**32 - 1))
def test_an_ipv4_address_inside_an_ipv6_one_makes_it_no_more_public(inner: Any, rest: int) -> None:
    number = int(inner)
    mapped = safe_http.is_public(str(ipaddress.IPv6Address(0xFFFF << 32 | number)))
    assert mapped == safe_http.is_public(str(inner))
    wrapped = (
        number,
        0x64FF9B << 96 | number,
        0x64FF9B0001 << 80 | rest << 32 | number,
        0x2002 << 112 | number << 80 | rest,
        0x20010000 << 96 | rest << 32 | (number ^ 0xFFFFFFFF),
        0x26064700 << 96 | 0x5EFE << 32 | number,
    )
    for form in wrapped:
        assert not safe_http.is_public(str(ipaddress.IPv6Address(form)))
