"""The result of one call on this machine, with its real times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cloud.failures import Failure
from training.functions.body import Result


@dataclass(frozen=True)
class Execution:
    """One for each call that an executor accepts. `cold`: the process had run nothing before.

    `waited_s` is from the submission until the call was sent, `transfer_s` the time of both transfers.
    """

    call_id: str
    result: Result | Failure
    waited_s: float = 0.0
    run_s: float = 0.0
    transfer_s: float = 0.0
    cold: bool = False


Deliver = Callable[[Execution], None]
