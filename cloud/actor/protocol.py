"""The messages of pullers and the actor gateway, beside the calls and answers of `cloud.actor.wire`.

Every request names the puller. Answers to `lease` and `heartbeat` say how long the puller may live from now on; it ends
by itself if that is not renewed. Results are posted as they are; the gateway never parses one.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from training.engine.codec import CodecError, decode, encode
from training.engine.reports import Message

LEASE, HEARTBEAT, RESULT, LEAVE = (f"/actor/v1/{word}" for word in ("lease", "heartbeat", "result", "leave"))
WEIGHTS = "/actor/v1/weights/"
LONGEST_WAIT_S = 25.0
TOKEN_VARIABLE = "STARLING_RUN_TOKEN"

Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._:-]+$")]
CallId = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[A-Za-z0-9._:-]+$")]


class LeaseRequest(Message):
    """An idle puller requests a call and waits so long for it."""

    puller: Name
    unit: Name
    wait_s: float = Field(ge=0.0, le=LONGEST_WAIT_S)


class Lease(Message):
    """`work`: run this call within its deadline, and send a heartbeat more often than every `lease_s`.

    `now_unix_s` is the gateway's clock, which the times in the call refer to.
    """

    word: Literal["work", "wait", "leave"]
    live_s: float = 0.0
    now_unix_s: float = 0.0
    call_id: str = ""
    request: bytes = b""
    lease_s: float = 0.0
    most_bytes: int = 0


class HeldCall(Message):
    """A heartbeat: the puller runs this call. At `leave`: it gives its call back."""

    puller: Name
    call_id: CallId | Literal[""] = ""


class Beat(Message):
    """The answer to a heartbeat. `drop`: the call is no longer this puller's."""

    word: Literal["go_on", "drop", "leave"]
    live_s: float = 0.0


class Receipt(Message):
    """The answer to a result. `known`: it has been answered before. `unwanted`: withdrawn, given up, or never yours."""

    word: Literal["taken", "known", "unwanted"]


def pack_lease(lease: Lease) -> bytes:
    return encode(lease.model_dump())


def read_lease(data: bytes) -> Lease:
    """Return the lease. Raises ValueError for anything else."""
    try:
        return Lease.model_validate(decode(data), strict=True)
    except (CodecError, ValidationError, TypeError, RecursionError) as error:
        raise ValueError(f"not a lease: {type(error).__name__}") from None
