"""`manage.py up`, as a person uses it: real processes in a folder and on ports of their own."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rig.servers import ROOT, answers, manage, wait_until
from tests.database import migrated_file
from tests.whole_site import Stack, ready, site_environment, up

pytestmark = pytest.mark.stack

STOPPED_WITHIN_S = 60
"""No promise; `tests/test_site_stops.py` measures how long stopping takes."""


@pytest.fixture(scope="module")
def _prepared_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    subprocess.run(
        manage("prepare"),
        cwd=ROOT,
        env=site_environment(folder),
        check=True,
        capture_output=True,
        timeout=300,
    )
    return folder


@pytest.fixture
def prepared(_prepared_once: Path, tmp_path: Path) -> Path:
    """A folder in which everything is set up already, as after a first start: what follows starts sooner."""
    return Path(shutil.copytree(_prepared_once, tmp_path / "data"))


def _second_start(stack: Stack) -> subprocess.CompletedProcess[str]:
    command = manage("up", "--data", str(stack.folder), "--no-demo")
    environment = site_environment(stack.folder)
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(params=["migrated", pytest.param("empty", marks=pytest.mark.slow)])
def folder(request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: Any) -> Path:
    """A folder in which nothing is set up; but for its tables, whose migration takes longer than all the rest."""
    path = tmp_path / "data"
    if request.param == "migrated":
        path.mkdir()
        with django_db_blocker.unblock():
            shutil.copyfile(migrated_file(), path / "starling.sqlite3")
    return path


def test_up_serves_refuses_a_second_start_and_stops_in_order(folder: Path) -> None:
    with ready(folder) as stack:
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
    with ready(prepared) as stack:
        stack.process.kill()
        stack.process.wait()
        wait_until(lambda: not stack.processes(), within_s=30, what="all services gone")
    with ready(prepared) as again:
        assert answers(f"{again.url}/readyz")


@pytest.mark.slow
def test_a_service_that_dies_is_started_again(prepared: Path) -> None:
    with ready(prepared) as stack:
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
        with ready(prepared, "--port", str(busy_port)) as stack:
            assert stack.says(f"Port {busy_port} is busy; ")


def test_stopping_while_it_still_starts(tmp_path: Path) -> None:
    with up(tmp_path / "data") as stack:
        wait_until(lambda: (stack.folder / "redis.url").exists(), within_s=60, what="Valkey is up")
        stack.process.send_signal(signal.SIGTERM)
        assert stack.process.wait(timeout=STOPPED_WITHIN_S) == 0
        assert not stack.processes()
        assert "does not stop" not in stack.log.read_text()
