"""Real puller processes at a real gateway on this machine, over a mailbox in memory."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cloud.platforms.pulled import Patience, PulledCalls
from cloud.workers.processes import bound_to_this_process
from rig.servers import ROOT
from tests.cloud.gateway_server import Application, served
from tests.cloud.memory_mailbox import MemoryMailbox

QUICK = Patience(begin_s=30.0, lease_s=2.0, stay_s=60.0)


def start(address: str, token: str, *options: str, log: Path | None = None) -> subprocess.Popen[bytes]:
    """One puller, which dies with this process."""
    with open(log or os.devnull, "ab") as output:
        return subprocess.Popen(
            bound_to_this_process(
                [sys.executable, "-m", "cloud.actor.puller", "--gateway", address, *options]
            ),
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "STARLING_RUN_TOKEN": token},
            stdout=output,
            stderr=output,
        )


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


class Machines:
    """Pullers of one mailbox; those that end are not replaced."""

    def __init__(self, mailbox: MemoryMailbox, address: str) -> None:
        self.mailbox = mailbox
        self.address = address
        self.token = mailbox.new_token()
        self.processes: list[subprocess.Popen[bytes]] = []

    def join(self, *options: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        process = start(self.address, self.token, *options, log=log)
        self.processes.append(process)
        return process

    def pids(self) -> list[int]:
        return [one.pid for one in self.processes if one.poll() is None]


@contextmanager
def opened(
    count: int,
    patience: Patience = QUICK,
    *,
    around: Callable[[Application], Application] = lambda door: door,
    tls: ssl.SSLContext | None = None,
) -> Iterator[tuple[PulledCalls, Machines]]:
    """A platform, and so many pullers that fetch its calls over HTTP. `around` may come between them and the door."""
    mailbox = MemoryMailbox()
    with served(mailbox, around=around, tls=tls) as address:
        platform = PulledCalls(mailbox, patience)
        machines = Machines(mailbox, address)
        try:
            for _ in range(count):
                machines.join()
            yield platform, machines
        finally:
            platform.close()
            stop(machines.processes)
