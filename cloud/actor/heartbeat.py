"""A puller's heartbeats, and the end of its process.

A thread reports every few seconds that a call is running and learns whether it is still wanted. The same thread ends
the process when its time is over, even if the call hangs or the gateway is silent.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from cloud.actor import protocol
from cloud.actor.connection import GatewayConnection, GatewayUnreachable, RequestRefused

_LOOK_EVERY_S = 0.5
_BEATS_A_LEASE = 4
_END_GRACE_S = 5.0


class Dropped(BaseException):
    """The call is no longer wanted. Not an Exception, so that no `except Exception` of what it runs catches it."""


class Terminated(BaseException):
    """The process received a signal to end."""


class DeadManTimer:
    """`with heartbeat:` in the main thread; `live` prolongs the process's life from now on."""

    def __init__(self, connection: GatewayConnection, puller: str, *, live_s: float) -> None:
        self._connection = connection
        self._puller = puller
        self._ends_s = time.monotonic() + live_s
        self._call_id = ""
        self._lease_s = 0.0
        self._beat_s = 0.0
        self._droppable = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> None:
        signal.signal(signal.SIGUSR1, self._drop)
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGINT, self._terminate)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()

    def live(self, seconds: float) -> None:
        """Set the time that is left, as the gateway says. An end that has passed stays."""
        now_s = time.monotonic()
        self._ends_s = now_s + seconds if seconds > 0 else min(self._ends_s, now_s)

    def seconds_left(self) -> float:
        return max(0.0, self._ends_s - time.monotonic())

    def time_is_over(self) -> bool:
        return time.monotonic() >= self._ends_s

    @contextmanager
    def during(self, call_id: str, lease_s: float) -> Iterator[DeadManTimer]:
        """Send heartbeats of this call while the block runs."""
        self._lease_s, self._beat_s = lease_s, time.monotonic() + lease_s / _BEATS_A_LEASE
        self._call_id = call_id
        try:
            yield self
        finally:
            self._call_id = ""

    @contextmanager
    def droppable(self) -> Iterator[None]:
        """Run a block that `Dropped` interrupts when the call is no longer wanted."""
        self._droppable = True
        try:
            yield
        finally:
            self._droppable = False

    def _drop(self, number: int, frame: FrameType | None) -> None:
        if self._droppable:
            self._droppable = False
            raise Dropped

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        # Only once: the puller now says goodbye.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise Terminated

    # These run in the thread.

    def _beat(self) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            if time.monotonic() > self._ends_s + _END_GRACE_S:
                print("starling puller: its time is over", file=sys.stderr, flush=True)
                os._exit(0)
            call_id = self._call_id
            if call_id and time.monotonic() >= self._beat_s:
                self._beat_s = time.monotonic() + self._lease_s / _BEATS_A_LEASE
                self._send(call_id)

    def _send(self, call_id: str) -> None:
        body = protocol.HeldCall(puller=self._puller, call_id=call_id).model_dump_json().encode()
        try:
            beat = protocol.Beat.model_validate_json(
                self._connection.request(
                    "POST", protocol.HEARTBEAT, body, timeout_s=max(2.0, self._lease_s / 2)
                )
            )
        except (GatewayUnreachable, ValueError):
            return
        except RequestRefused:
            beat = protocol.Beat(word="leave")
        if beat.word == "go_on":
            self.live(beat.live_s)
        elif self._call_id == call_id:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
