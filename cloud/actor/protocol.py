"""What pullers and the actor gateway say to each other, beside the calls and answers of `cloud.wire`.

Every question names the puller. Answers to `lease` and `heartbeat` say how long the puller may live from now on: it
ends by itself when nobody renews that. Results are posted as they are; the gateway never looks into one.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from training.codec import CodecError, decode, encode
from training.reports import Message

LEASE, HEARTBEAT, RESULT, LEAVE = (f"/actor/v1/{word}" for word in ("lease", "heartbeat", "result", "leave"))
WEIGHTS = "/actor/v1/weights/"
LONGEST_WAIT_S = 25.0
TOKEN_VARIABLE = "STARLING_RUN_TOKEN"

Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._:-]+$")]
CallId = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[A-Za-z0-9._:-]+$")]


class Ask(Message):
    """I have nothing to do. I wait so long for an answer."""

    puller: Name
    unit: Name
    wait_s: float = Field(ge=0.0, le=LONGEST_WAIT_S)


class Lease(Message):
    """`work`: run this call within its deadline, and say that you are at it more often than every `lease_s`.

    `now_unix_s` is the gateway's clock, by which the call's own moments are meant.
    """

    word: Literal["work", "wait", "leave"]
    live_s: float = 0.0
    now_unix_s: float = 0.0
    call_id: str = ""
    request: bytes = b""
    lease_s: float = 0.0
    most_bytes: int = 0


class Holding(Message):
    """I am at this call; or, as a farewell, I give it back and go."""

    puller: Name
    call_id: CallId | Literal[""] = ""


class Beat(Message):
    """`drop`: nobody wants that call of you any more."""

    word: Literal["go_on", "drop", "leave"]
    live_s: float = 0.0


class Receipt(Message):
    """`known`: an answer to it is there already. `unwanted`: it was withdrawn, given up, or never yours."""

    word: Literal["taken", "known", "unwanted"]


def pack_lease(lease: Lease) -> bytes:
    return encode(lease.model_dump())


def read_lease(data: bytes) -> Lease:
    """ValueError for anything else."""
    try:
        return Lease.model_validate(decode(data), strict=True)
    except (CodecError, ValidationError, TypeError, RecursionError) as error:
        raise ValueError(f"not a lease: {type(error).__name__}") from None
