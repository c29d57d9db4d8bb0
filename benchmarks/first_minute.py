"""A new user's first minute in a real browser, from the printed link on: how soon something is to be seen, how soon a
preset's job draws its first point, and how soon and at what cost it is filmed.

Click by click on a server of its own, whose demo job is stopped before anything is timed after the first page.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright

from rig.chromium import QUIET, chromium_path
from rig.figures import Figure
from rig.servers import ROOT, manage
from webapp.processes.embedded_valkey import free_port

_TIMES = 5
_LINK = re.compile(r"(http://\S+)(/sign-in/\S+)")
_STARTED = "Ctrl-C stops everything."
_FACTS = "SELECT facts FROM jobs_film WHERE state = 'ready' AND job_id = ?"
_TIME = "SELECT (julianday(finished_at) - julianday(started_at)) * 86400 FROM jobs_job WHERE id = ?"
_PICTURES = (
    "() => [...document.querySelectorAll('.demo img')].every((one) => one.complete && one.naturalWidth)"
)
_POINTS = "() => !document.querySelector('[data-charts]').classList.contains('no-rounds')"
_FILM = "() => document.querySelector('[data-film-words]').textContent !== ''"
_JUDGED = "() => /\\d/.test(document.querySelector('[data-live=evaluation]').textContent)"


def measure(*, quick: bool = False) -> Iterator[Figure]:
    times = 1 if quick else _TIMES
    with (
        tempfile.TemporaryDirectory(prefix="starling-bench-") as name,
        _site(Path(name)) as (home, link),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=QUIET)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(180_000)
        page.goto(link)
        began_s = time.monotonic()
        page.click("main form button")
        page.wait_for_selector(".demo-lines polyline")
        page.wait_for_function(_PICTURES)
        yield Figure("link to a curve and films", time.monotonic() - began_s, "s", at_most=10)
        page.click(".demo .card-head a")
        page.wait_for_url("**/jobs/job_*/")  # the first page has a button to stop its films
        _stop(page)
        starts = [_first_point(page, home, stops=at + 1 < times) for at in range(times)]
        what = f"Launch of the preset to its first point, median of {times}"
        yield Figure(what, median(starts), "s", at_most=3, data={"all": starts})
        page.wait_for_function(_JUDGED)
        began_s = time.monotonic()
        page.wait_for_function(_FILM)
        yield Figure("first evaluation to its film on the page", time.monotonic() - began_s, "s", at_most=10)
        page.wait_for_selector(".pill:has-text('Succeeded')")
        job_id = page.url.rstrip("/").rpartition("/")[2]
        yield Figure("films while the job ran", _share(Path(name), job_id), "% of its time", at_most=5)


@contextmanager
def _site(folder: Path) -> Iterator[tuple[str, str]]:
    """`manage.py up` on an empty folder: its address and its sign-in link."""
    command = manage("up", "--data", str(folder), "--port", str(free_port()))
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    link = None
    try:
        for line in process.stdout:
            link = _LINK.search(line) or link
            if _STARTED in line:
                break
        if link is None:
            raise RuntimeError("manage.py up printed no link")
        yield link[1], link[1] + link[2]
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)


def _first_point(page: Page, home: str, *, stops: bool) -> float:
    page.goto(f"{home}/")
    page.click("a.btn:has-text('New job') >> nth=0")
    page.click("a.preset:has-text('Cart pole') >> nth=0")
    page.wait_for_url("**preset=cartpole*")
    page.wait_for_load_state("networkidle")
    began_s = time.monotonic()
    page.click("[data-launch]")
    page.wait_for_url("**/jobs/job_*/")
    page.wait_for_function(_POINTS)
    took_s = time.monotonic() - began_s
    if stops:
        _stop(page)
    return took_s


def _stop(page: Page) -> None:
    page.click("button:has-text('Stop') >> nth=0")
    page.click("text=Stop the job for good")
    page.wait_for_selector(".pill:has-text('Stopped')")
    time.sleep(5)  # its processes end


def _share(folder: Path, job_id: str) -> float:
    with sqlite3.connect(folder / "starling.sqlite3") as database:
        facts = [json.loads(one) for (one,) in database.execute(_FACTS, [job_id])]
        ((job_s,),) = database.execute(_TIME, [job_id])
    return 100 * max(fact["used_cpu_s"] for fact in facts) / float(job_s)
