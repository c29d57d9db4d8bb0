"""`manage.py up`, as a person uses it: real processes in a folder and on ports of their own."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.servers import ROOT, answers, manage, reserved_port, wait_until

pytestmark = pytest.mark.stack

READY_WITHIN_S = 120  # on a busy machine; see the benchmarks for how long it really takes
STOPPED_WITHIN_S = 15


@dataclass(frozen=True)
class Stack:
    """A running `manage.py up`."""

    process: subprocess.Popen[bytes]
    folder: Path
    log: Path
    port: int

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

    def pid_of(self, words: str) -> int:
        (pid,) = (pid for pid, command in self.processes().items() if words in command)
        return pid


@pytest.fixture(scope="module")
def _prepared_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    subprocess.run(
        manage("prepare"), cwd=ROOT, env=_environment(folder), check=True, capture_output=True, timeout=120
    )
    return folder


@pytest.fixture
def prepared(_prepared_once: Path, tmp_path: Path) -> Path:
    """A folder in which everything is set up already, as after a first start: what follows starts sooner."""
    return Path(shutil.copytree(_prepared_once, tmp_path / "data"))


def _is_alive(entry: Path) -> bool:
    """A process whose parent has not yet asked how it ended (a zombie) is not alive."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def _environment(folder: Path) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if name not in {"REDIS_URL", "DATABASE_URL"}}
    return {**given, "DJANGO_SETTINGS_MODULE": "webapp.settings", "STARLING_DATA": str(folder)}


@contextmanager
def _up(folder: Path, *arguments: str) -> Iterator[Stack]:
    log, port = folder.with_suffix(".log"), reserved_port()
    with open(log, "wb") as output:
        process = subprocess.Popen(
            manage("up", "--data", str(folder), "--port", str(port), "--no-demo", *arguments),
            cwd=ROOT,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    stack = Stack(process, folder, log, port)
    try:
        yield stack
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


@contextmanager
def _ready(folder: Path, *arguments: str) -> Iterator[Stack]:
    with _up(folder, *arguments) as stack:
        wait_until(
            lambda: stack.process.poll() is not None or stack.says("Starling is ready"),
            within_s=READY_WITHIN_S,
            what="ready",
        )
        assert stack.process.poll() is None, stack.log.read_text()
        yield stack


def _second_start(stack: Stack) -> subprocess.CompletedProcess[str]:
    command = manage("up", "--data", str(stack.folder), "--no-demo")
    environment = _environment(stack.folder)
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


def test_up_serves_refuses_a_second_start_and_stops_in_order(tmp_path: Path) -> None:
    with _ready(tmp_path / "data") as stack:
        assert answers(f"{stack.url}/readyz")
        assert len(stack.processes()) == 5, stack.processes()

        second = _second_start(stack)
        assert second.returncode == 2
        assert f"process {stack.process.pid} at {stack.url}, since " in second.stderr
        assert answers(f"{stack.url}/readyz"), "the second start must not disturb the first"

        stack.process.send_signal(signal.SIGINT)
        assert stack.process.wait(timeout=STOPPED_WITHIN_S) == 0
        assert not stack.processes()
        assert stack.log.read_text().rstrip().endswith("Stopped.")
        assert "does not stop" not in stack.log.read_text()
        assert not (stack.folder / "redis.url").exists()


@pytest.mark.slow
def test_killing_the_supervisor_leaves_nothing_behind_and_the_folder_free(prepared: Path) -> None:
    with _ready(prepared) as stack:
        stack.process.kill()
        stack.process.wait()
        wait_until(lambda: not stack.processes(), within_s=30, what="all services gone")
    with _ready(prepared) as again:
        assert answers(f"{again.url}/readyz")


@pytest.mark.slow
def test_a_service_that_dies_is_started_again(prepared: Path) -> None:
    with _ready(prepared) as stack:
        for name, words in [("valkey", "valkey"), ("web", "uvicorn")]:
            os.kill(stack.pid_of(words), signal.SIGKILL)
            note = f"{name} was killed (SIGKILL)"
            wait_until(partial(stack.says, note), within_s=30, what=note)
        wait_until(lambda: answers(f"{stack.url}/readyz"), within_s=60, what="the site is back")
        wait_until(lambda: _redis_state(stack) == "ready", within_s=60, what="Valkey is back")


def _redis_state(stack: Stack) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=30)
    with closing(connection):
        connection.request("GET", "/readyz")
        return str(json.load(connection.getresponse())["redis"])


@pytest.mark.slow
def test_a_busy_port_is_left_to_its_owner(prepared: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        busy_port = owner.getsockname()[1]
        with _ready(prepared, "--port", str(busy_port)) as stack:
            assert stack.says(f"Port {busy_port} is busy; using ")


def test_stopping_while_it_still_starts(tmp_path: Path) -> None:
    with _up(tmp_path / "data") as stack:
        wait_until(lambda: (stack.folder / "redis.url").exists(), within_s=60, what="Valkey is up")
        began_s = time.monotonic()
        stack.process.send_signal(signal.SIGTERM)
        assert stack.process.wait(timeout=STOPPED_WITHIN_S) == 0
        assert time.monotonic() - began_s < STOPPED_WITHIN_S
        assert not stack.processes()
