"""How a process that holds a lease leaves when it is stopped (SIGTERM): in time, and never as a crash.

Its work looks at `asked` about once a second and hands over in good order, with a checkpoint. Work that does not look,
because it imports, opens a platform or waits for a long answer, is left behind: the lease is given back and the process
ends. What was done since the last checkpoint is then repeated.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from django.db import DatabaseError, connection

log = logging.getLogger(__name__)

HEARD_WITHIN_S = 2.0
"""Work that has not looked by then will not."""
LEAVE_WITHIN_S = 4.0
"""Shorter than the worker's own grace (`manage.py up`), so that no one has to kill a process that leaves."""


class Asked(threading.Event):
    """Whether the process is to end; remembers that its work has seen so."""

    heard = False

    def is_set(self) -> bool:
        self.heard = super().is_set()
        return self.heard


class Leaving:
    """The wish that this process ends. `give_back` gives its lease back; it must do no harm without one."""

    def __init__(
        self,
        give_back: Callable[[], object],
        *,
        pause: Callable[[float], object] = time.sleep,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self.asked = Asked()
        self._give_back = give_back
        self._pause = pause
        self._end = end
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        threading.Thread(target=self._wait, name="leaving", daemon=True).start()

    def listen(self) -> None:
        """From now on SIGTERM asks. The kernel's word is heard also while Python is in the middle of a long call."""
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

    def ask(self) -> None:
        """As SIGTERM does."""
        os.write(self._writer, bytes([signal.SIGTERM]))

    def leave(self, code: int) -> None:
        """End the process, whose work is over. To tear torch down takes seconds on a busy machine, for nothing."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._end(code)

    def _wait(self) -> None:
        while signal.SIGTERM not in os.read(self._reader, 64):
            pass
        self.asked.set()
        self._pause(HEARD_WITHIN_S)
        if self.asked.heard:
            self._pause(LEAVE_WITHIN_S - HEARD_WITHIN_S)
        try:
            self._give_back()
        except DatabaseError as error:  # the worker that watches this process gives it back as well
            log.warning("the lease was not given back: %s", error)
        finally:
            connection.close()
        self.leave(0)
