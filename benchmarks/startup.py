"""How long until the dashboard answers, on a folder of its own: the first start, and a later one."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rig.figures import Figure
from rig.servers import ROOT
from webapp.processes.embedded_valkey import free_port


def measure() -> Iterator[Figure]:
    """From the command to "ready", with all of its services up; then from Ctrl-C to the end."""
    with tempfile.TemporaryDirectory(prefix="starling-bench-") as folder:
        first_s, _ = _start_and_stop(Path(folder))
        yield Figure("first start: migrations, static files, services", first_s, "s", at_most=30)
        later_s, stop_s = _start_and_stop(Path(folder))
        yield Figure("later start, as `make run` when all is set up", later_s, "s", at_most=15)
        yield Figure("Ctrl-C until the last service has ended", stop_s, "s", at_most=10)


def _start_and_stop(folder: Path) -> tuple[float, float]:
    command = ["make", "--silent", "run", f"ARGS=--no-demo --data {folder} --port {free_port()}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    began_s = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "Starling is ready" in line:
                break
        else:
            raise RuntimeError("manage.py up ended before it was ready")
        ready_s = time.monotonic() - began_s
    finally:
        began_s = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    return ready_s, time.monotonic() - began_s
