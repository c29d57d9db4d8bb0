"""The names that holders of leases go by. A name tells which process it belongs to, so that its end can be known.

Processes that run jobs die with the worker that started them (cloud/workers/processes.py). A lease whose worker is
gone is therefore free at once; only where no one can tell, another machine's for example, it has to run out first.
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
    """A name never used before, for a process that this one starts and that dies with it."""
    return f"{_this_machine()}.{os.getpid()}.{_started(os.getpid())}.{secrets.token_hex(8)}"


def life_of(owner: str) -> Life:
    """Whether the process that started the holder lives; unknown for one of another machine or an unknown name."""
    machine, _, rest = owner.partition(".")
    pid, _, rest = rest.partition(".")
    started = rest.partition(".")[0]
    if not machine or machine != _this_machine() or not pid.isdecimal() or not started:
        return "unknown"
    return "alive" if _started(int(pid)) == started else "gone"


@cache
def _this_machine() -> str:
    """This boot of this machine, and the space in which its process ids count; empty where it cannot be known."""
    try:
        boot = (_PROCESSES / "sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink(_PROCESSES / "self/ns/pid")
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {space}".encode()).hexdigest()[:16]


def _started(pid: int) -> str:
    """When that process began, in the kernel's ticks: process ids come again, this with them does not. Empty: dead."""
    try:
        state, *facts = (_PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in ("Z", "X") else facts[18]
