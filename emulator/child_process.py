"""A process that an emulator runs code in. Everything happens in the emulator's event loop, and dies with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cloud.workers.processes import bound_to_this_process

OUTPUT_LIMIT_BYTES = 4 * 2**20


class ChildProcess:
    """Start it, wait for `exited`, kill it. `on_exit` is called once for each start that has ended."""

    def __init__(self, on_exit: Callable[[], None] = lambda: None) -> None:
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        self._on_exit = on_exit
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close_output
        self._pidfd: int | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and not self.exited.is_set() else None

    def start(self, command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
        self.exited.clear()
        self.exit_code = None
        self._process = subprocess.Popen(
            bound_to_this_process(command),
            cwd=folder,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", **variables},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        self._pidfd = os.pidfd_open(self._process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._note_exit)

    def kill(self) -> None:
        """End it and its children now. Safe to call twice, and without a start."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
        self._note_exit()

    def output(self, since: int | None = None) -> bytes:
        """Return what it printed after so many bytes; None: the last megabytes."""
        if self._output.closed:
            return b""
        if since is None:
            since = max(0, os.fstat(self._output.fileno()).st_size - OUTPUT_LIMIT_BYTES)
        return os.pread(self._output.fileno(), OUTPUT_LIMIT_BYTES, since)

    def close_output(self) -> None:
        self._output.close()

    def _note_exit(self) -> None:
        if self._process is None or self.exited.is_set():
            return
        self.exit_code = self._process.wait()
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        self.exited.set()
        self._on_exit()
