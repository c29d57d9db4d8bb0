"""How a process with a lease ends on SIGTERM: in time, and never as a crash.

Its work reads `requested` about once a second and hands over with a checkpoint. Work that cannot read it (it
imports, opens a platform or waits for a long answer) is abandoned: the lease is released and the process
ends. Work since the last checkpoint is then repeated.
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
"""Work that has not reacted by then will not."""
LEAVE_WITHIN_S = 4.0
"""Shorter than the worker's own grace (`manage.py up`), so that a leaving process is not killed."""


class ExitRequest(threading.Event):
    """Whether the process must end; remembers that its work has read this."""

    heard = False

    def is_set(self) -> bool:
        self.heard = super().is_set()
        return self.heard


class GracefulExit:
    """The end of this process. `give_back` releases its lease and must accept that there is none."""

    def __init__(
        self,
        give_back: Callable[[], object],
        *,
        pause: Callable[[float], object] = time.sleep,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self.requested = ExitRequest()
        self._give_back = give_back
        self._pause = pause
        self._end = end
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        threading.Thread(target=self._wait, name="leaving", daemon=True).start()

    def listen(self) -> None:
        """Handle SIGTERM from now on, also while Python is in a long call."""
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

    def ask(self) -> None:
        """Do what SIGTERM does."""
        os.write(self._writer, bytes([signal.SIGTERM]))

    def leave(self, code: int) -> None:
        """End the process after its work. Unloading torch would take seconds on a busy machine."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._end(code)

    def _wait(self) -> None:
        while signal.SIGTERM not in os.read(self._reader, 64):
            pass
        self.requested.set()
        self._pause(HEARD_WITHIN_S)
        if self.requested.heard:
            self._pause(LEAVE_WITHIN_S - HEARD_WITHIN_S)
        try:
            self._give_back()
        except DatabaseError as error:  # the worker releases it as well
            log.warning("the lease was not given back: %s", error)
        finally:
            connection.close()
        self.leave(0)
