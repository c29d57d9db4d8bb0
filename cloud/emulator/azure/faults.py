"""The kinds of faults that the emulated Azure knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from cloud.emulator import faults

FaultKind = Literal[
    "throttle",  # 429 with Retry-After before anything happens
    "service_error",  # 503 before anything happens
    "error_after",  # 500 although it was done
    "lost_request",  # the connection breaks before anything happens
    "lost_reply",  # the connection breaks after it was done
    "slow_start",  # a group takes longer to start
    "failed_start",  # the operation fails, and the group stays as failed
    "crash",  # a container is killed soon after its start
    "zombie_delete",  # deleted, says the answer, and it runs on and is billed for a while
]
KINDS = frozenset(get_args(FaultKind))


@dataclass
class Faults(faults.Faults[FaultKind]):
    """Those of Azure. `crash_after_s`: how long a container lives that is to be killed."""

    zombie_s: float = 2.0
    crash_after_s: float = 1.0
