"""The whole of Starling as a person starts it: `manage.py up` in a folder and on a port of its own."""

import http.cookiejar
import os
import re
import signal
import sqlite3
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg

from rig.servers import ROOT, manage, reserved_port, wait_until

READY_WITHIN_S = 300  # on a busy machine; see the benchmarks for how long it really takes


@dataclass(frozen=True)
class Stack:
    """A running `manage.py up`."""

    process: subprocess.Popen[bytes]
    folder: Path
    log: Path
    port: int
    database_url: str = ""
    """Of its PostgreSQL; without one its database is a file in the folder."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def says(self, words: str) -> bool:
        return words in self.log.read_text()

    def processes(self) -> dict[int, str]:
        """Every living process that works on this folder, the supervisor's included: pid -> command line."""
        return {
            int(entry.name): (entry / "cmdline").read_text().replace("\0", " ")
            for entry in Path("/proc").iterdir()
            if entry.name.isdecimal() and _is_alive(entry) and self._is_ours(entry)
        }

    def _is_ours(self, entry: Path) -> bool:
        try:
            # Valkey writes its title over its environment, but stands in the folder.
            if (entry / "cwd").readlink().is_relative_to(self.folder):
                return True
            return f"STARLING_DATA={self.folder}".encode() in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        """What its database answers."""
        if self.database_url:
            with psycopg.connect(self.database_url) as server:
                return server.execute(cast("LiteralString", question)).fetchall()
        with closing(sqlite3.connect(self.folder / "starling.sqlite3", timeout=60)) as database:
            return database.execute(question).fetchall()

    def sign_in_link(self) -> str:
        """The link that it printed last."""
        links = re.findall(r"Sign in to the demo \(works once\):  (\S+)", self.log.read_text())
        return str(links[-1])

    def pid_of(self, words: str) -> int:
        (pid,) = (pid for pid, command in self.processes().items() if words in command)
        return pid


def _is_alive(entry: Path) -> bool:
    """A process whose parent has not yet asked how it ended (a zombie) is not alive."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def site_environment(folder: Path, database_url: str = "") -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if name not in {"REDIS_URL", "DATABASE_URL"}}
    own = {"DATABASE_URL": database_url} if database_url else {}
    return {**given, **own, "DJANGO_SETTINGS_MODULE": "webapp.settings", "STARLING_DATA": str(folder)}


@contextmanager
def up(folder: Path, *arguments: str, demo: bool = False, database_url: str = "") -> Iterator[Stack]:
    without_demo = [] if demo else ["--no-demo"]
    log, port = folder.with_suffix(".log"), reserved_port()
    with open(log, "wb") as output:
        process = subprocess.Popen(
            manage("up", "--data", str(folder), "--port", str(port), *without_demo, *arguments),
            cwd=ROOT,
            env=site_environment(folder, database_url),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    stack = Stack(process, folder, log, port, database_url)
    try:
        yield stack
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


@contextmanager
def ready(folder: Path, *arguments: str, demo: bool = False, database_url: str = "") -> Iterator[Stack]:
    with up(folder, *arguments, demo=demo, database_url=database_url) as stack:
        wait_until(
            lambda: stack.process.poll() is not None or stack.says("Starling is ready"),
            within_s=READY_WITHIN_S,
            what="ready",
        )
        assert stack.process.poll() is None, stack.log.read_text()
        yield stack


def signs_in(link: str) -> bool:
    """Whether this link, opened in a browser of its own, leads to a page of someone who is signed in."""
    cookies = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(cookies)
    )
    page = browser.open(link, timeout=60)
    names = {cookie.name for cookie in cookies}
    if "sessionid" not in names:  # it asks first whether this person is meant
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.read().decode())
        assert token is not None, page.url
        answer = urllib.parse.urlencode({"csrfmiddlewaretoken": token[1]}).encode()
        page = browser.open(urllib.request.Request(link, answer, {"Referer": link}), timeout=60)
    return page.status == 200 and "/p/" in page.url
