"""One container: a process of its own with the variables that the group gives it and no others."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cloud
from cloud.workers.processes import bound_to_this_process

_ROOT = Path(cloud.__file__).resolve().parent.parent
# What the image brings: our sources, a path, and one thread for numbers.
_IMAGE = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    "PYTHONUNBUFFERED": "1",
    "PYTHONPATH": str(_ROOT),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_LOG_BYTES = 4 * 2**20


class Container:
    """Start, wait, kill. Everything in the emulator's event loop, whose end is the process's end."""

    def __init__(self, name: str, command: Sequence[str], variables: Mapping[str, str]) -> None:
        self.name = name
        self.exit_code: int | None = None
        self.began: datetime.datetime | None = None
        self.ended: datetime.datetime | None = None
        self._command = [sys.executable, *command[1:]] if command[0] == "python" else list(command)
        self._variables = dict(variables)
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in forget
        self._pidfd: int | None = None
        self.exited = asyncio.Event()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and not self.exited.is_set() else None

    def start(self, *, parked: bool = False) -> None:
        """`parked`: without a process, so that thousands may stand."""
        self.began, self.ended, self.exit_code = _now(), None, None
        self.exited.clear()
        if parked:
            return
        self._process = subprocess.Popen(
            bound_to_this_process(self._command),
            cwd=_ROOT,
            env={**_IMAGE, **self._variables},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        self._pidfd = os.pidfd_open(self._process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._on_exit)

    def kill(self) -> None:
        """End it now. Safe to call twice."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self.began is not None and not self.exited.is_set():
            self._on_exit()

    def forget(self) -> None:
        self.kill()
        self._output.close()

    def log(self, tail: int | None) -> str:
        if self._output.closed:
            return ""
        size = os.fstat(self._output.fileno()).st_size
        text = os.pread(self._output.fileno(), _LOG_BYTES, max(0, size - _LOG_BYTES)).decode(errors="replace")
        return text if tail is None else "".join(text.splitlines(keepends=True)[-tail:])

    def view(self) -> dict[str, Any]:
        """Its instance view."""
        if self.began is None:
            return {"restartCount": 0, "currentState": {"state": "Waiting"}, "events": []}
        state: dict[str, Any] = {"state": "Running", "startTime": _text(self.began), "detailStatus": ""}
        if self.ended is not None:
            status = "Completed" if self.exit_code == 0 else "Error"
            state |= {"state": "Terminated", "exitCode": self.exit_code, "finishTime": _text(self.ended)}
            state["detailStatus"] = status
        return {"restartCount": 0, "currentState": state, "events": []}

    def _on_exit(self) -> None:
        self.exit_code = self._process.wait() if self._process is not None else 0
        self.ended = _now()
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        self.exited.set()


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _text(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
