"""The whole site stopped, killed and overloaded: no healthy job pays for that, and its owner always gets in.

Minutes each, so they are run by `make test-slow`, and more often by `make test-endurance`; their figures are printed.
"""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from rig.servers import ROOT, manage, wait_until
from tests.whole_site import Stack, ready, signs_in, site_environment, up
from tests.work import repeated

pytestmark = pytest.mark.stack

STOPPED_WITHIN_S = 10.0
BURNERS = 4
SEEDS_WITHIN_S = 3600.0
_UNEXPECTED_ENDS = (
    "SELECT count(*) FROM jobs_event"
    " WHERE json_extract(payload, '$.reason_code') IN ('crashed', 'lost', 'error')"
)

_A_HELD_LEASE = "SELECT id FROM jobs_job WHERE lease_owner <> ''"


def _lived(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Leave it alone for so long."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return
    raise AssertionError(f"it ended by itself (exit {process.returncode})")


def _stop(stack: Stack) -> tuple[float, int]:
    """How many seconds stopping takes, and how many processes had to be killed for it."""
    stack.process.send_signal(signal.SIGTERM)
    stopped_s = time.monotonic()
    # In its first second it has started nothing, and listens to nothing.
    assert stack.process.wait(timeout=60) in (0, -signal.SIGTERM), stack.log.read_text()
    took_s = time.monotonic() - stopped_s
    assert not stack.processes()
    return took_s, stack.says("does not stop") + stack.says("does not leave")


def _assert_nothing_counted(stack: Stack, stops: list[tuple[float, int]]) -> None:
    (row,) = stack.rows("SELECT observed, crashes, losses, round_no, lease_epoch FROM jobs_job")
    observed, crashes, losses, rounds, runs = row
    ends = stack.rows(_UNEXPECTED_ENDS)[0][0]
    kills, longest_s = sum(kills for _, kills in stops), max(took_s for took_s, _ in stops)
    print(
        f"{len(stops)} stops: {kills} kills, {crashes} crashes and {losses} losses counted, {ends} ends that were no"
        f" stop; the longest took {longest_s:.1f} s; the job is {observed} at round {rounds} after {runs} runs"
    )
    assert (kills, crashes, losses, ends) == (0, 0, 0, 0)
    assert longest_s <= STOPPED_WITHIN_S


@repeated(5, endurance=20)
def test_stops_at_any_moment_cost_a_healthy_job_nothing(times: int, tmp_path: Path) -> None:
    """A machine that is slow enough has no job by the last of these moments: a start that is left to be ready has."""
    stops = []
    for after_s in range(1, 21, 20 // times):
        with up(tmp_path / "data", demo=True) as stack:
            _lived(stack.process, after_s)
            stops.append(_stop(stack))
            print(f"stopped after {after_s} s: took {stops[-1][0]:.1f} s", flush=True)
    with ready(tmp_path / "data", demo=True) as stack:
        wait_until(partial(stack.rows, _A_HELD_LEASE), within_s=300, what="the job is run")
        stops.append(_stop(stack))
    _assert_nothing_counted(stack, stops)


@repeated(4, endurance=8)
def test_stops_at_any_moment_of_a_runs_beginning_cost_the_job_nothing(times: int, tmp_path: Path) -> None:
    """However long the site takes to be ready here, the job's process has its lease by then."""
    stops = []
    for after_s in (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0)[:: 8 // times]:
        with ready(tmp_path / "data", demo=True) as stack:
            wait_until(partial(stack.rows, _A_HELD_LEASE), within_s=300, what="the job is run")
            _lived(stack.process, after_s)
            stops.append(_stop(stack))
            print(f"stopped {after_s} s after the job's lease: took {stops[-1][0]:.1f} s", flush=True)
    _assert_nothing_counted(stack, stops)


@repeated(4, endurance=20)
def test_a_first_start_killed_at_any_moment_ends_with_a_link_that_works(times: int, tmp_path: Path) -> None:
    luck, worked = random.Random(16), 0
    for number in range(times):
        folder, after_s = tmp_path / f"data-{number}", luck.uniform(0.2, 14.0)
        with up(folder, demo=True) as killed:
            _lived(killed.process, after_s)
            killed.process.kill()
            killed.process.wait()
        with ready(folder, demo=True) as stack:
            worked += signs_in(stack.sign_in_link())
        print(f"killed after {after_s:.1f} s: {worked} of {number + 1} links worked", flush=True)
    assert worked == times


@contextmanager
def _burners(count: int) -> Iterator[None]:
    """So many processes that keep a core busy each, if they get one."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


_SIX_SEEDS = """
from webapp.accounts.models import Project
from webapp.jobs.form.presets import presets
from webapp.jobs.services import submit_job
project = Project.objects.get()
spec = presets()["cartpole"].spec
for seed in range(6):
    training = spec.training.model_copy(update={"seed": seed})
    one = spec.model_copy(update={"training": training, "name": f"Cart pole, seed {seed}"})
    submit_job(project=project, user=project.people.get(), spec=one)
"""
_STOP_THE_DEMO = """
from webapp.jobs.models import Job
from webapp.jobs.services import stop_job
job = Job.objects.get(idempotency_key="demo")
stop_job(job=job, user=job.created_by)
"""


def _do(stack: Stack, program: str) -> None:
    subprocess.run(
        manage("shell", "-c", program), cwd=ROOT, env=site_environment(stack.folder), check=True, timeout=300
    )


@pytest.mark.endurance
def test_a_busy_machine_brings_the_demo_and_six_seeds_to_their_ends(tmp_path: Path) -> None:
    """Four processes burn beside them, and would beside all other tests of `make test-slow`. The demo goes on for
    hours, so it is stopped once the seeds are over.
    """
    with _burners(BURNERS), ready(tmp_path / "data", demo=True) as stack:
        began_s = time.monotonic()
        _do(stack, _SIX_SEEDS)
        waited: set[str] = set()
        most_at_once, least_lease_s = 0, float("inf")

        def over() -> bool:
            nonlocal most_at_once, least_lease_s
            jobs = stack.rows(
                "SELECT id, observed, reason, lease_owner,"
                " (julianday(lease_expires_at) - julianday('now')) * 86400 FROM jobs_job"
            )
            held = [left for *_, owner, left in jobs if owner]
            most_at_once = max(most_at_once, len(held))
            least_lease_s = min([least_lease_s, *held])
            waited.update(one for one, _, reason, *_ in jobs if reason.startswith("Waits for a free core:"))
            return sum(observed in ("succeeded", "failed", "cancelled") for _, observed, *_ in jobs) == 6

        try:
            wait_until(over, within_s=SEEDS_WITHIN_S, what="six seeds are over")
        finally:
            for row in stack.rows("SELECT name, observed, round_no, crashes, losses, reason FROM jobs_job"):
                print(*row, flush=True)
            print(
                f"at most {most_at_once} at once, {len(waited)} waited, a lease had {least_lease_s:.0f} s left"
            )
        took_s = time.monotonic() - began_s
        _do(stack, _STOP_THE_DEMO)
        ends = "SELECT observed, count(*) FROM jobs_job GROUP BY observed ORDER BY observed"
        wait_until(lambda: ("cancelled", 1) in stack.rows(ends), within_s=120, what="the demo has stopped")
        counted = stack.rows("SELECT sum(crashes), sum(losses), sum(lease_epoch) FROM jobs_job")[0]
        demo_rounds = stack.rows("SELECT round_no FROM jobs_job WHERE idempotency_key = 'demo'")[0][0]
        print(
            f"six seeds in {took_s:.0f} s, at most {most_at_once} jobs at once, {len(waited)} said that they wait for"
            f" a core; the least that a lease had left was {least_lease_s:.0f} s; the demo had {demo_rounds} rounds;"
            f" crashes, losses, starts: {counted}; {stack.rows(ends)}"
        )
        assert stack.rows(ends) == [("cancelled", 1), ("succeeded", 6)]
        assert stack.rows(_UNEXPECTED_ENDS) == [(0,)]
        assert demo_rounds > 0
        assert counted == (0, 0, 7)
        assert len(waited) >= 5
