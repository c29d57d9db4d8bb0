"""A worker that computes nothing, to measure transfers alone: it returns as many bytes as a call requests steps."""

from __future__ import annotations

import signal
import socket
import sys
import time

from cloud.workers import frames
from cloud.workers.processes import die_with_parent
from training.calls.rollout import RolloutRequest
from training.engine.reports import Usage

_READ_BYTES = 1 << 18


def main(arguments: list[str]) -> None:
    die_with_parent(int(arguments[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox = frames.Inbox()
    with socket.socket(fileno=int(arguments[0])) as connection:
        connection.sendall(frames.pack(frames.Ready()))
        while data := connection.recv(_READ_BYTES):
            inbox.feed(data)
            for body in inbox.bodies():
                message = frames.to_worker(body)
                if isinstance(message, frames.RunFrame):
                    connection.sendall(frames.pack(_answer(message)))


def _answer(message: frames.RunFrame) -> frames.DoneFrame:
    began_s = time.perf_counter()
    request = message.call.request
    payload = bytes(request.steps) if isinstance(request, RolloutRequest) else b""
    return frames.DoneFrame(
        call_id=message.call.id,
        payload=payload,
        slot_state=None,
        usage=Usage(),
        run_s=time.perf_counter() - began_s,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
