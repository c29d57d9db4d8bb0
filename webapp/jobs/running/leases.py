"""Job leases: at most one holder at a time, each with an epoch that only grows.

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

from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import ACTIVE
from webapp.jobs.models import Desired, Job

log = logging.getLogger(__name__)

LEASE_TTL = timedelta(seconds=90)
RENEW_EVERY = timedelta(seconds=3)
NOT_HELD: dict[str, Any] = {"lease_owner": "", "lease_expires_at": None}
"""The changes that release the lease with the job's end or pause."""
LEASE_LOST_EXIT = 75
CRASHED_EXIT = 70
"""Exit codes of a process that holds a lease. It has recorded a crash itself; the worker records a lost lease."""
_RETRY_S = 0.5


def idle(now: datetime) -> Q:
    """Return jobs without a valid lease."""
    return Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lte=now)


def is_idle(lease_expires_at: datetime | None, now: datetime) -> bool:
    return lease_expires_at is None or lease_expires_at <= now


@transaction.atomic
def take_lease(*, job_id: str, owner: str, clock: Clock = SYSTEM_CLOCK) -> int | None:
    """Return the new epoch; None if the job must not run, or another process runs it already."""
    now = clock.shared_now()
    free = Job.objects.filter(idle(now), pk=job_id, observed__in=ACTIVE, desired=Desired.RUN)
    taken = free.update(lease_owner=owner, lease_epoch=F("lease_epoch") + 1, lease_expires_at=now + LEASE_TTL)
    return Job.objects.values_list("lease_epoch", flat=True).get(pk=job_id) if taken else None


def renew_lease(*, job_id: str, epoch: int, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Renew the lease; False if another process has it. An expired lease that no one has taken is renewed."""
    held = Job.objects.filter(pk=job_id, lease_epoch=epoch).exclude(lease_owner="")
    return bool(held.update(lease_expires_at=clock.shared_now() + LEASE_TTL))


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
    """Renews the lease while the block runs: a job's, or by `renew` another kind. Ends the process once another
    process has the lease.

    A late renewal ends nothing: on a busy machine a run may get no CPU time for longer than its lease lasts. The
    process ends abruptly, because its successor must not find it still at work. Its worker processes die with it.
    """

    def __init__(self, job_id: str, epoch: int, renew: Callable[[], bool] | None = None) -> None:
        self._job_id = job_id
        self._renew = renew or (lambda: renew_lease(job_id=job_id, epoch=epoch))
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
            log.warning("%s: lease not renewed: %s", self._job_id, error)
            connection.close()
            return False
        if not ours and not self._over.is_set():
            self._abort("someone else holds the lease")
        return True

    def _abort(self, why: str) -> None:
        log.error("%s: %s; this process ends at once", self._job_id, why)
        os._exit(LEASE_LOST_EXIT)
