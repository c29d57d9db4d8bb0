"""Uploads that are no proper multipart/form-data are refused with what to do, and are no fault of the site."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.webapp.api.test_doors import Scene, operations
from tests.webapp.api_callers import ApiCaller

pytestmark = pytest.mark.django_db

WHOLE = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\na,b\r\n--b--\r\n'
MALFORMED: dict[str, tuple[str, bytes]] = {
    "no boundary": ("multipart/form-data", WHOLE),
    "an empty boundary": ("multipart/form-data; boundary=", WHOLE),
    "no ASCII boundary": ("multipart/form-data; boundary=b\u00e9", WHOLE),
    "a long boundary": (f"multipart/form-data; boundary={'b' * 300}", WHOLE),
    "another boundary": ("multipart/form-data; boundary=c", WHOLE),
    "cut off": ("multipart/form-data; boundary=b", WHOLE[:-20]),
    "cut in headers": ("multipart/form-data; boundary=b", WHOLE[:30]),
    "empty": ("multipart/form-data; boundary=b", b""),
    "no base64": (
        "multipart/form-data; boundary=b",
        WHOLE.replace(b"\r\n\r\na,b", b"\r\nContent-Transfer-Encoding: base64\r\n\r\n!\xff?"),
    ),
    "broken base64": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="x"\r\nContent-Transfer-Encoding: base64\r\n\r\na\r\n--b--\r\n',
    ),
    "too many fields": (
        "multipart/form-data; boundary=b",
        b"".join(b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n' for _ in range(2_000))
        + b"--b--\r\n",
    ),
    "too many files": ("multipart/form-data; boundary=b", WHOLE[: -len(b"--b--\r\n")] * 200 + b"--b--\r\n"),
    "an unknown charset": ("multipart/form-data; boundary=b; charset=no-such", WHOLE),
    "JSON": ("application/json", b'{"file": "a,b"}'),
    "JSON, unknown charset": ("application/json; charset=no-such", b"{}"),
    "a form": ("application/x-www-form-urlencoded", b"file=a"),
    "form, unknown charset": ("application/x-www-form-urlencoded; charset=no-such", b"file=a"),
}
TAKEN = {"an unknown charset"}
"""Files have no charset: an unknown one changes nothing."""


@pytest.fixture(scope="module")
def scene(module_rows: None) -> Scene:
    return Scene()


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_upload_is_refused(name: str, scene: Scene, settings: Any) -> None:
    kind, body = MALFORMED[name]
    caller = ApiCaller(scene.people["owner"])
    client = Client(raise_request_exception=True)
    answers = {}
    for one in operations().values():
        if one.method in ("POST", "PUT") and (one.body or one.path.endswith(("/datasets", "/bills"))):
            answer = client.generic(
                one.method,
                scene.address(one.path),
                body,
                content_type=kind,
                headers={"Authorization": f"Bearer {caller.key}"},
            )
            answers[one.id] = answer
    assert len(answers) > 40
    faults = {one: found.content for one, found in answers.items() if found.status_code >= 500}
    assert faults == {}
    uploads = [answers["upload_data_set"], answers["upload_bill"]]
    if name not in TAKEN:
        assert {one.status_code for one in uploads} <= {400, 422}, [one.content for one in uploads]
        for one in uploads:
            problem = one.json()
            assert problem["what"]
            assert problem["why"]
            assert problem["fix"]
