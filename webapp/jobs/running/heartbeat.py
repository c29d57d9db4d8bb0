"""Keeps a run's lease alive from a thread of its own, and ends the process when it no longer can.

Ending is abrupt on purpose: whoever takes the job over after the lease ran out must not meet us still at work. Worker
processes die with this one.
"""

import logging
import os
import threading
import time
from collections.abc import Callable

from django.db import DatabaseError, connection

from webapp.jobs.running.leases import ABORT_BEFORE_EXPIRY, LEASE_TTL, RENEW_EVERY, renew_lease

log = logging.getLogger(__name__)

LEASE_LOST_EXIT = 75
_ALONE_AFTER_S = (LEASE_TTL - ABORT_BEFORE_EXPIRY).total_seconds()
_RETRY_S = 0.5


class Heartbeat:
    """Renews the lease while the block runs: a job's, or by `renew` whatever else a process holds."""

    def __init__(self, job_id: str, epoch: int, renew: Callable[[], bool] | None = None) -> None:
        self._job_id = job_id
        self._renew = renew or (lambda: renew_lease(job_id=job_id, epoch=epoch))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._renewed_s = time.monotonic()

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
            if time.monotonic() - self._renewed_s > _ALONE_AFTER_S:
                self._abort("the lease could not be renewed in time")
        connection.close()

    def _renewed(self) -> bool:
        asked_s = time.monotonic()
        if asked_s - self._renewed_s > _ALONE_AFTER_S:  # we were stopped for long: do not even ask
            return False
        try:
            ours = self._renew()
        except DatabaseError as error:
            log.warning("%s: lease not renewed: %s", self._job_id, error)
            connection.close()
            return False
        if not ours and not self._over.is_set():
            self._abort("somebody else holds the lease")
        self._renewed_s = asked_s
        return True

    def _abort(self, why: str) -> None:
        log.error("%s: %s; this process ends at once", self._job_id, why)
        os._exit(LEASE_LOST_EXIT)
