"""Presigned addresses sent to the emulator, whatever host they name: what is signed counts, not what resolves."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPMessage
from urllib.parse import urlsplit

from emulator.aws.server import AwsEmulator


def get(aws: AwsEmulator, url: str) -> tuple[int, HTTPMessage, bytes]:
    """Return status, headers and body of the one answer: no redirect is followed."""
    sent, to = urlsplit(url), urlsplit(aws.endpoint)
    connection = HTTPConnection(to.hostname or "", to.port, timeout=20)
    try:
        connection.request("GET", f"{sent.path}?{sent.query}", headers={"Host": sent.netloc})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()
