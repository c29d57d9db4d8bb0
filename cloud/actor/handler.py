"""The entry point on AWS Lambda: `cloud.actor.handler.handler`.

Imports happen when the process starts, so that they do not count into the first call's deadline.
"""

from __future__ import annotations

import base64
import os
from typing import Any

import training.functions.bodies  # noqa: F401 - now, and not within the first call's deadline
from cloud.actor.body import ActorMemory
from cloud.actor.wire import RESULT_LIMIT_BYTES, Envelope, MalformedMessage, from_event
from training.rl.environments.native.cores import cores_with_memory

# The end of the function's time is left for packing the answer.
_PACKING_S = 0.5

_PROVISIONED = os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "provisioned-concurrency"
# Memory that comes with one core.
_CORE_MB = 1769
_MEMORY_MB = int(os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "0"))
_ACTOR = ActorMemory(provisioned=_PROVISIONED, cores=cores_with_memory(_MEMORY_MB, _CORE_MB))


def handler(event: Any, context: Any) -> dict[str, str]:
    """Run one call. Print a line that links the call to the request in the provider's log, by which it is billed."""
    try:
        envelope = from_event(event)
    except MalformedMessage:
        # The envelope is not ours: an empty request gets the answer that says so.
        envelope = Envelope("", b"")
    call_id = envelope.call_id
    print(log_line(call_id, context.aws_request_id, provisioned=_PROVISIONED), flush=True)
    within_s = context.get_remaining_time_in_millis() / 1000 - _PACKING_S
    answer = _ACTOR.answer(
        envelope.data, weights=envelope.weights, within_s=within_s, most_bytes=RESULT_LIMIT_BYTES
    )
    return {"call": call_id, "body": base64.b64encode(answer).decode("ascii")}


def log_line(call_id: str, request_id: str, *, provisioned: bool = False) -> str:
    """Return the line. It says if the instance is provisioned, because such time has its own price."""
    return f"starling call {call_id} request {request_id}{' ready' if provisioned else ''}"
