"""Master keys: where they are, how they are changed, and that nothing is lost meanwhile."""

import fcntl
import io
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection as database
from django.test import Client

from rig.servers import printed_by
from tests.factories import make_connection
from tests.webapp.connections.connected import KEYS, SECRET, url
from webapp.connections import decrypt, key_ring, queries, services
from webapp.connections.key_ring import rotate
from webapp.connections.models import Connection, SealedSecret
from webapp.connections.sealing import Secret, UnknownKey

pytestmark = pytest.mark.django_db


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


def test_no_key_is_removed_while_a_process_seals_and_none_seals_while_one_is_removed(tmp_path: Path) -> None:
    key_ring.ring()
    with key_ring.locked():
        assert (_free(tmp_path, fcntl.LOCK_SH), _free(tmp_path, fcntl.LOCK_EX)) == (True, False)
    with key_ring.locked(alone=True):
        assert (_free(tmp_path, fcntl.LOCK_SH), _free(tmp_path, fcntl.LOCK_EX)) == (False, False)
    assert _free(tmp_path, fcntl.LOCK_EX)


@pytest.mark.parametrize("change", ["add_first", "remove_others"])
def test_a_rotation_changes_the_keys_while_no_process_seals(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, real = [], getattr(key_ring, change)

    def changed(keys: Any) -> Any:
        free.append(_free(tmp_path, fcntl.LOCK_SH))
        return real(keys)

    monkeypatch.setattr(key_ring, change, changed)
    rotate(retire=True)
    assert free == [False]


def _free(folder: Path, lock: int) -> bool:
    """Whether another process would get this lock of the key ring now."""
    with open(folder / "master_keys.lock", "r+") as another:
        try:
            fcntl.flock(another, lock | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_WITH_A_TYPO = f"{key_ring.new_key()[:9]}!{key_ring.new_key()[9:]}"


@pytest.mark.parametrize(
    "content",
    ["", "not a key", key_ring.new_key()[:-4], _WITH_A_TYPO],
    ids=["empty", "words", "cut", "typo"],
)
def test_a_broken_keys_file_is_a_sentence_without_the_key(content: str, tmp_path: Path) -> None:
    (tmp_path / "master_keys").write_text(content)
    (tmp_path / "master_keys").chmod(0o600)
    with pytest.raises(key_ring.KeysUnusable) as caught:
        key_ring.ring()
    assert not content or content not in str(caught.value)


def test_unusable_keys_store_nothing_and_are_reported(as_owner: Client, project: Any, tmp_path: Path) -> None:
    connection = make_connection(project, secret="")
    (tmp_path / "master_keys").write_text("broken")
    (tmp_path / "master_keys").chmod(0o600)
    answer = as_owner.post(url(project, connection.pk, "identity"), KEYS)
    assert answer.status_code == 422
    assert "Nothing was stored" in answer.content.decode()
    assert SECRET not in answer.content.decode()


def test_keys_from_the_environment_come_before_the_file(project: Any, settings: Any, tmp_path: Path) -> None:
    settings.STARLING_MASTER_KEYS = [key_ring.new_key()]
    connection = make_connection(project, secret=SECRET)
    assert not (tmp_path / "master_keys").exists()
    settings.STARLING_MASTER_KEYS = []
    with pytest.raises(UnknownKey):
        decrypt.secret(connection, "secret_access_key")


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
        assert decrypt.secret(connection, "secret_access_key").reveal() == f"{SECRET}{number}"


def test_rotation_goes_on_over_many_rows(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.connections.key_ring._ROWS_AT_ONCE", 2)
    for _ in range(5):
        make_connection(project)
    assert rotate().rewrapped == 5


def test_a_row_that_cannot_be_opened_keeps_its_key(project: Any) -> None:
    good, bad = make_connection(project, secret=SECRET), make_connection(project)
    row = bad.secrets.get()
    SealedSecret.objects.filter(pk=row.pk).update(wrapped_key=bytes(60))
    old = key_ring.ring().first.id
    with pytest.raises(CommandError, match=r"^1 secret"):
        _rotate(retire=True)
    assert old in key_ring.ring().by_id
    assert decrypt.secret(good, "secret_access_key").reveal() == SECRET


def test_rotation_with_the_operators_own_keys(project: Any, settings: Any) -> None:
    old, new = key_ring.new_key(), key_ring.new_key()
    settings.STARLING_MASTER_KEYS = [old]
    connection = make_connection(project, secret=SECRET)
    settings.STARLING_MASTER_KEYS = [new, old]
    assert "1 secret sealed" in _rotate(retire=True)
    settings.STARLING_MASTER_KEYS = [new]
    assert decrypt.secret(connection, "secret_access_key").reveal() == SECRET


def test_a_new_key_is_printed_on_request(tmp_path: Path) -> None:
    printed = _rotate(new=True).strip()
    assert len(printed) == 44
    assert not list(tmp_path.iterdir())


_LOAD_EVERY_PAGE = """
import sys
import threading
import webapp.asgi
from django.urls import get_resolver
from webapp import tasks
from webapp.connections import forms, models, views, connection_check
get_resolver().url_patterns
forms.identity_form(models.Connection(kind="aws_keys")).as_p()
print(sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "boto3", "botocore", "azure", "msal"}))
"""


@pytest.mark.slow
def test_the_web_process_starts_without_the_clouds_sdks(tmp_path: Path) -> None:
    """They take a second and tens of megabytes, and most pages never need them."""
    environment = {"STARLING_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    assert printed_by(_LOAD_EVERY_PAGE, PATH="/usr/bin:/bin", **environment) == "[]"


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
        assert decrypt.secret(connection, "secret_access_key").reveal() == f"{SECRET}5"
