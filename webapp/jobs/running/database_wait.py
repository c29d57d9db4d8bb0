"""A run waits while the database cannot be written: its disk is full or read-only.

Each write of the run is one transaction, so one that failed has changed nothing and is tried again. What the run
learned stays in memory meanwhile: no round is repeated, and none is paid twice.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from django.db import DatabaseError, connection

from training.ports import Ledger, Reservation, Room, Settlement
from training.reports import Spend
from webapp.database_faults import lacks_storage

log = logging.getLogger(__name__)

TRY_EVERY_S = 1.0
Result = TypeVar("Result")


class DatabaseWait:
    """Tries a deed again each second while the database cannot be written, until `stop` is set."""

    def __init__(self, job_id: str, stop: threading.Event) -> None:
        self._job_id = job_id
        self._stop = stop

    def __call__(self, deed: Callable[[], Result]) -> Result:
        """Return what the deed returns. Once `stop` is set, the error of its last try is raised."""
        waits = False
        while True:
            try:
                result = deed()
            except DatabaseError as error:
                # Inside a transaction a second try would not undo the first.
                if not lacks_storage(error) or connection.in_atomic_block:
                    raise
                if not waits:
                    log.warning("job %s waits for the database: %s", self._job_id, error)
                    waits = True
                if self._stop.wait(TRY_EVERY_S):
                    raise
            else:
                if waits:
                    log.info("job %s goes on: the database can be written", self._job_id)
                return result


class PatientLedger:
    """A ledger whose writes and reads wait for the database. Each may be tried again: ids are booked once."""

    def __init__(self, ledger: Ledger, wait: DatabaseWait) -> None:
        self._ledger = ledger
        self._wait = wait

    def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
        return self._wait(partial(self._ledger.reserve, batch))

    def settle(self, batch: Sequence[Settlement]) -> None:
        self._wait(partial(self._ledger.settle, batch))

    def release(self, ids: Sequence[str]) -> None:
        self._wait(partial(self._ledger.release, ids))

    def headroom(self) -> int:
        return self._wait(self._ledger.headroom)

    def room(self) -> Room:
        return self._wait(self._ledger.room)

    def spend(self) -> Spend:
        return self._wait(self._ledger.spend)
