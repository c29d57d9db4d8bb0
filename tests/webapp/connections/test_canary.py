"""A secret is planted, taken through everything that is done with it, and then looked for everywhere.

The places: pages, logs at their most talkative, reports of exceptions with debugging on and off, the database's file,
messages in Redis, this process's and its children's environments. In the forms in which it could have been written.
"""

import base64
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import redis
from django.conf import settings as django_settings
from django.core import mail, serializers
from django.db import connection as database
from django.test import Client, RequestFactory
from django.utils.html import escape
from django.views.debug import ExceptionReporter

from cloud.accounts.provision.permissions import SHARED_PREFIX
from cloud.accounts.provision.policies import AwsScope, aws_policy
from emulator.aws.account import EmulatedAccount, Key, Policy
from emulator.aws.server import AwsEmulator
from tests.factories import make_connection, make_project, make_user
from tests.signed_in import sign_in
from tests.webapp.spoiled_database import failing_at
from training.engine.child_variables import clean_variables
from webapp.celery import app as celery_app
from webapp.connections import connection_check, decrypt, services
from webapp.connections.models import CheckState, Connection, SealedSecret
from webapp.connections.sealing import Secret

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "canary/Zq7+VxW3/mK9pLr2TnB8yQe5Hc4Jd6Fg1Us0"
KEY_ID = "AKIACANARYCANARY1234"
REGION = "eu-central-1"


def _forms(secret: str) -> set[bytes]:
    """The ways in which a text turns up in files and on wires."""
    raw = secret.encode()
    texts = {
        secret,
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        escape(secret),
        json.dumps(secret)[1:-1],
    }
    texts |= {secret.replace("/", "\\/"), raw.hex(), raw.hex().upper(), repr(secret)[1:-1], secret[::-1]}
    encoded = {
        base64.b64encode(raw),
        base64.urlsafe_b64encode(raw),
        secret.encode("utf-16-le"),
        secret.encode("utf-16-be"),
    }
    # Within a longer text, base64 begins at any of three places.
    encoded |= {base64.b64encode(b"_" * shift + raw)[4:-4] for shift in (1, 2)}
    return encoded | {text.encode() for text in texts}


def _assert_absent(places: dict[str, bytes], *secrets: str) -> None:
    for name, content in places.items():
        for secret in secrets:
            found = [form for form in _forms(secret) if form in content]
            assert not found, f"a secret lies in {name}"


def test_the_search_finds_what_is_there() -> None:
    for hidden in (
        CANARY.encode(),
        base64.b64encode(b"ab" + CANARY.encode() + b"cd"),
        CANARY.encode().hex().encode(),
    ):
        with pytest.raises(AssertionError, match="lies in here"):
            _assert_absent({"here": b"before " + hidden + b" after"}, CANARY)


@pytest.fixture
def aws() -> Iterator[AwsEmulator]:
    """An account whose user has the canary for a secret."""
    account = EmulatedAccount()
    scope = AwsScope(REGION, account.id, f"{SHARED_PREFIX}*")
    user = account.add_user("starling-dashboard", Policy.of(aws_policy(scope)))
    account.keys[KEY_ID] = Key(KEY_ID, CANARY, user.principal)
    with AwsEmulator(account=account, region=REGION) as emulator:
        yield emulator


@pytest.fixture
def settings_here(settings: Any, aws: AwsEmulator) -> Any:
    settings.STARLING_AWS_ENDPOINT = aws.endpoint
    return settings


class _Everything(logging.Handler):
    """What any logger was told, with exceptions and arguments."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.setFormatter(logging.Formatter())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += [self.format(record), repr(record.args), repr(record.__dict__)]


@pytest.fixture
def log() -> Iterator[_Everything]:
    """The root logger at its most talkative; the levels of single loggers stay as the settings say."""
    handler, root = _Everything(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def _content(paths: Iterable[Path]) -> bytes:
    """Read by another process: closing a file of SQLite's in this one takes the locks on it away."""
    # A file that went away meanwhile is none to look into.
    content = subprocess.run(["cat", *map(str, paths)], capture_output=True, check=False).stdout
    assert content
    return content


def _database() -> bytes:
    """The files of SQLite with its log; the rows of anything else."""
    if database.vendor == "sqlite":
        path = Path(str(database.settings_dict["NAME"]))
        return _content(path.parent.glob(f"{path.name}*"))
    with database.cursor() as cursor:
        tables = database.introspection.table_names(cursor)
        rows = []
        for table in tables:
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += [
                bytes(cell) if isinstance(cell, memoryview) else str(cell).encode()
                for row in cursor
                for cell in row
            ]
    return b"\n".join(rows)


def _redis(url: str) -> bytes:
    """Every value that Redis holds: queues of messages above all."""
    with redis.Redis.from_url(url) as client:
        return b"\n".join(client.dump(key) or b"" for key in client.scan_iter()) + b"\n".join(
            member
            for key in client.scan_iter()
            if client.type(key) == b"list"
            for member in client.lrange(key, 0, -1)
        )


class _Browser:
    """A signed-in owner whose every answer is kept."""

    def __init__(self, project: Any, person: Any) -> None:
        self.client = Client(raise_request_exception=False)
        sign_in(self.client, person)
        self.base = f"/p/{project.slug}/clouds/"
        self.pages: list[bytes] = []

    def get(self, path: str = "") -> bytes:
        return self._kept(self.client.get(self.base + path))

    def post(self, path: str, **data: str) -> bytes:
        return self._kept(self.client.post(self.base + path, data))

    def _kept(self, answer: Any) -> bytes:
        self.pages.append(answer.content + repr(answer.headers).encode())
        return bytes(answer.content)


def test_the_canary_is_found_nowhere(
    aws: AwsEmulator, settings_here: Any, valkey: str, log: _Everything, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = make_user()
    project = make_project(person)
    browser = _Browser(project, person)
    connection = make_connection(project, secret="")
    identity = f"{connection.pk}/identity/"

    # Wrong forms, the secret in the wrong field among them; then the right one, which tells the worker.
    browser.post(identity, access_key_id=CANARY, secret_access_key=CANARY)
    browser.post(identity, access_key_id=KEY_ID, secret_access_key=f"{CANARY} {CANARY}")
    browser.post(identity, access_key_id="", secret_access_key=CANARY)
    browser.post(identity, access_key_id=KEY_ID, secret_access_key=CANARY)
    connection.refresh_from_db()
    assert connection.test_state == CheckState.REQUESTED
    messages = _redis(valkey)
    assert connection.pk.encode() in messages

    # What the worker does with the message: a test that goes well, and one against keys that changed meanwhile.
    connection_check.run_test(connection.pk, connection.test_no)
    connection.refresh_from_db()
    assert connection.test_report is not None
    assert connection.test_report["ok"], connection.test_report
    aws.account.keys[KEY_ID] = Key(KEY_ID, "another", aws.account.keys[KEY_ID].principal)
    browser.post(f"{connection.pk}/test/")
    connection.refresh_from_db()
    connection_check.run_test(connection.pk, connection.test_no)
    for path in ("", f"{connection.pk}/", f"{connection.pk}/report", f"{connection.pk}/files/policy"):
        browser.get(path)

    # Something breaks while the secret is in hand, with debugging on and off.
    for debug in (True, False):
        settings_here.DEBUG = debug
        with failing_at('UPDATE "credentials_sealedsecret"', RuntimeError("something broke")):
            page = browser.post(identity, access_key_id=KEY_ID, secret_access_key=CANARY)
        assert (b"something broke" in page) is debug
    assert any("something broke" in line for line in log.lines)

    held = "\n".join(
        repr(one)
        for one in (
            connection,
            SealedSecret.objects.get(),
            decrypt.open_connection(project.pk, connection.pk),
        )
    )
    exported = serializers.serialize("json", [*Connection.objects.all(), *SealedSecret.objects.all()])
    _assert_absent(
        {
            "a page": b"\n".join(browser.pages),
            "the log": "\n".join(log.lines).encode(),
            "the database": _database(),
            "Redis": messages + _redis(valkey),
            "a repr": held.encode(),
            "an export": exported.encode(),
            "the environment": repr(dict(os.environ)).encode(),
            "a worker's environment": repr(clean_variables()).encode(),
            "letters": "".join(letter.body for letter in mail.outbox).encode(),
            "the folder of the installation": _folder(),
        },
        CANARY,
    )


def _folder() -> bytes:
    return _content(path for path in Path(django_settings.STARLING_DATA).rglob("*") if path.is_file())


def test_a_roles_session_credentials_are_found_nowhere(
    settings_here: Any, aws: AwsEmulator, log: _Everything, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No one typed these in, and they open the account all the same, for an hour."""
    person = make_user()
    connection = make_connection(make_project(person), kind="aws_role")
    ours = aws.account.add_user(
        "us", Policy.of({"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
    )
    scope = AwsScope(REGION, aws.account.id, connection.prefix)
    role = aws.account.add_role(
        scope.own_role_name,
        Policy.of(aws_policy(scope)),
        trusted=ours.principal.arn,
        external_id=connection.external_id,
    )
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ours.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", ours.secret)
    connection = services.set_identity(connection=connection, plain={"role_arn": role.arn}, secrets={})
    report = connection_check.report_on(connection)
    assert report["ok"], report
    sessions = [key for key in aws.account.keys.values() if key.token]
    assert sessions
    secrets = [secret for key in sessions for secret in (key.secret, key.token or "")]
    _assert_absent(
        {
            "the log": "\n".join(log.lines).encode(),
            "the report": json.dumps(report).encode(),
            "the database": _database(),
        },
        *secrets,
        ours.secret,
    )


def test_reports_of_exceptions_hide_what_was_posted_and_held(settings: Any) -> None:
    """As a debugging page and as the text that is logged or mailed."""
    request = RequestFactory().post("/", {"secret_access_key": CANARY})

    def holding(plaintext: str) -> None:
        raise RuntimeError("it broke")

    for debug in (True, False):
        settings.DEBUG = debug
        try:
            holding(CANARY)
        except RuntimeError:
            reporter = ExceptionReporter(request, *sys.exc_info())
        report = reporter.get_traceback_html() + reporter.get_traceback_text()
        assert "it broke" in report
        assert "holding" in report
        _assert_absent({"a report": report.encode()}, CANARY)


def test_a_secret_cannot_be_sent_as_a_message() -> None:
    with pytest.raises(Exception, match="Secret"):
        celery_app.send_task("webapp.connections.tasks.test_connection", args=[Secret(CANARY), 1])
