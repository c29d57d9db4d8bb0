"""Connections by the API: secrets go in and never come out; set-ups that really happen, in an emulated account."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from cloud.accounts.connections import AwsKeys
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from tests.factories import make_connection, make_project, make_user
from tests.members import add_member
from tests.webapp.api_callers import ApiCaller
from tests.webapp.connections.connected import AZURE_IDS, KEYS, SECRET, using
from webapp.api.models import Deed
from webapp.celery import app as celery_app
from webapp.connections import account_setup, decrypt
from webapp.connections.models import Connection, SealedSecret, SetUp

pytestmark = pytest.mark.django_db
NEW = {"kind": "aws_keys", "name": "Lab", "region": "us-east-1"}


@pytest.fixture(autouse=True)
def _keys_of_this_test(settings: Any, tmp_path: Path) -> None:
    settings.STARLING_DATA = tmp_path
    settings.STARLING_MASTER_KEYS = []
    settings.STARLING_AWS_PRINCIPAL = "arn:aws:iam::999988887777:role/starling"


@pytest.fixture(autouse=True)
def worker_requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sent: list[str] = []
    monkeypatch.setattr(celery_app, "send_task", lambda name, args: sent.append(name))
    return sent


@pytest.fixture
def project() -> Any:
    return make_project(make_user())


@pytest.fixture
def call(project: Any) -> ApiCaller:
    return ApiCaller(project.people.get())


def _base(project: Any, *more: str) -> str:
    return "/".join(("", "projects", project.slug, "connections", *more))


def test_a_secret_goes_in_and_never_comes_out(
    call: ApiCaller,
    project: Any,
    caplog: pytest.LogCaptureFixture,
    worker_requests: list[str],
    django_capture_on_commit_callbacks: Any,
) -> None:
    caplog.set_level(logging.DEBUG)
    with django_capture_on_commit_callbacks(execute=True):
        made = call.post(_base(project), {**NEW, "identity": KEYS})
    assert made.status_code == 201, made.content
    connection = Connection.objects.get()
    assert worker_requests == ["webapp.connections.tasks.test_connection"]
    assert decrypt.secret(connection, "secret_access_key").reveal() == SECRET
    body = made.json()["identity"]
    assert (made.json()["test"], body["secret_hint"]) == ("asked", "LAST")
    assert body["access_key_id"] == KEYS["access_key_id"]
    answers = [
        made,
        call.post(_base(project), {**NEW, "identity": KEYS}),  # the name is taken
        call.get(_base(project)),
        call.get(_base(project, connection.pk)),
        call.get(_base(project, connection.pk, "policies")),
        call.get(_base(project, connection.pk, "set-up")),
        call("PUT", _base(project, connection.pk, "identity"), KEYS),
        call("PUT", _base(project, connection.pk, "identity"), json.dumps(KEYS)[:-1].encode()),  # cut off
    ]
    assert [one.status_code for one in answers] == [201, 409, 200, 200, 200, 200, 202, 400]
    for place in (
        *(one.content.decode() for one in answers),
        caplog.text,
        json.dumps(list(Deed.objects.values("what"))),
    ):
        assert SECRET not in place
    row = SealedSecret.objects.get()
    assert SECRET.encode() not in bytes(row.ciphertext) + bytes(row.wrapped_key)


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        ({**KEYS, "access_key_id": "ASIAABCDEFGHIJKLMNOP"}, "temporary"),
        ({**KEYS, "access_key_id": SECRET}, "capital letters"),
        ({**KEYS, "secret_access_key": f"two words {SECRET}"}, "space"),
        ({**KEYS, "secret_access_key": SECRET * 200}, "secret_access_key must be"),
        ({**KEYS, "secret_access_key": [SECRET]}, "secret_access_key must be"),
        ({**KEYS, "access_key_id": SECRET * 20}, "access_key_id must be"),
        ({"access_key_id": KEYS["access_key_id"]}, "field is required"),
        ({**KEYS, "client_secret": SECRET}, "client_secret does"),
        (SECRET, "table of fields"),
    ],
)
def test_a_refusal_repeats_nothing_of_what_was_sent(
    identity: Any, words: str, call: ApiCaller, project: Any, caplog: pytest.LogCaptureFixture
) -> None:
    connection = make_connection(project, secret="")
    refusals = [
        call("PUT", _base(project, connection.pk, "identity"), identity),
        call.post(_base(project), {**NEW, "identity": identity}),
    ]
    for refused in refusals:
        assert refused.status_code == 422
        assert words in refused.json()["why"]
        assert SECRET[:12] not in refused.content.decode() + caplog.text
    assert not SealedSecret.objects.exists()
    assert Connection.objects.count() == 1, "a connection was made without its secret"


def test_another_identity_is_whole_and_voids_the_test(call: ApiCaller, project: Any) -> None:
    connection = make_connection(project, secret=SECRET)
    Connection.objects.filter(pk=connection.pk).update(test_report={"checks": []}, account_id="1" * 12)
    seen = call.get(_base(project, connection.pk))
    same = call.get(_base(project, connection.pk), If_None_Match=seen.headers["ETag"])
    assert (same.status_code, same.content) == (304, b"")
    other = {"access_key_id": "AKIAZZZZZZZZZZZZZZZZ", "secret_access_key": "another-secret-of-some-length"}
    body = call("PUT", _base(project, connection.pk, "identity"), other).json()
    assert (body["account"], body["report"]) == ("", None)
    assert body["identity"]["access_key_id"] == other["access_key_id"]
    editor = make_user()
    add_member(project, editor.email, "editor")
    assert ApiCaller(editor).get(_base(project, connection.pk)).json()["identity"] is None
    assert decrypt.secret(connection, "secret_access_key").reveal() == other["secret_access_key"]


def test_a_role_is_made_with_the_external_id_that_is_shown(call: ApiCaller, project: Any) -> None:
    body = call.post(_base(project), {**NEW, "kind": "aws_role"}).json()
    assert (body["state"], body["identity"]) == ("Not set up", None)
    untested = call.post(_base(project, body["id"], "test"))
    assert untested.status_code == 409
    assert "nothing to test" in untested.json()["why"]
    address = _base(project, body["id"], "policies")
    policies = {one["key"]: one["document"] for one in call.get(address).json()}
    assert body["external_id"] in json.dumps(policies["trust"])
    role = {"role_arn": "arn:aws:iam::123456789012:role/starling-dashboard"}
    named = call("PUT", _base(project, body["id"], "identity"), role).json()["identity"]
    assert named["role_arn"] == role["role_arn"]


def test_azure_needs_its_place_and_its_ids(call: ApiCaller, project: Any) -> None:
    azure = {"kind": "azure_principal", "name": "Group", "region": "westeurope"}
    assert "Subscription ID" in call.post(_base(project), azure).json()["why"]
    place = {"subscription_id": "33333333-0000-0000-0000-000000000000", "resource_group": "starling"}
    made = call.post(
        _base(project), {**azure, **place, "identity": {**AZURE_IDS, "client_secret": "v~alue" * 5}}
    )
    assert made.status_code == 201
    assert made.json()["identity"]["tenant_id"] == AZURE_IDS["tenant_id"].lower()
    assert "subscription_id does not" in call.post(_base(project), {**NEW, **place}).json()["why"]


def test_what_a_job_needs_stays(call: ApiCaller, project: Any) -> None:
    connection = make_connection(project)
    using(connection)
    refused = call("DELETE", _base(project, connection.pk))
    assert refused.status_code == 409
    assert "needed by Hopper" in refused.json()["why"]
    assert call.get(_base(project, connection.pk)).json()["jobs"] == 1
    assert "needed by Hopper" in call("DELETE", _base(project, connection.pk, "set-up")).json()["why"]


def test_an_account_is_set_up_and_cleared(
    call: ApiCaller, project: Any, account: tuple[AwsEmulator, DemoAccount], aws: AwsEmulator
) -> None:
    keys = account[1].by_keys.access
    assert isinstance(keys, AwsKeys)
    identity = {"access_key_id": keys.access_key_id, "secret_access_key": keys.secret_access_key}
    there = call.post(_base(project), {**NEW, "identity": identity}).json()["id"]
    address = _base(project, there, "set-up")
    assert call.get(address).json()["state"] == "never"
    assert "image does not" in call.post(address, {"image": "r.example/a:1"}).json()["why"]
    started = call.post(address, {"memory_mb": 1024})
    assert (started.status_code, started.json()["state"]) == (202, "asked")
    assert "already in progress" in call.post(address, {"memory_mb": 2048}).json()["why"]
    account_setup.run(there, SetUp.objects.get().number)
    body = call.get(address).json()
    assert (body["state"], body["ready"], body["ready_mb"]) == ("done", True, [1024])
    assert {one["state"] for one in body["steps"]} <= {"done", "made"}
    assert len(aws.functions.alive()) == 1
    assert call("DELETE", address).status_code == 202
    account_setup.run(there, SetUp.objects.get().number)
    assert (call.get(address).json()["ready"], aws.functions.alive()) == (False, [])
    assert call("DELETE", _base(project, there)).status_code == 204
    assert not SealedSecret.objects.exists()
