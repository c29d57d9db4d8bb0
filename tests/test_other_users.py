"""Another user of the machine, beside an installation that people use: no file opens, and no session is to be had."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from rig.servers import wait_until
from tests.whole_site import Stack, ready

pytestmark = pytest.mark.slow

NOBODY = 65534
WRITTEN = ("starling.sqlite3", "secret_key", "redis.url", "lock", "valkey/valkey.conf")
FILLED = ("mail", "checkpoints", "logs", "datasets", "films", "staticfiles")


@pytest.fixture(scope="module")
def used() -> Iterator[Stack]:
    """A site that was started in a shell with the usual mask, with a person, a letter, a data set and a job that runs.

    It is in a folder that all users of the machine may enter: pytest's own they may not.
    """
    mask = os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory(prefix="starling-open-") as name:
            Path(name).chmod(0o755)
            with ready(Path(name) / "data", demo=True) as site:
                _use(site)
                yield site
    finally:
        os.umask(mask)


def _use(site: Stack) -> None:
    person = requests.Session()
    _send(person, site.sign_in_link(), {})
    project = person.get(site.url).url
    table = "a,b,y\n" + "".join(f"{row},{row % 7},{row % 2}\n" for row in range(200))
    _send(person, f"{project}data/", {"name": "Rows"}, to="new/", files={"file": ("rows.csv", table)})
    words = {"email": "ada@example.com", "password1": "a long password", "password2": "a long password"}
    _send(requests.Session(), f"{site.url}/accounts/signup/", words)
    for name in FILLED:
        wait_until(
            lambda name=name: any(path.is_file() for path in (site.folder / name).rglob("*")),  # type: ignore[misc]
            within_s=300,
            what=f"a file in {name}",
        )


def _send(person: requests.Session, address: str, words: dict[str, str], to: str = "", **more: Any) -> None:
    """Fill in the form of this page, which posts to an address below it, and follow where the answer leads."""
    page = person.get(address)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert token is not None, page.text
    given = {**words, "csrfmiddlewaretoken": token[1]}
    answer = person.post(f"{page.url}{to}", given, headers={"Referer": page.url}, **more)
    assert answer.status_code == 200, answer.text
    assert answer.url != f"{page.url}{to}", answer.text


def test_every_file_is_its_owners_alone(used: Stack) -> None:
    for name in WRITTEN:
        assert (used.folder / name).is_file(), name
    wide = {
        str(path.relative_to(used.folder)): stat.filemode(path.lstat().st_mode)
        for path in (used.folder, *used.folder.rglob("*"))
        if path.lstat().st_mode & 0o077
    }
    assert wide == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run a program as another user")
def test_another_user_opens_no_file_and_reads_no_secret_in_the_list_of_processes(used: Stack) -> None:
    names = "".join(f"{path}\n" for path in used.folder.rglob("*") if path.is_file())
    script = 'ls "$0"; while read -r name; do head -c 1 "$name" >/dev/null && echo "$name"; done; exit 0'
    tried = subprocess.run(
        ["/bin/sh", "-c", script, str(used.folder)],
        input=names,
        capture_output=True,
        text=True,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        timeout=120,
    )
    assert tried.stdout == ""
    assert tried.stderr.count("Permission denied") == names.count("\n") + 1
    password = re.search(r":([^:@/]+)@", (used.folder / "redis.url").read_text())
    assert password is not None
    secrets = [password[1], (used.folder / "secret_key").read_text().strip()]
    for command in used.processes().values():
        assert not [secret for secret in secrets if secret in command]


def test_a_copy_of_the_database_opens_no_session(used: Stack) -> None:
    with closing(sqlite3.connect(used.folder / "starling.sqlite3", timeout=60)) as database:
        keys = [key for (key,) in database.execute("SELECT session_key FROM django_session")]
    assert len(keys) >= 2
    for key in keys:
        answer = requests.get(
            f"{used.url}/account/", cookies={"sessionid": key}, allow_redirects=False, timeout=60
        )
        assert answer.status_code == 302, "signed in by what the database holds"
