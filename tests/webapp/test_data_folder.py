"""Other users of the machine may read nothing in the data folder, whatever the mask of the operator's shell."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from rig.servers import ROOT, manage
from tests.database import migrated_file
from webapp.data_folder import FolderRefused, close_contents, close_to_others

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to another user")


@pytest.fixture(autouse=True)
def wide_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> set[str]:
    """Of the folder and all in it: kind and mode."""
    paths = [folder, *folder.rglob("*")]
    return {stat.filemode(path.lstat().st_mode) for path in paths if not path.is_symlink()}


def _manage(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    ours = ("STARLING_", "SECRET_KEY", "DJANGO_SETTINGS_MODULE", "DATABASE_URL")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        manage(*arguments),
        cwd=ROOT,
        env={**inherited, "STARLING_DATA": str(data)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_new_folder_and_what_is_written_into_it_are_its_owners_alone(tmp_path: Path) -> None:
    close_to_others(tmp_path / "data")
    (tmp_path / "data" / "mail").mkdir()
    (tmp_path / "data" / "mail" / "letter").write_text("a link")
    assert modes(tmp_path / "data") == {"drwx------", "-rw-------"}


def test_an_open_folder_is_closed_and_what_was_open_in_it_counted(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text("{}")
    (tmp_path / "program").touch(mode=0o755)
    (tmp_path / "outside").symlink_to("/etc/passwd")
    tmp_path.chmod(0o755)
    before = Path("/etc/passwd").stat().st_mode
    close_to_others(tmp_path)
    assert close_contents(tmp_path) == 3
    assert modes(tmp_path) == {"drwx------", "-rw-------", "-rwx------"}
    assert Path("/etc/passwd").stat().st_mode == before
    assert close_contents(tmp_path) == 0


def test_every_command_closes_the_folder_and_prepare_says_what_it_mended(
    tmp_path: Path, django_db_blocker: Any
) -> None:
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "1.log").write_text("a link")
    database = tmp_path / "starling.sqlite3"
    with django_db_blocker.unblock():
        shutil.copyfile(migrated_file(), database)  # to migrate takes seconds
    database.chmod(0o600)
    tmp_path.chmod(0o755)
    said = _manage("prepare", data=tmp_path)
    assert said.returncode == 0, said.stderr
    assert f" folders in {tmp_path} " in said.stdout
    assert modes(tmp_path) == {"drwx------", "-rw-------"}
    assert "could be read" not in _manage("prepare", data=tmp_path).stdout


@needs_root
def test_a_folder_of_another_user_is_refused_with_what_to_do(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    said = _manage("check", data=tmp_path)
    assert said.returncode == 2
    assert re.match(rf"STARLING_DATA is {tmp_path}, .* nobody, .* root .*\n$", said.stderr)


@needs_root
def test_a_file_that_cannot_be_closed_is_named() -> None:
    """Seen as another user than root, who may change every file."""
    with TemporaryDirectory() as name:
        (Path(name) / "letter").write_text("a link")
        os.chown(name, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            with pytest.raises(FolderRefused, match=r"letter .* belongs to root.*chown -R nobody"):
                close_contents(Path(name))
        finally:
            os.seteuid(0)
