"""A run waits while the database cannot be written: its disk is full or read-only, or its server is away.

Each write of the run is one transaction, so one that failed has changed nothing and is tried again. What the run
learned stays in memory meanwhile: no round is repeated, and none is paid twice. A server that goes down in the middle
of a commit may have kept it, so each write finds what it has written before.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from django.db import DatabaseError, connection

from cloud.accounts.register import CreateCounter, Holder, Kind, Register
from cloud.platforms.pulled import ReachableMailbox
from training.engine.ports import Ledger, Mailbox, Offer, OfferEnd, Puller, Reservation, Room, Settlement
from training.engine.reports import Spend
from webapp.database.faults import is_unavailable

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
                if not is_unavailable(error) or connection.in_atomic_block:
                    raise
                connection.close_if_unusable_or_obsolete()
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


class PatientMailbox:
    """A mailbox whose writes and reads wait for the database. Each may be repeated."""

    def __init__(self, mailbox: Mailbox, wait: DatabaseWait) -> None:
        self._mailbox = mailbox
        self._wait = wait

    def publish(self, sha256: str, blob: bytes) -> None:
        self._wait(partial(self._mailbox.publish, sha256, blob))

    def drop(self, sha256s: Sequence[str]) -> None:
        self._wait(partial(self._mailbox.drop, sha256s))

    def offer(self, batch: Sequence[Offer]) -> None:
        self._wait(partial(self._mailbox.offer, batch))

    def withdraw(self, call_ids: Sequence[str]) -> None:
        self._wait(partial(self._mailbox.withdraw, call_ids))

    def take(self, timeout_s: float) -> list[OfferEnd]:
        return self._wait(partial(self._mailbox.take, timeout_s))

    def wake(self) -> None:
        self._mailbox.wake()

    def stay(self, seconds: float) -> None:
        self._wait(partial(self._mailbox.stay, seconds))

    def pullers(self) -> list[Puller]:
        return self._wait(self._mailbox.pullers)

    def dismiss(self, names: Sequence[str]) -> None:
        self._wait(partial(self._mailbox.dismiss, names))

    def close(self) -> None:
        self._wait(self._mailbox.close)


class PatientRegister:
    """A register of resources, and its count of create requests, that wait for the database. For any thread."""

    def __init__(self, register: Register, creates: CreateCounter, wait: DatabaseWait) -> None:
        self._register = register
        self._creates = creates
        self._wait = wait

    def take(self, windows: Sequence[tuple[int, float]]) -> float:
        return self._wait(partial(self._creates.take, windows))

    def intend(self, name: str, kind: Kind, expires_unix_s: float, facts: Mapping[str, object]) -> None:
        self._wait(partial(self._register.intend, name, kind, expires_unix_s, facts))

    def made(self, name: str, provider_id: str) -> None:
        self._wait(partial(self._register.made, name, provider_id))

    def renew(self, name: str, expires_unix_s: float) -> None:
        self._wait(partial(self._register.renew, name, expires_unix_s))

    def ending(self, name: str) -> None:
        self._wait(partial(self._register.ending, name))

    def gone(self, name: str) -> None:
        self._wait(partial(self._register.gone, name))


def patient_mailbox(reached: ReachableMailbox, wait: DatabaseWait) -> ReachableMailbox:
    """Return the mailbox, and what opens it to pullers, as ones that wait for the database."""
    mailbox = PatientMailbox(reached.mailbox, wait)
    return replace(reached, mailbox=mailbox, new_token=lambda: wait(reached.new_token))


def patient_holder(holder: Holder, wait: DatabaseWait) -> Holder:
    """Return the holder with a register that waits for the database."""
    register = PatientRegister(holder.register, holder.creates, wait)
    return replace(holder, register=register, creates=register)
