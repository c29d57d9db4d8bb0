"""Renews a run's lease in a thread of its own, and ends the process once another process has the lease.

A late renewal ends nothing: on a busy machine a run may get no CPU time for longer than its lease lasts. Each
write carries the lease's epoch, so a run that has lost its lease cannot write either. The process ends
abruptly, because its successor must not find it still at work. Its worker processes die with it.
"""

import logging
import os
import threading
from collections.abc import Callable

from django.db import DatabaseError, connection

from webapp.jobs.running.leases import RENEW_EVERY, renew_lease

log = logging.getLogger(__name__)

LEASE_LOST_EXIT = 75
_RETRY_S = 0.5


class Heartbeat:
    """Renews the lease while the block runs: a job's, or by `renew` another kind."""

    def __init__(self, job_id: str, epoch: int, renew: Callable[[], bool] | None = None) -> None:
        self._job_id = job_id
        self._renew = renew or (lambda: renew_lease(job_id=job_id, epoch=epoch))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        pause_s = RENEW_EVERY.total_seconds()
        while not self._over.wait(pause_s):
            pause_s = RENEW_EVERY.total_seconds() if self._renewed() else _RETRY_S
        connection.close()

    def _renewed(self) -> bool:
        try:
            ours = self._renew()
        except DatabaseError as error:
            log.warning("%s: lease not renewed: %s", self._job_id, error)
            connection.close()
            return False
        if not ours and not self._over.is_set():
            self._abort("someone else holds the lease")
        return True

    def _abort(self, why: str) -> None:
        log.error("%s: %s; this process ends at once", self._job_id, why)
        os._exit(LEASE_LOST_EXIT)
