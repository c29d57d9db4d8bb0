"""Leases of rows that a process works on, jobs' and scheduler trainings': at most one holder at a time, each with an
epoch that only grows.

Every change is one conditional UPDATE, so of two concurrent attempts one succeeds. All times are the
database's (`Clock.shared_now`), so a machine with a wrong clock neither takes nor loses a lease. A lease
outlives a minute without CPU time on a busy machine. A holder whose process is known to have died loses it at
once.
"""

import hashlib
import logging
import os
import secrets
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal

from django.db import DatabaseError, connection, models, transaction
from django.db.models import F, Q, QuerySet

from webapp.clock import SYSTEM_CLOCK, Clock

log = logging.getLogger(__name__)

LEASE_TTL = timedelta(seconds=90)
RENEW_EVERY = timedelta(seconds=3)
NOT_HELD: dict[str, Any] = {"lease_owner": "", "lease_expires_at": None}
"""The changes that release a lease."""
LEASE_LOST_EXIT = 75
CRASHED_EXIT = 70
"""Exit codes of a process that holds a lease. It has recorded a crash itself; the worker records a lost lease."""
_RETRY_S = 0.5


class LeaseLost(Exception):
    """Another process runs this now; nothing more may be written."""


class Leased(models.Model):
    """A row that one process at a time works on."""

    lease_owner = models.CharField(max_length=100, blank=True, default="")
    lease_epoch = models.BigIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


def idle(now: datetime) -> Q:
    """Return rows without a valid lease."""
    return Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lte=now)


def is_idle(lease_expires_at: datetime | None, now: datetime) -> bool:
    return lease_expires_at is None or lease_expires_at <= now


@transaction.atomic
def take(
    rows: QuerySet[Any], pk: Any, owner: str, *, clock: Clock = SYSTEM_CLOCK, **changes: Any
) -> int | None:
    """Return the new epoch; None if the row is not one of `rows`, or another process has its lease."""
    now = clock.shared_now()
    held = {"lease_owner": owner, "lease_epoch": F("lease_epoch") + 1, "lease_expires_at": now + LEASE_TTL}
    if not rows.filter(idle(now), pk=pk).update(**held, **changes):
        return None
    epoch: int = rows.model._default_manager.values_list("lease_epoch", flat=True).get(pk=pk)
    return epoch


def held(model: type[Leased], pk: Any, epoch: int) -> QuerySet[Any]:
    """Return a query for the row, empty if this epoch no longer holds the lease."""
    return model._default_manager.filter(pk=pk, lease_epoch=epoch).exclude(lease_owner="")


def renew(model: type[Leased], pk: Any, epoch: int, *, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Renew the lease; False if another process has it. An expired lease that no one has taken is renewed."""
    return bool(held(model, pk, epoch).update(lease_expires_at=clock.shared_now() + LEASE_TTL))


def expire_dead(model: type[Leased], *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Expire the leases of workers that are known to have ended: what they ran died with them."""
    now = clock.shared_now()
    rows = model._default_manager.filter(lease_expires_at__gt=now).exclude(lease_owner="")
    for pk, owner in rows.values_list("pk", "lease_owner"):
        if find_liveness(owner) == "gone":
            rows.filter(pk=pk, lease_owner=owner).update(lease_expires_at=now)


# Names of holders. Processes that run jobs die with the worker that started them (cloud/workers/processes.py), and
# a name identifies that worker's process. So a lease whose worker is gone is free at once. Where that cannot be known,
# on another machine for example, it has to expire first.

_PROCESSES = Path("/proc")
Life = Literal["alive", "gone", "unknown"]


def new_owner() -> str:
    """Return a new name for a process that this one starts and that dies with it."""
    return f"{_this_machine()}.{os.getpid()}.{_started(os.getpid())}.{secrets.token_hex(8)}"


def find_liveness(owner: str) -> Life:
    """Return whether the process that started the holder lives; unknown for another machine or an unknown name."""
    machine, _, rest = owner.partition(".")
    pid, _, rest = rest.partition(".")
    started = rest.partition(".")[0]
    if not machine or machine != _this_machine() or not pid.isdecimal() or not started:
        return "unknown"
    return "alive" if _started(int(pid)) == started else "gone"


@cache
def _this_machine() -> str:
    """Return this machine's boot and process-id namespace; empty if unknown."""
    try:
        boot = (_PROCESSES / "sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink(_PROCESSES / "self/ns/pid")
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {space}".encode()).hexdigest()[:16]


def _started(pid: int) -> str:
    """Return the process's start time in kernel ticks, since process ids are reused. Empty: not running."""
    try:
        state, *facts = (_PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in ("Z", "X") else facts[18]


class Heartbeat:
    """Renews the lease while the block runs. Ends the process once another process has it.

    A late renewal ends nothing: on a busy machine a run may get no CPU time for longer than its lease lasts. The
    process ends abruptly, because its successor must not find it still at work. Its worker processes die with it.
    """

    def __init__(self, what: str, renew: Callable[[], bool]) -> None:
        self._what = what
        self._renew = renew
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        if connection.in_atomic_block:
            raise RuntimeError(
                "This block runs inside a transaction, and its lease is renewed by a thread with another connection, "
                "which would not see the lease and end the process. Begin it outside of transactions."
            )
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
            log.warning("%s: lease not renewed: %s", self._what, error)
            connection.close()
            return False
        if not ours and not self._over.is_set():
            self._abort("someone else holds the lease")
        return True

    def _abort(self, why: str) -> None:
        log.error("%s: %s; this process ends at once", self._what, why)
        os._exit(LEASE_LOST_EXIT)
