"""Patience with starting processes: a wait lasts as long as they make progress."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_TELL_EVERY_S = 30.0
_LAST_LINES = 10
_LEAST_TICKS = 50
"""Half a second of processor time: a process that only answers whether it is ready uses less in a minute."""


class StartedProcess(Protocol):
    """A started process with the number of lines that it has written, and the last of them."""

    @property
    def name(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def heard(self) -> int: ...
    @property
    def lines(self) -> list[str]: ...


@dataclass(frozen=True)
class StartupPatience:
    """How long to wait for processes: as long as they make progress, and never longer than `at_most_s`.

    A process gets on while it writes lines or uses processor time: on a busy machine a start may take minutes.
    """

    without_progress_s: float = 60.0
    at_most_s: float = 900.0


PATIENT = StartupPatience()


class Waiting:
    """A wait until processes are `what`. It reports now and then what it waits for, and ends once they are stuck."""

    def __init__(
        self,
        say: Callable[[str, str], None],
        what: str,
        patience: StartupPatience,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._what = what
        self._patience = patience
        self._now_s = now_s
        self._began_s = self._progress_s = self._reported_s = now_s()
        self._seen: dict[str, tuple[int, int]] = {}

    def given_up(self, waiting: Sequence[StartedProcess]) -> str:
        """Why the wait ends, with the processes' last lines; empty while it goes on."""
        now_s = self._now_s()
        if self._got_on(waiting):
            self._progress_s = now_s
        waited_s, stuck_s = now_s - self._began_s, now_s - self._progress_s
        if stuck_s > self._patience.without_progress_s:
            return (
                f"{_names(waiting)}: not {self._what} after {waited_s:.0f} s, and nothing happened for {stuck_s:.0f} s."
                f" {_last_words(waiting)}"
            )
        if waited_s > self._patience.at_most_s:
            return f"{_names(waiting)}: not {self._what} after {waited_s:.0f} s. {_last_words(waiting)}"
        if now_s - self._reported_s > _TELL_EVERY_S:
            self._reported_s = now_s
            self._say("starling", f"{_names(waiting)}: not {self._what} after {waited_s:.0f} s; still at it.")
        return ""

    def _got_on(self, waiting: Sequence[StartedProcess]) -> bool:
        """Whether a process wrote a line, or used enough processor time since the last line."""
        seen = {process.name: (process.heard, _processor_ticks(process)) for process in waiting}
        before, got_on = self._seen, False
        for name, (heard, ticks) in seen.items():
            heard_before, ticks_before = before.get(name, (-1, 0))
            if heard != heard_before or not 0 <= ticks - ticks_before < _LEAST_TICKS:
                before[name], got_on = (heard, ticks), True
        return got_on


def _names(waiting: Sequence[StartedProcess]) -> str:
    return " and ".join(process.name for process in waiting)


def _last_words(waiting: Sequence[StartedProcess]) -> str:
    """The last lines of each of them, named."""
    said = []
    for process in waiting:
        lines = "".join(f"\n  {line}" for line in process.lines[-_LAST_LINES:])
        said.append(f"Last lines of {process.name}:{lines}" if lines else f"{process.name} said nothing.")
    return "\n".join(said)


def _processor_ticks(process: StartedProcess) -> int:
    """The processor time of its process and of finished children; 0 if the system does not report it."""
    if process.pid is None:
        return 0
    try:
        facts = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(ticks) for ticks in facts[11:15])
    except (OSError, ValueError, IndexError):
        return 0
