"""Who may send a bill or a table of 200 MB is known before its body is read; everyone else sends a megabyte."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import reverse

from tests.factories import make_project, make_user
from tests.members import add_member
from webapp.api.tokens import make_token, revoke_token
from webapp.asgi_handler import PageHandler
from webapp.reports.models import CloudBill
from webapp.upload_limit import UPLOADS, upload_limit

BILL_BODY_BYTES = UPLOADS["reports:hand_over_bill"].body_bytes
TABLE_BODY_BYTES = UPLOADS["datasets:upload"].body_bytes
ALL_SCOPES = ("jobs", "budget", "manage")


class Scene:
    """A project with a member in each role, and someone else's."""

    def __init__(self) -> None:
        self.owner, self.editor, self.viewer = make_user(), make_user(), make_user()
        self.project, self.other = make_project(self.owner), make_project()
        for role in ("editor", "viewer"):
            add_member(self.project, getattr(self, role).email, role)

    @property
    def page(self) -> str:
        return reverse("reports:hand_over_bill", args=[self.project.slug])

    @property
    def api(self) -> str:
        return f"/api/v1/projects/{self.project.slug}/bills"

    @property
    def data_page(self) -> str:
        return reverse("datasets:upload", args=[self.project.slug])

    @property
    def data_api(self) -> str:
        return f"/api/v1/projects/{self.project.slug}/datasets"


@pytest.fixture
def scene(db: None) -> Scene:
    return Scene()


def _allowed_bytes(address: str, *headers: tuple[bytes, bytes], method: str = "POST") -> int:
    scope = {"type": "http", "method": method, "path": address, "query_string": b"", "headers": list(headers)}
    return upload_limit(scope)


def _session(person: Any) -> tuple[bytes, bytes]:
    client = Client()
    client.force_login(person)
    return b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode()


def _token(person: Any, scopes: tuple[str, ...] = ALL_SCOPES, **options: Any) -> tuple[bytes, bytes]:
    return (
        b"authorization",
        f"Bearer {make_token(user=person, name='t', scopes=scopes, **options)[1]}".encode(),
    )


def test_an_owner_may_send_a_bill_at_its_two_addresses_and_nowhere_else(scene: Scene) -> None:
    session, token = _session(scene.owner), _token(scene.owner)
    assert _allowed_bytes(scene.page, session) == BILL_BODY_BYTES > 200_000_000
    assert _allowed_bytes(scene.api, token) == BILL_BODY_BYTES
    for address in ("/", "/nowhere/", reverse("reports:bills", args=[scene.project.slug]), f"{scene.api}/1"):
        assert _allowed_bytes(address, session, token) == 0, address
    assert _allowed_bytes(scene.page, session, method="PUT") == 0
    # Each address asks in its own way.
    assert _allowed_bytes(scene.page, token) == _allowed_bytes(scene.api, session) == 0


def test_an_editor_may_send_a_table_at_its_two_addresses_and_nowhere_else(scene: Scene) -> None:
    for person in (scene.owner, scene.editor):
        assert _allowed_bytes(scene.data_page, _session(person)) == TABLE_BODY_BYTES > 200_000_000
        assert _allowed_bytes(scene.data_api, _token(person, ("jobs",))) == TABLE_BODY_BYTES
        assert _allowed_bytes(scene.data_api, _token(person, ("manage",))) == 0
        assert (
            _allowed_bytes(scene.data_page, _token(person))
            == _allowed_bytes(scene.data_api, _session(person))
            == 0
        )
    for person in (scene.viewer, scene.other.people.first()):
        assert _allowed_bytes(scene.data_page, _session(person)) == 0
        assert _allowed_bytes(scene.data_api, _token(person)) == 0
    assert _allowed_bytes(scene.data_page) == _allowed_bytes(scene.data_api) == 0
    assert _allowed_bytes(reverse("datasets:list", args=[scene.project.slug]), _session(scene.owner)) == 0
    assert _allowed_bytes(f"{scene.data_api}/1", _token(scene.owner)) == 0


def test_no_one_else_may(scene: Scene) -> None:
    for person in (scene.editor, scene.viewer, scene.other.people.first()):
        assert _allowed_bytes(scene.page, _session(person)) == 0
        assert _allowed_bytes(scene.api, _token(person)) == 0
    assert _allowed_bytes(scene.page) == _allowed_bytes(scene.api) == 0
    assert _allowed_bytes(scene.page, (b"cookie", b"sessionid=nonsense")) == 0
    assert _allowed_bytes(scene.api, (b"authorization", b"Bearer starling_pat_nonsense")) == 0


def test_an_ended_session_and_a_token_that_may_not_are_strangers(scene: Scene) -> None:
    session = _session(scene.owner)
    scene.owner.set_password("another long password")
    scene.owner.save()
    assert _allowed_bytes(scene.page, session) == 0
    assert _allowed_bytes(scene.api, _token(scene.owner, ("jobs",))) == 0
    make_project(scene.owner)
    assert _allowed_bytes(scene.api, _token(scene.owner, project=scene.owner.projects.last())) == 0
    token, key = make_token(user=scene.owner, name="t", scopes=ALL_SCOPES)
    revoke_token(token=token)
    assert _allowed_bytes(scene.api, (b"authorization", f"Bearer {key}".encode())) == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize(("role", "status"), [("owner", 202), ("editor", 413)])
async def test_a_bill_of_two_megabytes_is_taken_from_an_owner_alone(role: str, status: int) -> None:
    scene = await sync_to_async(Scene)()
    token = await sync_to_async(_token)(getattr(scene, role))
    body = encode_multipart(BOUNDARY, {"file": _Bill()})
    kind = (b"content-type", MULTIPART_CONTENT.encode())
    size = (b"content-length", str(len(body)).encode())
    scope = {"type": "http", "method": "POST", "path": scene.api, "query_string": b"", "http_version": "1.1"}
    scope["headers"] = [(b"host", b"testserver"), token, kind, size]  # type: ignore[assignment]
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if "status" in message:
            statuses.append(message["status"])

    handler = PageHandler(upload_limit)
    try:
        await handler(scope, receive, send)
    finally:
        handler.close()
    assert statuses == [status]
    assert await sync_to_async(CloudBill.objects.count)() == (status == 202)


class _Bill:
    """A file as `encode_multipart` takes it."""

    name = "bill.csv"
    content_type = "text/csv"

    def read(self) -> bytes:
        return b"line_item_id,cost\n" + b"x,1\n" * 2**19
