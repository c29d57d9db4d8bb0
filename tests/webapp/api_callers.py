"""Programs that call the API in tests: a client with a token."""

from __future__ import annotations

import io
import json
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple
from urllib.response import addinfourl

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from client import starling as wire
from tests.factories import make_project, make_user
from webapp.api.tokens import make_token

ROOT = "/api/v1"


class Upload(NamedTuple):
    """A body that is a file, sent as `file`."""

    name: str
    content: bytes


class ApiCaller:
    """A caller with a token of `user`; without scopes named, one that may do everything."""

    def __init__(
        self,
        user: Any,
        scopes: tuple[str, ...] = ("jobs", "budget", "manage"),
        project: Any = None,
        **options: Any,
    ) -> None:
        self.token, self.key = make_token(user=user, name="test", scopes=scopes, project=project, **options)
        self._client = Client(enforce_csrf_checks=True, raise_request_exception=True)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        kind = headers.pop("Content_Type", "application/json")
        if isinstance(body, Upload):
            content, kind = encode_multipart(BOUNDARY, {"file": SimpleUploadedFile(*body)}), MULTIPART_CONTENT
        else:
            content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        all_headers = {
            "Authorization": f"Bearer {self.key}",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        address = path if path.startswith("/api/") else ROOT + path
        return self._client.generic(method, address, content, content_type=kind, headers=all_headers)

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("POST", path, body, **headers)


def answered_here(_: urllib.request.HTTPHandler, request: urllib.request.Request) -> addinfourl:
    """What urllib reads of the network: the application in this process answers the request."""
    headers = {name: value for name, value in request.header_items() if not name.startswith("Content-")}
    kind, data = request.get_header("Content-type"), request.data or b""
    content = data if isinstance(data, bytes) else b"".join(data)  # type: ignore[arg-type]
    answer = Client().generic(
        request.get_method(), request.selector, content, content_type=kind, headers=headers
    )
    content = b"".join(answer) if answer.streaming else answer.content  # type: ignore[arg-type]
    found = addinfourl(io.BytesIO(content), Message(), request.full_url, answer.status_code)
    found.msg = answer.reason_phrase  # type: ignore[attr-defined]
    return found


def use_client_here(monkeypatch: pytest.MonkeyPatch, key: str, project: Any) -> None:
    """`import starling` and the command reach `project` of the application in this process by the token `key`."""
    monkeypatch.setenv("STARLING_TOKEN", key)
    monkeypatch.setenv("STARLING_PROJECT", project.slug)
    monkeypatch.setattr(wire, "CONFIG", Path("/nowhere"))
    monkeypatch.setattr(urllib.request.HTTPHandler, "http_open", answered_here)


def project_of_client(monkeypatch: pytest.MonkeyPatch, scopes: tuple[str, ...] = ("jobs",)) -> Any:
    """A new project that `import starling` and the command reach in this process, by a token of its owner."""
    user = make_user()
    made = make_project(user)
    _, key = make_token(user=user, name="Notebook", scopes=scopes)
    use_client_here(monkeypatch, key, made)
    return made
