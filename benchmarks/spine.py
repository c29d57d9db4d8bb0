"""From a click to a moving chart, and what a crash costs: the whole dashboard, a real browser, a real job.

Oracles: the browser's own marks of what it drew, against the times at which events were committed; and the job's
rounds as the database holds them.
"""

import os
import re
import signal
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rig.chromium import QUIET, chromium_path
from rig.figures import Figure
from rig.servers import ROOT, manage, wait_until
from webapp.processes.embedded_valkey import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Page

_LAUNCHES = 5
_LAST_JOB = "(SELECT id FROM jobs_job ORDER BY created_at DESC LIMIT 1)"
_MARKS = (
    "performance.getEntriesByType('mark').map((mark) => [mark.name, performance.timeOrigin + mark.startTime])"
)


def measure() -> Iterator[Figure]:
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory(prefix="starling-bench-") as name,
        _dashboard(Path(name)) as url,
        sync_playwright() as playwright,
    ):
        folder = Path(name)
        page = playwright.chromium.launch(executable_path=chromium_path(), args=QUIET).new_page()
        _sign_up(page, url)
        waits_s = [_first_point_s(page) for _ in range(_LAUNCHES)]
        yield Figure(
            f"form submitted to first chart point, median of {_LAUNCHES}", statistics.median(waits_s), "s", 3
        )
        yield Figure(f"the same, slowest of {_LAUNCHES}", max(waits_s), "s")
        drawn_ms = _drawn_after_ms(page, folder)
        yield Figure(f"committed to drawn, p95 of {len(drawn_ms)} events", _p95(drawn_ms), "ms", 150)
        yield Figure("committed to drawn, median", statistics.median(drawn_ms), "ms")
        yield Figure("kill -9 of the job process to its next round", _recovery_s(folder), "s", 30)
        missing, twice = _gaps(folder)
        yield Figure("round numbers missing after that", missing, "", 0)
        yield Figure("round numbers twice after that", twice, "", 0)


@contextmanager
def _dashboard(folder: Path) -> Iterator[str]:
    """`manage.py up` on a folder and a port of its own."""
    port = free_port()
    process = subprocess.Popen(
        manage("up", "--no-demo", "--data", str(folder), "--port", str(port)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "STARLING_DATA": str(folder)},
    )
    assert process.stdout is not None
    try:
        if not any("Starling is ready" in line for line in process.stdout):
            raise RuntimeError("manage.py up ended before it was ready")
        # If a pipe is not read, its writer blocks sooner or later.
        drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=60)
        drain.wait(timeout=10)


def _sign_up(page: "Page", url: str) -> None:
    page.goto(f"{url}/accounts/signup/")
    page.fill("[name=email]", "bench@example.org")
    page.fill("[name=password1]", "correct horse battery")
    page.fill("[name=password2]", "correct horse battery")
    page.click("text=Create the account")
    page.wait_for_selector("text=Nothing has been trained here yet")


def _first_point_s(page: "Page") -> float:
    """Launch CartPole from the form; from the click until a round's event is drawn. The last launch goes on running."""
    jobs = re.sub(r"(/p/[^/]+/jobs/).*", r"\1", page.url)
    if "/job_" in page.url:
        page.click("[data-live=stop-form] button")
        page.click("text=Stop the job for good")
        page.locator("[data-live=pill]").filter(
            has_text=re.compile("cancelled|stopped", re.IGNORECASE)
        ).wait_for()
    page.goto(f"{jobs}new/?preset=cartpole")
    page.fill("[name='training.stop.target_return']", "")
    page.fill("[name='training.stop.env_steps']", "5000000")
    began_s = time.monotonic()
    page.click("[data-launch]")
    page.wait_for_url("**/jobs/job_*/")
    # The figure and the charts are drawn in one frame.
    page.locator("[data-live=round]").filter(has_text=re.compile(r"^round \d")).wait_for()
    return time.monotonic() - began_s


def _drawn_after_ms(page: "Page", folder: Path) -> list[float]:
    """How long after its commit each round of the running job was drawn."""
    page.wait_for_timeout(15_000)
    marks: list[Any] = page.evaluate(_MARKS)
    drawn_ms = {int(name.split(":")[1]): moment for name, moment in marks if name.startswith("drawn:")}
    first = min(drawn_ms)
    rows = _rows(folder, f"SELECT seq, at FROM jobs_event WHERE job_id = {_LAST_JOB} AND kind = 'round'")
    waits = []
    for seq, at in rows:
        moment_ms = datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000
        later = [moment for shown, moment in drawn_ms.items() if shown >= seq]
        if seq > first and later:
            waits.append(min(later) - moment_ms)
    return waits


def _recovery_s(folder: Path) -> float:
    """Kill the job's process without warning; until it has done another round."""
    before = _rows(folder, f"SELECT MAX(seq) FROM jobs_event WHERE job_id = {_LAST_JOB} AND kind = 'round'")[
        0
    ][0]
    (pid,) = _job_processes(folder)
    began_s = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: _rows(
            folder,
            f"SELECT COUNT(*) FROM jobs_event WHERE job_id = {_LAST_JOB} AND kind = 'resumed' AND seq > {before}",
        )[0][0],
        within_s=60,
        what="the job is resumed",
    )
    resumed = _rows(
        folder,
        f"SELECT MIN(seq) FROM jobs_event WHERE job_id = {_LAST_JOB} AND kind = 'resumed' AND seq > {before}",
    )[0][0]
    wait_until(
        lambda: _rows(
            folder,
            f"SELECT COUNT(*) FROM jobs_event WHERE job_id = {_LAST_JOB} AND kind = 'round' AND seq > {resumed}",
        )[0][0],
        within_s=60,
        what="the job does another round",
    )
    return time.monotonic() - began_s


def _gaps(folder: Path) -> tuple[int, int]:
    query = f"SELECT round_no FROM jobs_event WHERE round_no IS NOT NULL AND job_id = {_LAST_JOB}"
    numbers = [row[0] for row in _rows(folder, query)]
    return max(numbers) - len(set(numbers)), len(numbers) - len(set(numbers))


def _job_processes(folder: Path) -> list[int]:
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_text().split("\0")
            ours = f"STARLING_DATA={folder}".encode() in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if ours and "run-job" in command:
            pids.append(int(entry.name))
    return pids


def _rows(folder: Path, query: str) -> list[Any]:
    with sqlite3.connect(f"file:{folder / 'starling.sqlite3'}?mode=ro", uri=True) as database:
        return database.execute(query).fetchall()


def _p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]
