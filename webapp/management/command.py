"""What commands of `manage.py` share: no system checks, lines that are seen at once, and refusals with an exit code."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from django.core.management.base import BaseCommand

FAILED_EXIT = 1
WRONG_INPUT_EXIT = 2
_ERASE = "\r\x1b[K"
_REDRAWN_AFTER_S = 0.1


class LineCommand(BaseCommand):
    """A command that tells what happens line by line."""

    requires_system_checks: list[str] = []
    _drawn_s = 0.0

    @property
    def has_terminal(self) -> bool:
        return bool(self.stdout.isatty())

    def tell(self, line: str) -> None:
        self.stdout.write(self._erased() + line)
        self.stdout.flush()

    def show_progress(self, text: str) -> None:
        """Write the terminal's last line, or replace it, ten times a second at most."""
        if time.monotonic() - self._drawn_s >= _REDRAWN_AFTER_S:
            room = shutil.get_terminal_size().columns - 1
            self.stdout.write(f"{_ERASE}{text[:room]}", ending="")
            self.stdout.flush()
            self._drawn_s = time.monotonic()

    def _erased(self) -> str:
        """What removes a line of progress that is in the way of another line."""
        drawn, self._drawn_s = self._drawn_s, 0.0
        return _ERASE if drawn else ""

    def refuse(self, sentence: str, code: int = WRONG_INPUT_EXIT) -> NoReturn:
        """Say why it cannot be done, and exit."""
        if erase := self._erased():
            self.stdout.write(erase, ending="")
            self.stdout.flush()
        self.stderr.write(sentence)
        sys.exit(code)


def on_stop_signals(stop: Callable[[], object]) -> None:
    """Call `stop` at Ctrl-C and at SIGTERM."""
    for wanted in (signal.SIGINT, signal.SIGTERM):
        signal.signal(wanted, lambda *_: stop())
