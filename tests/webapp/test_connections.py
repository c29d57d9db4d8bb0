"""Connections: who may do what with them, what pages show, how they are tested, and how keys are changed."""

import io
import json
import re
import stat
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection as database
from django.test import Client

from cloud.price_book import PriceBook
from cloud.provision import regions
from tests.factories import FixedClock, make_connection, make_job, make_project, make_user
from tests.servers import ROOT
from webapp.accounts.services import add_member
from webapp.credentials import documents, key_ring, opening, queries, services, testing, wording
from webapp.credentials.models import CheckState, Connection, Kind, SealedSecret
from webapp.credentials.rotation import rotate
from webapp.credentials.sealing import RowChanged, UnknownKey
from webapp.credentials.secret import Secret
from webapp.jobs.models import Job, Observed

pytestmark = pytest.mark.django_db

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYzzzzzzzzLAST"
KEYS = {"access_key_id": "AKIAABCDEFGHIJKLMNOP", "secret_access_key": SECRET}
AZURE_IDS = {
    "tenant_id": "11111111-0000-0000-0000-00000000000A",
    "client_id": "22222222-0000-0000-0000-000000000000",
}


@pytest.fixture(autouse=True)
def _keys_of_this_test(settings: Any, tmp_path: Path) -> None:
    settings.STARLING_DATA = tmp_path
    settings.STARLING_MASTER_KEYS = []
    settings.STARLING_AWS_PRINCIPAL = "arn:aws:iam::999988887777:role/starling"


@pytest.fixture
def messages_sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the worker would be told."""
    sent: list[Any] = []
    monkeypatch.setattr(testing.celery_app, "send_task", lambda name, args: sent.append((name, args)))
    return sent


@pytest.fixture
def owner() -> Any:
    return make_user()


@pytest.fixture
def project(owner: Any) -> Any:
    return make_project(owner)


@pytest.fixture
def as_owner(owner: Any, project: Any) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def _member(project: Any, role: str) -> Client:
    person = make_user()
    add_member(project, person.email, role)
    client = Client()
    client.force_login(person)
    return client


def _url(project: Any, *parts: str) -> str:
    return "/".join(("", "p", project.slug, "clouds", *parts, ""))


def _using(connection: Connection, observed: str = Observed.RUNNING, name: str = "Hopper") -> Job:
    job: Job = make_job(connection.project)
    spec = {**job.spec, "platform": {"kind": "aws_lambda", "connection": connection.pk}}
    Job.objects.filter(pk=job.pk).update(spec=spec, observed=observed, name=name)
    return job


# Making one


@pytest.mark.parametrize("kind", Kind.values)
def test_the_first_step_makes_a_connection_without_an_identity(
    kind: str, as_owner: Client, project: Any
) -> None:
    place = {"subscription_id": AZURE_IDS["client_id"], "resource_group": "starling"}
    region = "westeurope" if kind == "azure_principal" else "eu-central-1"
    answer = as_owner.post(_url(project, "new", kind), {"name": "Lab", "region": region, **place})
    connection = Connection.objects.get()
    assert answer.headers["Location"] == _url(project, connection.pk)
    assert not connection.has_identity
    assert bool(connection.external_id) == (kind == "aws_role")
    page = as_owner.get(_url(project, connection.pk)).content.decode()
    assert "Not set up" in page
    for paper in documents.papers(connection).values():
        assert paper.title in page
        file = as_owner.get(_url(project, connection.pk) + f"files/{paper.key}")
        assert json.loads(file.content) == json.loads(paper.text)
        assert paper.file_name in file.headers["Content-Disposition"]


def test_the_region_it_begins_with_has_prices(as_owner: Client, project: Any) -> None:
    for kind, cloud in (("aws_role", "aws"), ("azure_principal", "azure")):
        shown = as_owner.get(_url(project, "new", kind)).content.decode()
        (begun,) = re.findall(r'name="region" value="([^"]+)"', shown)
        assert regions.has_prices(cloud, begun, PriceBook.load())
        assert "no prices yet" in shown


def test_external_ids_are_ours_long_and_never_the_same(project: Any, owner: Any) -> None:
    ids = {
        services.create_connection(
            project=project, user=owner, kind="aws_role", name=f"n{number}", region="eu-west-1"
        ).external_id
        for number in range(20)
    }
    assert len(ids) == 20
    assert all(re.fullmatch(r"[\w+=,.@:/-]{2,1224}", one) and len(one) >= 40 for one in ids)


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        ("aws_keys", {"region": "eu-central-1.evil.example/"}, "region"),
        ("aws_keys", {"region": "frankfurt"}, "region"),
        ("aws_keys", {"name": ""}, "name"),
        ("azure_principal", {"region": "West Europe"}, "region"),
        ("azure_principal", {"subscription_id": "12"}, "subscription_id"),
        ("azure_principal", {"resource_group": "a/../b"}, "resource_group"),
        ("azure_principal", {"resource_group": "ends."}, "resource_group"),
    ],
)
def test_what_is_wrong_is_said_at_the_field(
    kind: str, data: dict[str, str], field: str, as_owner: Client, project: Any
) -> None:
    good = {
        "name": "Lab",
        "region": "westeurope" if kind == "azure_principal" else "eu-central-1",
        "subscription_id": AZURE_IDS["client_id"],
        "resource_group": "starling",
    }
    answer = as_owner.post(_url(project, "new", kind), {**good, **data})
    assert answer.status_code == 422
    assert f'id="id_{field}-problem"' in answer.content.decode()
    assert not Connection.objects.exists()


def test_a_name_is_used_once_a_project(as_owner: Client, project: Any) -> None:
    make_connection(project, name="Lab")
    make_connection(make_project(), name="Lab")
    answer = as_owner.post(_url(project, "new", "aws_role"), {"name": "Lab", "region": "eu-central-1"})
    assert answer.status_code == 422
    assert "has a connection named Lab already" in answer.content.decode()


def test_there_is_no_fourth_way(as_owner: Client, project: Any) -> None:
    assert as_owner.get(_url(project, "new", "gcp")).status_code == 404


def test_a_role_without_a_principal_to_trust_says_whom_to_ask(
    as_owner: Client, project: Any, settings: Any
) -> None:
    settings.STARLING_AWS_PRINCIPAL = ""
    connection = make_connection(project, kind="aws_role")
    page = as_owner.get(_url(project, connection.pk)).content.decode()
    assert "STARLING_AWS_PRINCIPAL" in page
    assert "sts:ExternalId" not in page


def test_the_shown_trust_policy_has_our_principal_and_this_connections_id(project: Any) -> None:
    connection = make_connection(project, kind="aws_role")
    trust = documents.papers(connection)["trust"].text
    assert connection.external_id in trust
    assert "arn:aws:iam::999988887777:role/starling" in trust


def test_policies_narrow_to_the_account_once_it_is_known(project: Any) -> None:
    connection = make_connection(project, kind="aws_role")
    assert ":eu-central-1:*:function:" in documents.papers(connection)["policy"].text
    connection.role_arn = "arn:aws:iam::123456789012:role/mine"
    text = documents.papers(connection)["policy"].text
    assert ":eu-central-1:123456789012:function:" in text
    assert '"arn:aws:iam::123456789012:role/mine"' in text


# Secrets go in and never come out


def test_keys_are_stored_sealed_and_open_again(
    as_owner: Client, project: Any, messages_sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    connection = make_connection(project, secret="")
    with django_capture_on_commit_callbacks(execute=True):
        answer = as_owner.post(_url(project, connection.pk, "identity"), KEYS)
    assert answer.status_code == 302
    connection.refresh_from_db()
    assert connection.has_identity
    assert connection.test_state == CheckState.ASKED
    assert messages_sent == [
        ("webapp.credentials.tasks.test_connection", [connection.pk, connection.test_no])
    ]
    row = SealedSecret.objects.get()
    assert row.hint == "LAST"
    assert SECRET.encode() not in bytes(row.ciphertext) + bytes(row.wrapped_key)
    assert opening.secret(connection, "secret_access_key").reveal() == SECRET
    page = as_owner.get(_url(project, connection.pk)).content.decode()
    assert "ends in ••••LAST" in page
    assert SECRET not in page
    assert KEYS["access_key_id"] in page


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"access_key_id": "ASIAABCDEFGHIJKLMNOP"}, "temporary"),
        ({"access_key_id": SECRET}, "capital letters and digits"),
        ({"secret_access_key": "two words " + SECRET}, "space"),
        ({"secret_access_key": "short"}, "at least 16"),
        ({"secret_access_key": ""}, "required"),
    ],
)
def test_a_wrong_form_shows_no_secret_back(
    changed: dict[str, str], words: str, as_owner: Client, project: Any
) -> None:
    connection = make_connection(project, secret="")
    answer = as_owner.post(_url(project, connection.pk, "identity"), {**KEYS, **changed})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words in page
    assert SECRET not in page
    assert not SealedSecret.objects.exists()


def test_the_id_of_an_azure_secret_is_told_from_its_value(as_owner: Client, project: Any) -> None:
    connection = make_connection(project, kind="azure_principal", region="westeurope")
    given = {**AZURE_IDS, "client_secret": AZURE_IDS["client_id"]}
    page = as_owner.post(_url(project, connection.pk, "identity"), given).content.decode()
    assert "Value" in page
    good = as_owner.post(
        _url(project, connection.pk, "identity"), {**AZURE_IDS, "client_secret": "v~alue" * 5}
    )
    assert good.status_code == 302
    connection.refresh_from_db()
    assert connection.tenant_id == AZURE_IDS["tenant_id"].lower()


def test_another_identity_wants_its_secret_again_and_voids_the_test(as_owner: Client, project: Any) -> None:
    connection = make_connection(project, secret=SECRET)
    Connection.objects.filter(pk=connection.pk).update(
        test_state=CheckState.DONE, test_report={"checks": []}, account_id="123456789012"
    )
    address = _url(project, connection.pk, "identity")
    other = {"access_key_id": "AKIAZZZZZZZZZZZZZZZZ"}
    assert as_owner.post(address, other).status_code == 422
    assert (
        as_owner.post(address, {**other, "secret_access_key": "another-secret-of-some-length"}).status_code
        == 302
    )
    connection.refresh_from_db()
    assert (connection.account_id, connection.test_report) == ("", None)
    assert opening.secret(connection, "secret_access_key") == Secret("another-secret-of-some-length")


def test_an_identity_is_given_whole(project: Any) -> None:
    connection = make_connection(project, secret="")
    with pytest.raises(ValueError, match="whole"):
        services.set_identity(connection=connection, plain={"access_key_id": "A"}, secrets={})


def test_a_row_that_was_moved_or_changed_in_the_database_is_not_used(project: Any) -> None:
    mine, theirs = make_connection(project, secret=SECRET), make_connection(make_project())
    row, other = mine.secrets.get(), theirs.secrets.get()
    SealedSecret.objects.filter(pk=other.pk).update(
        key_id=row.key_id, wrapped_key=row.wrapped_key, ciphertext=row.ciphertext
    )
    with pytest.raises(RowChanged):
        opening.secret(theirs, "secret_access_key")
    # Nor when the connection itself is moved to another project.
    Connection.objects.filter(pk=mine.pk).update(project=theirs.project)
    with pytest.raises(RowChanged):
        opening.secret(Connection.objects.get(pk=mine.pk), "secret_access_key")
    report = testing.report_on(Connection.objects.get(pk=mine.pk))
    assert report["ok"] is False
    assert "changed or moved" in report["checks"][0]["words"]


# Who may


def test_viewers_see_names_only(project: Any) -> None:
    connection = make_connection(project, name="The lab's account", secret=SECRET)
    Connection.objects.filter(pk=connection.pk).update(account_id="123456789012")
    viewer = _member(project, "viewer")
    page = viewer.get(_url(project)).content.decode()
    assert "The lab&#x27;s account" in page
    for hidden in ("123456789012", "eu-central-1", connection.pk, KEYS["access_key_id"]):
        assert hidden not in page
    assert viewer.get(_url(project, connection.pk)).status_code == 403


def test_editors_test_and_cannot_change(project: Any, messages_sent: list[Any]) -> None:
    connection = make_connection(project)
    editor = _member(project, "editor")
    page = editor.get(_url(project, connection.pk)).content.decode()
    assert 'name="secret_access_key"' not in page
    assert "Remove this connection" not in page
    assert editor.post(_url(project, connection.pk, "test")).status_code == 302
    for act in ("identity", "remove"):
        assert editor.post(_url(project, connection.pk, act), KEYS).status_code == 403


def test_an_empty_list_says_what_there_is_and_that_nothing_is_needed(as_owner: Client, project: Any) -> None:
    page = as_owner.get(_url(project)).content.decode()
    assert "simulated cloud needs none" in page
    for way in wording.WAYS:
        assert way.title in page
    viewer = _member(project, "viewer").get(_url(project)).content.decode()
    assert "An owner of this project can connect one" in viewer


def test_names_of_people_and_clouds_are_text(as_owner: Client, project: Any) -> None:
    connection = make_connection(project, name="<script>alert(1)</script>")
    for page in (as_owner.get(_url(project)), as_owner.get(_url(project, connection.pk))):
        assert "<script>alert" not in page.content.decode()


# Jobs


def test_a_connection_that_a_job_needs_stays(as_owner: Client, project: Any) -> None:
    connection = make_connection(project)
    job = _using(connection)
    answer = as_owner.post(_url(project, connection.pk, "remove"), follow=True)
    assert "is needed by Hopper" in answer.content.decode()
    assert Connection.objects.filter(pk=connection.pk).exists()
    assert SealedSecret.objects.exists()
    assert "1 job needs it" in as_owner.get(_url(project)).content.decode()
    Job.objects.filter(pk=job.pk).update(observed=Observed.SUCCEEDED)
    page = as_owner.get(_url(project, connection.pk)).content.decode()
    assert "Hopper" in page
    assert "succeeded" in page
    as_owner.post(_url(project, connection.pk, "remove"))
    assert not Connection.objects.filter(pk=connection.pk).exists()
    assert not SealedSecret.objects.exists()


def test_other_projects_jobs_do_not_count(project: Any) -> None:
    connection = make_connection(project)
    theirs = make_job(make_project())
    Job.objects.filter(pk=theirs.pk).update(spec={"platform": {"connection": connection.pk}})
    assert not queries.jobs_naming(connection).exists()
    services.remove_connection(connection=connection)


def test_a_job_gets_the_connection_of_its_own_project_only(project: Any) -> None:
    connection = make_connection(project, secret=SECRET)
    found = opening.opened(project.pk, connection.pk)
    assert found.access.secret_access_key == SECRET  # type: ignore[union-attr]
    assert SECRET not in repr(found)
    with pytest.raises(opening.CannotOpen, match="not there"):
        opening.opened(make_project().pk, connection.pk)
    with pytest.raises(opening.CannotOpen, match="Set it up"):
        opening.opened(project.pk, make_connection(project, secret="").pk)


def test_what_was_made_for_an_emulator_never_meets_the_cloud(
    project: Any, settings: Any, as_owner: Client
) -> None:
    real = make_connection(project)
    settings.STARLING_AWS_ENDPOINT = "http://127.0.0.1:1"
    made_here = make_connection(project)
    assert made_here.emulated
    assert "emulated" in as_owner.get(_url(project, made_here.pk)).content.decode()
    assert opening.opened(project.pk, made_here.pk).endpoint_url == "http://127.0.0.1:1"
    with pytest.raises(opening.CannotOpen, match="real account"):
        opening.opened(project.pk, real.pk)
    settings.STARLING_AWS_ENDPOINT = ""
    assert opening.opened(project.pk, real.pk).endpoint_url is None
    with pytest.raises(opening.CannotOpen, match="emulator"):
        opening.opened(project.pk, made_here.pk)


# Tests of connections


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Tests that find a fixed thing; the connections they were made for."""
    asked: list[Connection] = []

    def report_on(connection: Connection, limit_s: float) -> dict[str, Any]:
        asked.append(connection)
        check = {"name": "a", "ok": True, "words": "w", "fix": "", "optional": False}
        return {
            "identity": "me",
            "account": "123456789012",
            "region": "r",
            "quotas": [],
            "checks": [check],
            "ok": True,
        }

    monkeypatch.setattr(testing, "report_on", report_on)
    return asked


def test_a_test_is_told_in_the_row(project: Any, messages_sent: list[Any], reports: list[Connection]) -> None:
    connection = testing.ask_for_test(connection=make_connection(project))
    testing.run_test(connection.pk, connection.test_no)
    connection.refresh_from_db()
    assert connection.test_state == CheckState.DONE
    assert connection.account_id == "123456789012"
    testing.run_test(connection.pk, connection.test_no)  # the message came twice
    assert len(reports) == 1


def test_a_test_that_was_overtaken_says_nothing(
    project: Any, messages_sent: list[Any], reports: list[Connection]
) -> None:
    connection = testing.ask_for_test(connection=make_connection(project))
    old = connection.test_no
    testing.ask_for_test(connection=connection)
    testing.run_test(connection.pk, old)
    assert not reports
    services.remove_connection(connection=connection)
    testing.run_test(connection.pk, old + 1)
    assert not reports


def test_a_page_waits_for_nobody(as_owner: Client, project: Any, messages_sent: list[Any]) -> None:
    connection = make_connection(project)
    as_owner.post(_url(project, connection.pk, "test"))
    report = as_owner.get(_url(project, connection.pk).removesuffix("/") + "/report").content.decode()
    assert "data-waiting" in report
    assert "Testing" in report


def test_a_test_that_nobody_took_up_is_told(project: Any, messages_sent: list[Any]) -> None:
    clock = FixedClock()
    connection = testing.ask_for_test(connection=make_connection(project), clock=clock)
    assert wording.standing(connection, clock.now()).waiting
    late = clock.now() + queries.NOBODY_CAME_AFTER + timedelta(seconds=1)
    assert "manage.py up" in wording.standing(connection, late).sentence


def test_there_is_nothing_to_test_before_it_is_set_up(as_owner: Client, project: Any) -> None:
    connection = make_connection(project, secret="")
    page = as_owner.post(_url(project, connection.pk, "test"), follow=True).content.decode()
    assert "nothing to test yet" in page
    connection.refresh_from_db()
    assert connection.test_state == CheckState.NEVER


def test_a_broker_that_is_away_fails_no_request(
    as_owner: Client, project: Any, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(testing.celery_app, "send_task", away)
    with django_capture_on_commit_callbacks(execute=True):
        assert as_owner.post(_url(project, make_connection(project).pk, "test")).status_code == 302


def _checked(**fields: Any) -> dict[str, Any]:
    return {"name": "lambda:X", "ok": True, "words": "Why.", "fix": "", "optional": False, **fields}


@pytest.mark.parametrize(
    ("checks", "word", "first"),
    [
        ([_checked()], "Ready", "Yes"),
        ([_checked(), _checked(ok=None)], "Ready", "Yes"),
        ([_checked(), _checked(ok=False, optional=True)], "Ready", "Could be better"),
        ([_checked(), _checked(ok=False, optional=True), _checked(ok=False)], "Not ready", "Missing"),
    ],
)
def test_how_a_report_is_told(checks: list[Any], word: str, first: str, project: Any) -> None:
    connection = make_connection(project)
    connection.test_state, connection.test_report = CheckState.DONE, {"checks": checks}
    assert wording.standing(connection, FixedClock().now()).word == word
    told = wording.rows({"checks": checks})
    assert [*told.wanting, *told.fine][0].word == first


# Master keys


def test_the_keys_file_is_ours_alone_and_made_once(tmp_path: Path) -> None:
    first, second = key_ring.ring(), key_ring.ring()
    assert first.first.id == second.first.id
    assert stat.S_IMODE((tmp_path / "master_keys").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["master_keys"]


def test_a_keys_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    key_ring.ring()
    (tmp_path / "master_keys").chmod(0o640)
    with pytest.raises(key_ring.KeysUnusable, match="chmod 600"):
        key_ring.ring()


@pytest.mark.parametrize("content", ["", "not a key", key_ring.new_key()[:-4]], ids=["empty", "words", "cut"])
def test_a_broken_keys_file_is_a_sentence_without_the_key(content: str, tmp_path: Path) -> None:
    (tmp_path / "master_keys").write_text(content)
    (tmp_path / "master_keys").chmod(0o600)
    with pytest.raises(key_ring.KeysUnusable) as caught:
        key_ring.ring()
    assert not content or content not in str(caught.value)


def test_unusable_keys_store_nothing_and_are_told(as_owner: Client, project: Any, tmp_path: Path) -> None:
    connection = make_connection(project, secret="")
    (tmp_path / "master_keys").write_text("broken")
    (tmp_path / "master_keys").chmod(0o600)
    answer = as_owner.post(_url(project, connection.pk, "identity"), KEYS)
    assert answer.status_code == 422
    assert "Nothing was stored" in answer.content.decode()
    assert SECRET not in answer.content.decode()


def test_keys_from_the_environment_come_before_the_file(project: Any, settings: Any, tmp_path: Path) -> None:
    settings.STARLING_MASTER_KEYS = [key_ring.new_key()]
    connection = make_connection(project, secret=SECRET)
    assert not (tmp_path / "master_keys").exists()
    settings.STARLING_MASTER_KEYS = []
    with pytest.raises(UnknownKey):
        opening.secret(connection, "secret_access_key")


def _rotate(**options: Any) -> str:
    out = io.StringIO()
    call_command("rotate-keys", stdout=out, stderr=out, **options)
    return out.getvalue()


def test_rotation_rewraps_everything_and_the_old_key_may_go(project: Any) -> None:
    connections = [make_connection(project, secret=f"{SECRET}{number}") for number in range(5)]
    old = key_ring.ring().first.id
    assert "5 secrets sealed" in _rotate()
    new = key_ring.ring().first.id
    assert new != old
    assert queries.secrets_by_key() == {new: 5}
    assert set(key_ring.ring().by_id) == {old, new}
    assert old in _rotate(retire=True)
    assert len(key_ring.ring().by_id) == 1
    for number, connection in enumerate(connections):
        assert opening.secret(connection, "secret_access_key").reveal() == f"{SECRET}{number}"


def test_rotation_goes_on_over_many_rows(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.credentials.rotation._ROWS_AT_ONCE", 2)
    for _ in range(5):
        make_connection(project)
    assert rotate().rewrapped == 5


def test_a_row_that_cannot_be_opened_keeps_its_key(project: Any) -> None:
    good, bad = make_connection(project, secret=SECRET), make_connection(project)
    row = bad.secrets.get()
    SealedSecret.objects.filter(pk=row.pk).update(wrapped_key=bytes(60))
    old = key_ring.ring().first.id
    with pytest.raises(CommandError, match="1 secret could not be opened"):
        _rotate(retire=True)
    assert old in key_ring.ring().by_id
    assert opening.secret(good, "secret_access_key").reveal() == SECRET


def test_rotation_with_the_operators_own_keys(project: Any, settings: Any) -> None:
    old, new = key_ring.new_key(), key_ring.new_key()
    settings.STARLING_MASTER_KEYS = [old]
    connection = make_connection(project, secret=SECRET)
    settings.STARLING_MASTER_KEYS = [new, old]
    assert "1 secret sealed" in _rotate(retire=True)
    settings.STARLING_MASTER_KEYS = [new]
    assert opening.secret(connection, "secret_access_key").reveal() == SECRET


def test_a_new_key_is_printed_on_request(tmp_path: Path) -> None:
    printed = _rotate(new=True).strip()
    assert len(printed) == 44
    assert not list(tmp_path.iterdir())


_LOAD_EVERY_PAGE = """
import sys
import threading
import webapp.asgi
from django.urls import get_resolver
from webapp.credentials import forms, models, views, tasks, testing
get_resolver().url_patterns
forms.identity_form(models.Connection(kind="aws_keys")).as_p()
print(sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "boto3", "botocore", "azure", "msal"}))
"""


def test_the_web_process_starts_without_the_clouds_sdks(tmp_path: Path) -> None:
    """They take a second and tens of megabytes, and most pages never need them."""
    answer = subprocess.run(
        [sys.executable, "-c", _LOAD_EVERY_PAGE],
        cwd=ROOT,
        env={
            "STARLING_DATA": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == "[]"


@pytest.mark.django_db(transaction=True)
def test_no_secret_is_lost_when_keys_change_while_people_write(project: Any) -> None:
    """Writers seal with whatever key is first; rotations make new ones and take old ones away meanwhile."""
    connections = [make_connection(project) for _ in range(4)]
    faults: list[BaseException] = []

    def write(connection: Connection) -> None:
        try:
            for number in range(6):
                services.set_identity(
                    connection=connection,
                    plain={"access_key_id": KEYS["access_key_id"]},
                    secrets={"secret_access_key": Secret(f"{SECRET}{number}")},
                )
        except BaseException as error:
            faults.append(error)
        finally:
            database.close()

    writers = [threading.Thread(target=write, args=[connection]) for connection in connections]
    for writer in writers:
        writer.start()
    for _ in range(6):
        assert not rotate(retire=True).unopened
    for writer in writers:
        writer.join()
    assert not faults
    assert len(key_ring.ring().by_id) <= 1 + len(connections)
    for connection in connections:
        assert opening.secret(connection, "secret_access_key").reveal() == f"{SECRET}5"
