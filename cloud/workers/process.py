"""One worker process: receives calls from its pool over a socket, runs their bodies, keeps environments warm.

It starts as `python -m cloud.workers.process FD PARENT_PID [PACKAGE…]`; the packages are those whose environments may
be used. It dies with the pool's process, and ends when the socket closes. Rollouts need only numpy, so nothing here
imports torch.
"""

from __future__ import annotations

import hashlib
import signal
import socket
import sys
import time

import training.functions.bodies  # noqa: F401 - now, and not within the first call's deadline
from cloud import failures
from cloud.workers import frames
from cloud.workers.processes import die_with_parent
from training.engine.messages import Call
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl import packages

_READ_BYTES = 1 << 18


def serve(connection: socket.socket) -> None:
    """Answer each call with one message until the socket is closed."""
    inbox = frames.Inbox()
    blobs: frames.KeptBlobs[bytes] = frames.KeptBlobs()
    warm_cache = WarmCache()
    connection.sendall(frames.pack(frames.Ready()))
    while data := connection.recv(_READ_BYTES):
        inbox.feed(data)
        for body in inbox.bodies():
            message = frames.to_worker(body)
            if isinstance(message, frames.Hold):
                blobs.add(message.ref.sha256, message.data)
                continue
            answer = _answer(message.call, blobs, warm_cache)
            if isinstance(answer, frames.Broke):
                # An interrupted body may have left its environment in an undefined state.
                warm_cache = WarmCache()
            connection.sendall(frames.pack(answer))


def _answer(
    call: Call, blobs: frames.KeptBlobs[bytes], warm_cache: WarmCache
) -> frames.DoneFrame | frames.Broke:
    began_s = time.perf_counter()
    try:
        result = execute(call, _weights(call, blobs), warm_cache)
    except Exception as error:
        why = failures.from_exception(error)
        return frames.Broke(
            call_id=call.id, reason=why.reason, reason_code=why.code, run_s=time.perf_counter() - began_s
        )
    return frames.DoneFrame(
        call_id=call.id,
        payload=result.payload,
        slot_state=result.slot_state,
        usage=result.usage,
        run_s=time.perf_counter() - began_s,
    )


def _weights(call: Call, blobs: frames.KeptBlobs[bytes]) -> bytes | None:
    if call.weights is None:
        return None
    data = blobs.get(call.weights.sha256)
    if data is None or hashlib.sha256(data).hexdigest() != call.weights.sha256:
        raise ValueError(
            f"the weights of version {call.weights.version} did not arrive as they were published"
        )
    return data


def main(arguments: list[str]) -> None:
    descriptor, parent_pid = int(arguments[0]), int(arguments[1])
    packages.enable(arguments[2:])
    die_with_parent(parent_pid)
    # Ctrl-C in the terminal is for the job, which then ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as connection:
        serve(connection)


if __name__ == "__main__":
    main(sys.argv[1:])
