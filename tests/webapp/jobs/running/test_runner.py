"""A job's process, from its lease to its last event, and after it died at the worst moments."""

import errno
import os
import re
import subprocess
import sys
import threading
import time
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rig.servers import ROOT
from tests.factories import make_job, make_spec
from tests.webapp.bookkeeping import assert_whole
from webapp.database import leases
from webapp.jobs import failpoints, tasks
from webapp.jobs.launch.launch_budget import least_of
from webapp.jobs.models import Job
from webapp.jobs.reasons import Reason
from webapp.jobs.running import runner, storage_wait
from webapp.jobs.running.checkpoint_files import checkpoint_folder
from webapp.jobs.running.recovery import CRASHES_ALLOWED, run_ended
from webapp.jobs.running.runner import run_job
from webapp.jobs.services import raise_budget
from webapp.jobs.tasks import launch_job

pytestmark = [pytest.mark.django_db(transaction=True)]


def _small(preset: str = "cartpole", **changes: Any) -> Any:
    """Four rounds of two actors, a checkpoint after each second."""
    return make_spec(
        preset,
        training__scaling__actors=2,
        training__rollout__steps_per_call=16,
        training__stop={"rounds": 4, "env_steps": None},
        training__checkpoints={"every_rounds": 2},
        training__evaluation={"every_rounds": 4, "episodes": 1},
        platform__workers=1,
        **changes,
    )


class _OnceUnderWay(threading.Event):
    """Asks to hand the job over as soon as its first round is over."""

    def __init__(self, job_id: str) -> None:
        super().__init__()
        self._job_id = job_id

    def is_set(self) -> bool:
        return Job.objects.filter(pk=self._job_id, round_no__gt=0).exists()


def _run(job: Job, hand_over: bool = False) -> int:
    hand_over_now = _OnceUnderWay(job.pk) if hand_over else threading.Event()
    code = run_job(job.pk, owner=os.urandom(8).hex(), hand_over=hand_over_now)
    job.refresh_from_db()
    return code


@pytest.mark.parametrize("megabytes", [0, 10])
def test_with_a_cache_nothing_is_sampled_twice_after_a_crash(
    megabytes: int, settings: Any, monkeypatch: pytest.MonkeyPatch, valkey: str
) -> None:
    monkeypatch.setattr("webapp.jobs.running.assembly._CACHE_PATIENCE_S", 60.0)
    settings.STARLING_TRAJECTORY_CACHE_MB = megabytes
    settings.FAILPOINTS = "after_round:raise@3"
    monkeypatch.setattr(failpoints, "_hits", failpoints.Counter())
    job = make_job(spec=_small())
    assert _run(job) != 0
    # It goes on from the checkpoint of round 2, and the third round had been sampled.
    settings.FAILPOINTS = ""
    assert _run(job) == 0
    sampled = job.account.charges.filter(kind="rollout").order_by("epoch", "round_no")
    took_s = {(one.epoch, one.round_no): one.usage["run_s"] for one in sampled}
    last = max(epoch for epoch, _ in took_s)
    assert sorted(no for epoch, no in took_s if epoch == last) == [3, 4]
    assert (took_s[last, 3] == 0.0) == bool(megabytes)
    assert took_s[last, 4] > 0.0
    assert_whole(job)


def test_a_job_runs_to_its_end() -> None:
    job = make_job(spec=_small())
    assert _run(job) == 0
    assert (job.observed, job.reason_code, job.round_no) == ("succeeded", "rounds", 4)
    assert job.summary["env_steps"] == 128
    assert sorted(job.checkpoints.values_list("round_no", flat=True)) == [2, 4]
    assert len(list(checkpoint_folder(job.pk).glob("round-*"))) == 2
    assert job.account.charges.count() >= 13
    assert_whole(job)


def test_a_job_that_is_not_ours_is_left_alone() -> None:
    job = make_job(spec=_small())
    Job.objects.filter(pk=job.pk).update(desired="cancelled")
    assert _run(job) == 0
    assert job.observed == "queued"


def test_handing_over_leaves_a_job_to_be_resumed() -> None:
    job = make_job(spec=_small())
    assert _run(job, hand_over=True) == 0
    assert (job.observed, job.reason_code, job.crashes, job.lease_owner) == ("recovering", "handover", 0, "")
    assert _run(job) == 0
    assert job.observed == "succeeded"
    assert_whole(job)


def _poor() -> Any:
    """With money for a first round of one actor, and not for a second of eight."""
    ramp = {"kind": "ramp", "actors_first": 1, "actors_last": 8, "over_rounds": 1}
    spec = _small("hopper-simulated", training__scaling=ramp)
    least = least_of(spec)
    assert isinstance(least, int)
    return spec.model_copy(update={"budget_usd": Decimal(-(-least // 10**6)) / 10**6})


def test_the_budget_really_stops_a_job_and_raising_it_goes_on() -> None:
    job = make_job(spec=_poor())
    assert _run(job) == 0
    assert (job.observed, job.reason_code, job.round_no) == ("paused", "budget", 1), job.reason
    assert job.has_checkpoint
    assert_whole(job)
    raise_budget(job=job, user=job.created_by, limit_usd=Decimal("1"))
    assert _run(job) == 0
    assert (job.observed, job.round_no) == ("succeeded", 4)
    assert_whole(job)


def test_an_error_is_explained_in_a_sentence_and_tried_again(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FAILPOINTS = "after_round:raise@3"
    monkeypatch.setattr(failpoints, "_hits", failpoints.Counter())
    job = make_job(spec=_small())
    assert _run(job) == 70
    assert (job.observed, job.reason_code, job.crashes) == ("recovering", "error", 1)
    assert job.reason == Reason.RUN_FAILED.change(error="FailpointReached: failpoint after_round").sentence
    assert _run(job) == 0
    assert job.observed == "succeeded"
    assert job.events.get(kind="resumed").payload["from_round"] == 2
    assert_whole(job)


@pytest.mark.parametrize("hand_over", [False, True])
def test_giving_the_lease_back_is_not_losing_it(hand_over: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewal that waits for the job's last transaction must not take its end for somebody else's beginning."""
    aborted: list[int] = []
    monkeypatch.setattr(os, "_exit", aborted.append)
    monkeypatch.setattr(leases, "RENEW_EVERY", timedelta(seconds=0.01))
    for owner, name in ((runner.Recorder, "finish"), (runner, "run_ended")):
        monkeypatch.setattr(owner, name, _then_wait(getattr(owner, name)))
    job = make_job(spec=_small())
    assert _run(job, hand_over=hand_over) == 0
    assert job.observed == ("recovering" if hand_over else "succeeded")
    assert aborted == []


def _then_wait(write: Any) -> Any:
    def slowly(*arguments: Any, **options: Any) -> Any:
        answer = write(*arguments, **options)
        time.sleep(0.3)
        return answer

    return slowly


def _no_space(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_stays_full_pauses_the_job_with_a_reason_and_nothing_bills_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("training.engine.checkpoints.os.fsync", _no_space)
    monkeypatch.setattr(storage_wait, "WAITS_IN_PLACE_S", 0.0)
    job = make_job(spec=_small("hopper-simulated"))
    assert _run(job) == 0
    assert (job.observed, job.reason_code, job.lease_owner) == ("paused", "disk", "")
    assert re.search(r"\bround 2 .*: no space left", job.reason)
    assert list(checkpoint_folder(job.pk).iterdir()) == []
    job.account.refresh_from_db()
    assert job.account.spent_picodollars > 0
    assert job.account.reserved_picodollars == 0
    assert_whole(job)
    before = job.account.spent_picodollars
    assert _run(job) == 0  # it waits for its disk
    job.account.refresh_from_db()
    assert (job.observed, job.account.spent_picodollars) == ("paused", before)


def test_an_environment_that_cannot_be_had_fails_the_job_before_it_costs_anything() -> None:
    job = make_job(spec=_small())
    job.spec["training"]["environment"]["id"] = "Blackjack-v1"  # its package was another one at launch
    job.save(update_fields=["spec"])
    assert _run(job) == 0
    assert (job.observed, job.reason_code, job.round_no) == ("failed", "unfit", 0)
    assert "only Box observations" in job.reason
    assert job.account.charges.count() == 0
    assert_whole(job)


@pytest.mark.stack
@pytest.mark.parametrize(
    "failpoint",
    [
        "after_checkpoint_file:exit",
        pytest.param("after_round:exit@3", marks=pytest.mark.slow),
        pytest.param("after_reserve:exit@4", marks=pytest.mark.slow),
    ],
)
def test_dying_at_the_worst_moment(failpoint: str, service_environment: dict[str, str]) -> None:
    job = make_job(spec=_small())
    command = [sys.executable, "manage.py", "run-job", job.pk, "--owner", "doomed"]
    died = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **service_environment, "STARLING_FAILPOINTS": failpoint},
        timeout=240,
        capture_output=True,
    )
    assert died.returncode == 86, died.stderr.decode()
    job.refresh_from_db()
    assert (job.observed, job.lease_owner) == ("running", "doomed")
    assert_whole(job)
    assert run_ended(
        job_id=job.pk, epoch=job.lease_epoch, why=Reason.PROCESS_DIED.change(how="killed by SIGKILL")
    )
    assert _run(job) == 0
    assert (job.observed, job.round_no) == ("succeeded", 4)
    assert_whole(job)


@pytest.mark.slow
@pytest.mark.stack
def test_who_watches_starts_a_dead_process_again(
    service_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**service_environment, "STARLING_FAILPOINTS": "after_round:exit@3"}.items():
        monkeypatch.setenv(name, value)
    job = make_job(spec=_small())
    # Each process dies at its third round, and gets two further than the one before.
    launch_job(job.pk)
    job.refresh_from_db()
    assert (job.observed, job.round_no) == ("succeeded", 4)
    assert job.lease_epoch == 2
    assert job.events.filter(payload__reason_code="crashed").count() == 1
    assert_whole(job)


@pytest.mark.slow
@pytest.mark.stack
def test_a_budget_raised_while_the_process_ends_is_not_forgotten(
    service_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is watched until its process is gone, so the message that says "go on" finds it taken."""
    for name, value in service_environment.items():
        monkeypatch.setenv(name, value)
    job = make_job(spec=_poor())
    raised: list[str] = []

    class Watched(subprocess.Popen[bytes]):
        def wait(self, timeout: float | None = None) -> int:
            code = super().wait(timeout)
            job.refresh_from_db()
            if job.observed == "paused":
                raised.append(raise_budget(job=job, user=job.created_by, limit_usd=Decimal("1")).observed)
            return code

    monkeypatch.setattr(subprocess, "Popen", Watched)
    launch_job(job.pk)
    job.refresh_from_db()
    assert raised == ["queued"]
    assert (job.observed, job.round_no) == ("succeeded", 4)
    assert_whole(job)


@pytest.mark.slow
@pytest.mark.stack
def test_a_process_that_cannot_even_start_is_not_tried_for_ever(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(spec=_small())
    Job.objects.filter(pk=job.pk).update(lease_epoch=3, observed="recovering")
    settings.BASE_DIR = tmp_path
    (tmp_path / "manage.py").write_text("open('starts', 'a').write('one\\n')\nraise SystemExit(2)\n")
    monkeypatch.setattr(tasks, "_SLOWEST_RESTART_S", 0.0)
    launch_job(job.pk)
    job.refresh_from_db()
    assert job.observed == "failed"
    starts = (tmp_path / "starts").read_text().splitlines()
    assert len(starts) == CRASHES_ALLOWED + 1
    assert "exit code 2" in job.reason
