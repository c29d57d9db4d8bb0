"""The kinds of faults that the emulated AWS knows."""

from __future__ import annotations

from typing import Literal, get_args

from cloud.emulator import faults

FaultKind = Literal[
    "throttle",  # 429 before anything happens
    "service_error",  # 500 before anything happens
    "error_after",  # 500 although it was done
    "lost_request",  # the connection breaks before anything happens
    "lost_reply",  # the connection breaks after it was done
    "crash",  # the process of the function is killed while it runs
    "slow_start",  # a new environment takes longer
    "zombie_delete",  # deleted, says the answer, and it is still there
]
KINDS = frozenset(get_args(FaultKind))


class Faults(faults.Faults[FaultKind]):
    """Those of AWS."""
