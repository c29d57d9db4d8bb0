"""Secrets go in and never come out."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import make_connection, make_project
from tests.webapp.connections.connected import AZURE_IDS, KEYS, SECRET, url
from webapp.connections import connection_check, decrypt, services
from webapp.connections.models import CheckState, Connection, SealedSecret
from webapp.connections.sealing import RowChanged, Secret

pytestmark = pytest.mark.django_db


def test_keys_are_stored_sealed_and_open_again(
    as_owner: Client, project: Any, messages_sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    connection = make_connection(project, secret="")
    with django_capture_on_commit_callbacks(execute=True):
        answer = as_owner.post(url(project, connection.pk, "identity"), KEYS)
    assert answer.status_code == 302
    connection.refresh_from_db()
    assert connection.has_identity
    assert connection.test_state == CheckState.REQUESTED
    assert messages_sent == [
        ("webapp.connections.tasks.test_connection", [connection.pk, connection.test_no])
    ]
    row = SealedSecret.objects.get()
    assert row.hint == "LAST"
    assert SECRET.encode() not in bytes(row.ciphertext) + bytes(row.wrapped_key)
    assert decrypt.secret(connection, "secret_access_key").reveal() == SECRET
    page = as_owner.get(url(project, connection.pk)).content.decode()
    assert "ends in ••••LAST" in page
    assert SECRET not in page
    assert KEYS["access_key_id"] in page


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"access_key_id": "ASIAABCDEFGHIJKLMNOP"}, "temporary"),
        ({"access_key_id": SECRET}, "capital letters"),
        ({"secret_access_key": "two words " + SECRET}, "space"),
        ({"secret_access_key": "short"}, "at least 16"),
        ({"secret_access_key": ""}, "required"),
    ],
)
def test_a_wrong_form_shows_no_secret_back(
    changed: dict[str, str], words: str, as_owner: Client, project: Any
) -> None:
    connection = make_connection(project, secret="")
    answer = as_owner.post(url(project, connection.pk, "identity"), {**KEYS, **changed})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words in page
    assert SECRET not in page
    assert not SealedSecret.objects.exists()


def test_the_id_of_an_azure_secret_is_distinguished_from_its_value(as_owner: Client, project: Any) -> None:
    connection = make_connection(project, kind="azure_principal", region="westeurope")
    given = {**AZURE_IDS, "client_secret": AZURE_IDS["client_id"]}
    page = as_owner.post(url(project, connection.pk, "identity"), given).content.decode()
    assert "Value" in page
    good = as_owner.post(
        url(project, connection.pk, "identity"), {**AZURE_IDS, "client_secret": "v~alue" * 5}
    )
    assert good.status_code == 302
    connection.refresh_from_db()
    assert connection.tenant_id == AZURE_IDS["tenant_id"].lower()


def test_another_identity_wants_its_secret_again_and_voids_the_test(as_owner: Client, project: Any) -> None:
    connection = make_connection(project, secret=SECRET)
    Connection.objects.filter(pk=connection.pk).update(
        test_state=CheckState.DONE, test_report={"checks": []}, account_id="123456789012"
    )
    address = url(project, connection.pk, "identity")
    other = {"access_key_id": "AKIAZZZZZZZZZZZZZZZZ"}
    assert as_owner.post(address, other).status_code == 422
    assert (
        as_owner.post(address, {**other, "secret_access_key": "another-secret-of-some-length"}).status_code
        == 302
    )
    connection.refresh_from_db()
    assert (connection.account_id, connection.test_report) == ("", None)
    assert decrypt.secret(connection, "secret_access_key") == Secret("another-secret-of-some-length")


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
        decrypt.secret(theirs, "secret_access_key")
    # Nor when the connection itself is moved to another project.
    Connection.objects.filter(pk=mine.pk).update(project=theirs.project)
    with pytest.raises(RowChanged):
        decrypt.secret(Connection.objects.get(pk=mine.pk), "secret_access_key")
    report = connection_check.report_on(Connection.objects.get(pk=mine.pk))
    assert report["ok"] is False
    assert "changed or moved" in report["checks"][0]["words"]
