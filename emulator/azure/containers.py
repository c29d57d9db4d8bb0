"""One container: a process with the variables of its group and no others."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from emulator.child_process import ChildProcess
from emulator.image import Image

# What the image sets beside the place of our sources: one thread for numbers.
_THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class EmulatedContainer:
    """Start it, wait for `exited`, kill it. Everything happens in the emulator's event loop."""

    def __init__(self, name: str, command: Sequence[str], variables: Mapping[str, str], image: Image) -> None:
        self.name = name
        self.began: datetime.datetime | None = None
        self.ended: datetime.datetime | None = None
        self.exit_code: int | None = None
        self._image = image
        self._command = list(command)
        self._variables = dict(variables)
        self._process = ChildProcess(self._note_end)
        self.exited = self._process.exited

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def start(self, *, stub: bool = False) -> None:
        """`stub`: without a process, so that a test can have thousands."""
        self.began, self.ended, self.exit_code = _now(), None, None
        self.exited.clear()
        if not stub:
            program, *arguments = self._command
            program = self._image.python if program == "python" else program
            sources = self._image.sources
            variables = {"PYTHONPATH": str(sources), **_THREADS, **self._variables}
            self._process.start([program, *arguments], sources, variables)

    def kill(self) -> None:
        """End it now. Safe to call twice."""
        self._process.kill()
        if self.began is not None and not self.exited.is_set():
            self.exited.set()
            self._note_end()

    def remove(self) -> None:
        self.kill()
        self._process.close_output()

    def log(self, tail: int | None) -> str:
        text = self._process.output().decode(errors="replace")
        return text if tail is None else "".join(text.splitlines(keepends=True)[-tail:])

    def view(self) -> dict[str, Any]:
        """Return its instance view."""
        if self.began is None:
            return {"restartCount": 0, "currentState": {"state": "Waiting"}, "events": []}
        state: dict[str, Any] = {"state": "Running", "startTime": _text(self.began), "detailStatus": ""}
        if self.ended is not None:
            status = "Completed" if self.exit_code == 0 else "Error"
            state |= {"state": "Terminated", "exitCode": self.exit_code, "finishTime": _text(self.ended)}
            state["detailStatus"] = status
        return {"restartCount": 0, "currentState": state, "events": []}

    def _note_end(self) -> None:
        self.ended, self.exit_code = _now(), self._process.exit_code or 0


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _text(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
