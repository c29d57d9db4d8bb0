"""What hundreds of pullers cost a real web process: little while they wait, and no call twice when work comes."""

from __future__ import annotations

import http.client
import os
import threading
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from cloud.actor import protocol
from rig.servers import wait_until
from tests.factories import make_running_job
from training.engine.ports import Offer
from webapp.connections.gateway.coordinator import open_mailbox
from webapp.connections.gateway.models import SeenPuller

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.slow]

PULLERS = 200
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class _Threads:
    """Pullers without bodies: they ask, answer at once whatever they get, and ask again."""

    def __init__(self, address: str, token: str) -> None:
        self._host = urlsplit(address).netloc
        self._headers = {"Authorization": f"Bearer {token}"}
        self.done: list[str] = []
        self.leaving = 0
        self.failures: list[str] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._pull, args=[n], daemon=True) for n in range(PULLERS)]
        for thread in self._threads:
            thread.start()

    def join(self, within_s: float) -> None:
        end_s = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, end_s - time.monotonic()))

    def _pull(self, number: int) -> None:
        with closing(http.client.HTTPConnection(self._host, timeout=60)) as connection:
            self._pull_over(connection, f"p{number}", f"u{number % 10}")

    def _pull_over(self, connection: http.client.HTTPConnection, name: str, unit: str) -> None:
        while True:
            ask = protocol.LeaseRequest(puller=name, unit=unit, wait_s=20.0).model_dump_json()
            try:
                lease = protocol.read_lease(self._said(connection, protocol.LEASE, ask.encode()))
                if lease.word == "leave":
                    with self._lock:
                        self.leaving += 1
                    return
                if lease.word == "work":
                    path = f"{protocol.RESULT}?{urlencode({'puller': name, 'call': lease.call_id})}"
                    self._said(connection, path, bytes(20_000))
                    with self._lock:
                        self.done.append(lease.call_id)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.failures.append(repr(error))
                return

    def _said(self, connection: http.client.HTTPConnection, path: str, body: bytes) -> bytes:
        connection.request("POST", path, body=body, headers=self._headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise ValueError(f"{answer.status} {data!r}")
        return data


def _cpu_s() -> float:
    """Processor time of the site, which is a process of ours."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if b"webapp.asgi:application" not in (place / "cmdline").read_bytes():
                continue
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise AssertionError("the site does not run")


def test_two_hundred_wait_cheaply_and_each_call_goes_to_one(live_site: str) -> None:
    job, epoch = make_running_job()
    site = open_mailbox(job_id=job.pk, epoch=epoch)
    mailbox = site.mailbox
    mailbox.stay(300.0)
    threads = _Threads(live_site, site.new_token())
    wait_until(lambda: SeenPuller.objects.count() == PULLERS, within_s=60.0, what="all have called")
    before_s = _cpu_s()
    time.sleep(5.0)
    idle_cores = (_cpu_s() - before_s) / 5.0
    assert idle_cores < 0.15, "waiting costs almost nothing"

    count = 3 * PULLERS
    began_s, before_s = time.monotonic(), _cpu_s()
    begin_by = time.time() + 60.0
    mailbox.offer([Offer(f"c{n}", bytes(2_000), begin_by, 20.0, 60.0, 100_000) for n in range(count)])
    taken: list[str] = []
    while len(taken) < count and time.monotonic() < began_s + 60.0:
        taken += [one.call_id for one in mailbox.take(1.0)]
    took_s, cpu_s = time.monotonic() - began_s, _cpu_s() - before_s
    assert sorted(taken) == sorted(f"c{n}" for n in range(count))
    mailbox.close()
    threads.join(60.0)
    assert threads.failures == []
    assert sorted(threads.done) == sorted(taken)
    assert threads.leaving == PULLERS
    print(
        f"idle {idle_cores:.3f} cores; {count / took_s:.0f} calls/s; {1000 * cpu_s / count:.2f} ms CPU a call"
    )
    assert took_s < 30.0
