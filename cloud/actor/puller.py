"""An actor that fetches its work: in a container, or on any machine that can reach the gateway.

    python -m cloud.actor.puller --gateway https://starling.example.org

It needs only that address, and a token that opens one run: in the environment variable STARLING_RUN_TOKEN, or in a file
that --token-file names. It ends by itself: when the gateway says so, when the run's time is not renewed (--live, then
as the gateway answers), when it received no work for --idle seconds, when the gateway cannot be reached for
--unreachable seconds, and on SIGTERM, after which its call goes to another actor at once.
Exit codes: 0 when it was done, 2 when the command or the token is wrong, 3 when the gateway was gone.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import urlencode

from pydantic import ValidationError

import training.functions.bodies  # noqa: F401 - now, and not within the first call's deadline
from cloud.actor import protocol
from cloud.actor.body import ActorMemory
from cloud.actor.connection import GatewayConnection, GatewayUnreachable, RequestRefused
from cloud.actor.heartbeat import DeadManTimer, Dropped, Terminated
from cloud.actor.protocol import TOKEN_VARIABLE
from cloud.actor.wire import REQUEST_LIMIT_BYTES

DONE, WRONG, GONE = 0, 2, 3
_TRANSFER_S = 120.0
_WEIGHTS_TRIES = 4


class PullLoop:
    """One process, one call at a time. Call `run` in the main thread, the only one that deadlines can interrupt."""

    def __init__(self, options: argparse.Namespace, token: str) -> None:
        self._connect: Callable[[], GatewayConnection] = lambda: GatewayConnection(
            options.gateway, token, options.ca_file
        )
        self._connection = self._connect()
        self._name = f"{_plain(socket.gethostname())[:40]}-{os.getpid()}-{secrets.token_hex(4)}"
        self._unit = _plain(options.unit or socket.gethostname())
        self._cores = options.cores
        self._idle_s, self._unreachable_s = options.idle, options.unreachable
        self._heartbeat = DeadManTimer(self._connect(), self._name, live_s=options.live)
        self._ahead_s = 0.0
        self._actor = self._new_actor()

    def run(self) -> int:
        """Work until there is a reason to end. Return the exit code."""
        with self._heartbeat:
            try:
                code, why = self._work_until_done()
            except Terminated:
                code, why = DONE, "stopped by a signal"
            self._say_goodbye()
        say(f"{why}; goodbye")
        return code

    def _work_until_done(self) -> tuple[int, str]:
        """Return the exit code and the reason."""
        answered_s = busy_s = time.monotonic()
        fails = 0
        while not self._heartbeat.time_is_over():
            try:
                lease = self._lease()
            except (GatewayUnreachable, ValueError) as error:
                if time.monotonic() - answered_s > self._unreachable_s:
                    return GONE, f"no answer from the gateway for {self._unreachable_s:g} s ({error})"
                fails += 1
                time.sleep(min(10.0, 0.2 * 2 ** min(fails, 6)) * random.uniform(0.5, 1.0))
                continue
            except RequestRefused as error:
                return (
                    WRONG,
                    f"the gateway refuses this token ({error}): the run is over, or the token has ended",
                )
            answered_s, fails = time.monotonic(), 0
            self._heartbeat.live(lease.live_s)
            if lease.word == "leave":
                return DONE, "the gateway has no more work for it"
            if lease.word == "work":
                self._work(lease)
                busy_s = answered_s = time.monotonic()
            elif self._idle_s and time.monotonic() - busy_s > self._idle_s:
                return DONE, f"no work for {self._idle_s:g} s"
        return DONE, "its time is over and was not renewed"

    def _lease(self) -> protocol.Lease:
        wait_s = min(protocol.LONGEST_WAIT_S, self._idle_s or protocol.LONGEST_WAIT_S)
        wait_s = max(0.0, min(wait_s, self._heartbeat.seconds_left() - 1.0))
        request = protocol.LeaseRequest(puller=self._name, unit=self._unit, wait_s=wait_s)
        data = self._connection.request(
            "POST",
            protocol.LEASE,
            request.model_dump_json().encode(),
            timeout_s=wait_s + 15.0,
            most_bytes=REQUEST_LIMIT_BYTES,
        )
        lease = protocol.read_lease(data)
        self._ahead_s = lease.now_unix_s - time.time()
        return lease

    def _work(self, lease: protocol.Lease) -> None:
        """Run the call and post its answer, with heartbeats until it is posted."""
        with self._heartbeat.during(lease.call_id, lease.lease_s) as heartbeat:
            try:
                with heartbeat.droppable():
                    answer = self._actor.answer(lease.request, most_bytes=lease.most_bytes)
            except Dropped:
                # The interruption may have left an environment in an undefined state.
                self._actor = self._new_actor()
                return
            self._post(lease.call_id, answer)

    def _post(self, call_id: str, answer: bytes) -> None:
        """Post the answer until it is received or refused. An answer that arrives twice counts once."""
        path = f"{protocol.RESULT}?{urlencode({'puller': self._name, 'call': call_id})}"
        until_s = time.monotonic() + self._unreachable_s
        while not self._heartbeat.time_is_over():
            try:
                self._connection.request("POST", path, answer, timeout_s=_TRANSFER_S)
                return
            except RequestRefused as error:
                say(f"the answer to {call_id} was refused: {error}")
                return
            except GatewayUnreachable as error:
                if time.monotonic() > until_s:
                    say(f"the answer to {call_id} could not be delivered: {error}")
                    return
            time.sleep(random.uniform(0.1, 1.0))

    def _say_goodbye(self) -> None:
        """Give the call back, so that another actor can have it at once."""
        try:
            body = protocol.HeldCall(puller=self._name).model_dump_json().encode()
            with closing(self._connect()) as connection:
                connection.request("POST", protocol.LEAVE, body, timeout_s=3.0)
        except (GatewayUnreachable, RequestRefused):
            pass

    def _new_actor(self) -> ActorMemory:
        return ActorMemory(
            now_unix_s=lambda: time.time() + self._ahead_s, fetch=self._weights, cores=self._cores
        )

    def _weights(self, url: str, byte_count: int) -> bytes:
        """Return the weights. Raises OSError or ValueError if they cannot be fetched."""
        if not url.startswith(protocol.WEIGHTS):
            raise ValueError("the weights are not at the gateway")
        for attempt in range(_WEIGHTS_TRIES):
            try:
                return self._connection.request("GET", url, timeout_s=_TRANSFER_S, most_bytes=byte_count)
            except RequestRefused as error:
                raise ValueError(str(error)) from None
            except GatewayUnreachable:
                if attempt == _WEIGHTS_TRIES - 1:
                    raise
            time.sleep(0.2 * 2**attempt)
        raise ValueError("not reached")


def say(words: str) -> None:
    print(f"starling puller: {words}", file=sys.stderr, flush=True)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)[:100] or "unnamed"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m cloud.actor.puller", description="Runs calls of one run."
    )
    add = parser.add_argument
    add("--gateway", required=True, help="address of the site that runs the job")
    add("--token-file", type=Path, help=f"file with the run's token (default: the variable {TOKEN_VARIABLE})")
    add("--ca-file", help="certificate of the authority to trust (default: the machine's own)")
    add("--unit", help="name of this machine or container group (default: the host's name)")
    add("--processes", type=int, default=1, help="so many actors, each a process (default: 1)")
    add("--cores", type=int, default=1, help="cores of each actor (default: 1)")
    add("--live", type=float, default=120.0, metavar="S", help="end after this unless the gateway renews it")
    add(
        "--idle", type=float, default=0.0, metavar="S", help="end after so long without work (default: never)"
    )
    add(
        "--unreachable",
        type=float,
        default=300.0,
        metavar="S",
        help="end when the gateway is gone for so long",
    )
    return parser.parse_args(arguments)


def _token(options: argparse.Namespace) -> str:
    if options.token_file is not None:
        return str(options.token_file.read_text()).strip()
    # No process that this one starts may have it.
    return os.environ.pop(TOKEN_VARIABLE, "").strip()


def _several(count: int, arguments: Sequence[str], token: str) -> int:
    """Run `count` pullers, and end them when this process receives a signal. Return the worst exit code."""
    command = [sys.executable, "-m", "cloud.actor.puller", *arguments, "--processes", "1"]
    variables = {**os.environ, TOKEN_VARIABLE: token}
    children: list[subprocess.Popen[bytes]] = []
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for child in children:
            child.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    while len(children) < count and not stopping:
        children.append(subprocess.Popen(command, env=variables))
    if stopping:  # the newest child was not in the list yet
        for child in children:
            child.terminate()
    return max((child.wait() for child in children), default=0)


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(given)
    try:
        token = _token(options)
        if not re.fullmatch(r"[A-Za-z0-9._-]{20,200}", token):
            raise ValueError(f"no token of a run was given: put it into {TOKEN_VARIABLE} or --token-file")
        if options.processes > 1:
            return _several(options.processes, given, token)
        puller = PullLoop(options, token)
    except (OSError, ValueError, ValidationError) as error:
        say(str(error))
        return WRONG
    return puller.run()


def _end() -> NoReturn:
    sys.exit(main())


if __name__ == "__main__":
    _end()
