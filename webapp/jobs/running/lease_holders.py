"""Names of lease holders. A name identifies its process, so that the process's end can be detected.

Processes that run jobs die with the worker that started them (cloud/workers/processes.py). So a lease whose
worker is gone is free at once. Where that cannot be known, on another machine for example, it has to expire
first.
"""

import hashlib
import os
import secrets
from functools import cache
from pathlib import Path
from typing import Literal

_PROCESSES = Path("/proc")

Life = Literal["alive", "gone", "unknown"]


def new_owner() -> str:
    """Return a new name for a process that this one starts and that dies with it."""
    return f"{_this_machine()}.{os.getpid()}.{_started(os.getpid())}.{secrets.token_hex(8)}"


def find_liveness(owner: str) -> Life:
    """Return whether the process that started the holder lives; unknown for another machine or an unknown
    name."""
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
