"""How soon pages answer among 10,000 jobs at 50 requests a second, whether or not others answered.

Times are counted from when a request was due, so that one that had to wait for its turn is not let off.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig.figures import Figure
from rig.servers import ROOT, answers, server_process, wait_until
from webapp.processes.embedded_valkey import free_port
from webapp.web_server import web_server

_JOBS = 10_000
_QUICK_JOBS = 1_000
_RATE = 50
_SECONDS = 20
_CLIENTS = 64
_AT_MOST_MS = 150


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """On SQLite in a folder of its own, served by two processes."""
    with tempfile.TemporaryDirectory(prefix="starling-bench-pages-") as name:
        environment = {**os.environ, "STARLING_DATA": name, "DATABASE_URL": "", "STARLING_LOG_LEVEL": "ERROR"}
        filled = _filled(environment, _QUICK_JOBS if quick else _JOBS)
        with _served(environment, Path(name)) as port:
            yield from _answers(port, filled, 4 if quick else _SECONDS)


def _filled(environment: dict[str, str], jobs: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.paging", str(jobs)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the jobs could not be made:\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


@contextmanager
def _served(environment: dict[str, str], folder: Path) -> Iterator[int]:
    port = free_port()
    command = [*web_server(port=port), "--workers", "2", "--no-access-log"]
    with server_process(command, environment=environment, log=folder / "web.log"):
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/livez"), within_s=60, what="the site answers")
        yield port


def _answers(port: int, filled: dict[str, Any], seconds: int) -> Iterator[Figure]:
    pages, cookie = filled["pages"], filled["cookie"]
    for address in [*pages.values()] * 4:  # both processes have drawn every page once
        _ask_ms(port, address, cookie, time.monotonic())
    alone = {
        name: min(_ask_ms(port, address, cookie, time.monotonic()) for _ in range(8))
        for name, address in pages.items()
    }
    names = list(pages)
    begun = time.monotonic() + 0.5
    with ThreadPoolExecutor(_CLIENTS) as pool:
        due = [(names[at % len(names)], begun + at / _RATE) for at in range(seconds * _RATE)]
        requests = [(name, pool.submit(_ask_ms, port, pages[name], cookie, moment)) for name, moment in due]
        took = [(name, one.result()) for name, one in requests]
    everything = sorted(ms for _, ms in took)
    yield Figure(f"pages at {_RATE} requests a second: p95", _p95(everything), "ms", at_most=_AT_MOST_MS)
    yield Figure("the same: median", everything[len(everything) // 2], "ms")
    for name in pages:
        yield Figure(f"{name}: p95", _p95(sorted(ms for requested, ms in took if requested == name)), "ms")
        yield Figure(f"{name}: alone, best of 8", alone[name], "ms")


def _ask_ms(port: int, address: str, cookie: str, due: float) -> float:
    """Milliseconds from when the request was due to its last byte; a page that fails ends the benchmark."""
    time.sleep(max(0.0, due - time.monotonic()))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", address, headers={"Cookie": cookie, "Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{address} answered {answer.status}")
    finally:
        connection.close()
    return (time.monotonic() - due) * 1000


def _p95(ordered: list[float]) -> float:
    return ordered[int(0.95 * (len(ordered) - 1))]
