"""The pool's handle of a worker: one process, one socket, one call at a time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from typing import IO, Literal

from cloud.workers import frames
from training.engine.child_variables import clean_variables
from training.engine.messages import Call
from training.rl import packages

DEFAULT_COMMAND = (sys.executable, "-m", "cloud.workers.process")
STARTS_TRIED = 3

_READ_BYTES = 1 << 18
_TAIL_BYTES = 2000

State = Literal["starting", "idle", "busy", "broken"]


class WorkerProcess:
    """Starts, feeds, kills and replaces one worker. It is `broken` after three failed starts in a row."""

    def __init__(self, number: int, command: Sequence[str] = DEFAULT_COMMAND) -> None:
        self.number = number
        self.state: State = "starting"
        self.last_words = ""
        self.calls_run = 0
        self._command = tuple(command)
        self._failed_starts = 0
        self.start()

    def start(self) -> None:
        """Start a fresh process and return at once. The process sends `Ready` when it is."""
        self.socket, theirs = socket.socketpair()
        self.socket.setblocking(False)
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in kill
        with theirs:
            self._process = subprocess.Popen(
                [*self._command, str(theirs.fileno()), str(os.getpid()), *packages.enabled()],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env=clean_variables(),
                start_new_session=True,
            )
        self.state = "starting"
        self.calls_run = 0
        self._inbox = frames.Inbox()
        self._unsent: deque[memoryview] = deque()
        self._held: frames.KeptBlobs[bool] = frames.KeptBlobs()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def sending(self) -> bool:
        return bool(self._unsent)

    def run(self, call: Call, weights: bytes | None) -> None:
        """Send a call, and its weights if this process does not have them yet."""
        if call.weights is not None and weights is not None and call.weights.sha256 not in self._held:
            self._held.add(call.weights.sha256, True)
            self._unsent.append(memoryview(frames.pack(frames.Hold(ref=call.weights, data=weights))))
        self._unsent.append(memoryview(frames.pack(frames.RunFrame(call=call))))
        self.state = "busy"
        self.send()

    def send(self) -> None:
        """Write as much as the socket accepts now. `receive` notices a dead worker."""
        while self._unsent:
            try:
                sent = self.socket.send(self._unsent[0])
            except BlockingIOError:
                return
            except OSError:
                self._unsent.clear()
                return
            if sent < len(self._unsent[0]):
                self._unsent[0] = self._unsent[0][sent:]
            else:
                self._unsent.popleft()

    def receive(self) -> list[frames.FromWorker] | None:
        """Return new messages; None if the worker is gone or sent something invalid."""
        try:
            data = self.socket.recv(_READ_BYTES)
            if not data:
                return None
            self._inbox.feed(data)
            messages = [frames.from_worker(body) for body in self._inbox.bodies()]
        except BlockingIOError:
            return []
        except (OSError, ValueError):
            return None
        for message in messages:
            if isinstance(message, frames.Ready):
                self._failed_starts = 0
            else:
                self.calls_run += 1
            self.state = "idle"
        return messages

    def kill(self) -> str:
        """End the process now. Return how it ended and what it printed last."""
        self._process.kill()
        code = self._process.wait()
        self.socket.close()
        self._unsent.clear()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        with self._output as output:
            size = output.seek(0, os.SEEK_END)
            output.seek(max(0, size - _TAIL_BYTES))
            tail = output.read().decode(errors="replace").strip()
        self.last_words = f"ended with {how}" + (f"; it printed last: {tail}" if tail else "")
        return self.last_words

    def replace(self) -> None:
        """Start a new process after a kill, unless too many in a row never became ready."""
        if self.state == "starting":
            self._failed_starts += 1
        if self._failed_starts >= STARTS_TRIED:
            self.state = "broken"
            return
        self.start()
