"""What commands of `manage.py` share: no system checks, lines that are seen at once, and refusals with an exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from django.core.management.base import BaseCommand

FAILED_EXIT = 1
WRONG_INPUT_EXIT = 2


class LineCommand(BaseCommand):
    """A command that tells what happens line by line."""

    requires_system_checks: list[str] = []

    def tell(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def refuse(self, sentence: str, code: int = WRONG_INPUT_EXIT) -> NoReturn:
        """Say why it cannot be done, and exit."""
        self.stderr.write(sentence)
        sys.exit(code)


def on_stop_signals(stop: Callable[[], object]) -> None:
    """Call `stop` at Ctrl-C and at SIGTERM."""
    for wanted in (signal.SIGINT, signal.SIGTERM):
        signal.signal(wanted, lambda *_: stop())
