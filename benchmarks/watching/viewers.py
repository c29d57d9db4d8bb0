"""Many websockets on one web process while rounds are recorded: `python -m benchmarks.watching.viewers V J E S`."""

# ruff: noqa: E402 - Django is set up before models are imported

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
import time
from dataclasses import dataclass, field

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

import django

django.setup()

from django.conf import settings
from websockets.asyncio.client import connect

from benchmarks.watching.site import Watched, processor_s, resident_kb, running_jobs, served, session_of
from rig.rounds import round_finished
from webapp.accounts import services as accounts
from webapp.jobs.models import Job

_VIEWERS_A_PERSON = 30
_NUMBERS = re.compile(r'^\{"t":"events","first":(\d+),"last":(\d+)')
_SETTLED_WITHIN_S = 30.0


@dataclass
class Tally:
    """What viewers got; times by `time.monotonic`."""

    committed_s: dict[tuple[str, int], float] = field(default_factory=dict)
    arrived: list[tuple[str, int, float]] = field(default_factory=list)
    holes: int = 0
    received_bytes: int = 0
    last: dict[int, tuple[str, int]] = field(default_factory=dict)


async def _watch(number: int, url: str, job_id: str, cookie: str, tally: Tally) -> None:
    headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}", "Origin": url}
    address = f"{url.replace('http', 'ws', 1)}/ws/v1/jobs/{job_id}/"
    async with connect(
        address, additional_headers=headers, compression=None, max_size=None, open_timeout=None
    ) as socket:
        async for text in socket:
            now_s = time.monotonic()
            tally.received_bytes += len(text)
            if match := _NUMBERS.match(str(text)):
                first, last = int(match[1]), int(match[2])
                tally.holes += first != tally.last[number][1] + 1
                tally.arrived.extend((job_id, seq, now_s) for seq in range(first, last + 1))
                tally.last[number] = job_id, last
            elif '"t":"snapshot"' in str(text)[:40]:
                tally.last[number] = job_id, json.loads(text)["seq"]


def _tell(jobs: list[Watched], a_second: int, seconds: int, tally: Tally) -> None:
    """Rounds of all jobs, evenly spread over each second."""
    began_s = time.monotonic()
    for turn in range(a_second * seconds):
        for at, (job, recorder) in enumerate(jobs):
            due_s = began_s + (turn + at / len(jobs)) / a_second
            time.sleep(max(0.0, due_s - time.monotonic()))
            recorder.record(round_finished(turn + 2, spent=turn * 10**8))
            seq = Job.objects.values_list("last_seq", flat=True).get(pk=job.pk)
            tally.committed_s[job.pk, seq] = time.monotonic()


async def _all(
    url: str, pid: int, seats: list[tuple[str, str]], jobs: list[Watched], rate: int, seconds: int
) -> Tally:
    tally = Tally()
    tasks = []
    for number, (job_id, cookie) in enumerate(seats):
        tasks.append(asyncio.create_task(_watch(number, url, job_id, cookie, tally)))
        await asyncio.sleep(0.01)
    while len(tally.last) < len(seats):
        await asyncio.sleep(0.1)
        for task in tasks:
            if task.done():
                task.result()
                raise RuntimeError("the site has closed a viewer's socket")
    tally.received_bytes = 0
    teller = threading.Thread(target=_tell, args=(jobs, rate, seconds, tally))
    teller.start()
    while teller.is_alive():
        await asyncio.sleep(0.1)
    wanted = len(seats) // len(jobs) * len(tally.committed_s)
    deadline_s = time.monotonic() + _SETTLED_WITHIN_S
    while len(tally.arrived) < wanted and time.monotonic() < deadline_s:
        await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return tally


def main(viewers: int, job_count: int, rate: int, seconds: int) -> dict[str, float]:
    with served() as (url, pid):
        project, jobs = running_jobs(job_count)
        cookies: list[str] = []
        for _ in range(-(-viewers // _VIEWERS_A_PERSON)):
            person = accounts.create_person(f"viewer{len(cookies)}@example.org", "correct horse battery")
            accounts.join_project(project, person, "viewer")
            cookies.append(session_of(person))
        seats = [(jobs[at % job_count].job.pk, cookies[at % len(cookies)]) for at in range(viewers)]
        for watched in jobs:
            watched.recorder.record(round_finished(1))
        asyncio.run(_all(url, pid, seats[:job_count], jobs, 0, 0))  # what a first viewer costs is not counted
        before_kb, before_s = resident_kb(pid), processor_s(pid)
        began_s = time.monotonic()
        tally = asyncio.run(_all(url, pid, seats, jobs, rate, seconds))
        passed_s = time.monotonic() - began_s
        held_kb, used_s = resident_kb(pid) - before_kb, processor_s(pid) - before_s
    return {
        **_figures(tally, seats, rate * seconds),
        "kb_a_viewer": held_kb / viewers,
        "cpu_percent": 100 * used_s / passed_s,
        "kb_a_second": tally.received_bytes / 1000 / viewers / seconds,
    }


def _figures(tally: Tally, seats: list[tuple[str, str]], events: int) -> dict[str, float]:
    waits_ms = sorted(
        1000 * max(0.0, at_s - tally.committed_s[job_id, seq])
        for job_id, seq, at_s in tally.arrived
        if (job_id, seq) in tally.committed_s
    )
    missing = len(seats) * events - len(waits_ms)
    return {
        "p50_ms": waits_ms[len(waits_ms) // 2],
        "p99_ms": waits_ms[int(0.99 * len(waits_ms))],
        "missed": missing + tally.holes,
        "received": len(waits_ms),
    }


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
