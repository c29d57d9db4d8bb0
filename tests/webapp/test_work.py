"""The work of real runs, as the command line writes it down and as a job's charges hold it."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from cloud.money.billing.work_file import RunSegment, read_work_file
from tests.factories import make_job, make_spec
from webapp.jobs.billing.bills import works_of
from webapp.jobs.running.headless import Headless
from webapp.jobs.running.runner import run_job
from webapp.jobs.spec import JobSpec

SMALL: dict[str, Any] = {
    "training__scaling__actors": 2,
    "training__rollout__steps_per_call": 16,
    "training__stop": {"rounds": 3, "env_steps": None},
    "training__evaluation": {"every_rounds": 3, "episodes": 1},
    "training__checkpoints": {"every_rounds": 2},
    "platform__workers": 1,
}


def check(segment: RunSegment, calls: int) -> None:
    """Every call is there once, and was sent when the last of what it comes after had landed."""
    works = {work.name: work for work in segment.works}
    assert len(works) == len(segment.works) == calls
    assert sorted(work.serial for work in segment.works) == list(range(1, calls + 1))
    usages = {one.usage["work"]["id"]: one.usage for one in segment.settlements if "work" in one.usage}
    for work in works.values():
        landed_s = [usages[works[name].id]["landed_s"] for name in work.after]
        assert usages[work.id]["sent_s"] == max(landed_s, default=0.0)
    assert {work.kind for work in works.values()} == {"rollout", "update", "evaluate"}
    assert all(work.macs for work in works.values())
    assert all(work.bytes_out for work in works.values())


def test_train_writes_each_call_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = make_spec("hopper-simulated", **SMALL)
    document, file = tmp_path / "spec.json", tmp_path / "work.jsonl"
    document.write_text(json.dumps(spec.model_dump(mode="json")))
    call_command("train", str(document), "--json", "--work", str(file))
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    (segment,) = read_work_file(file)
    check(segment, calls=3 * (2 + 1) + 1)
    assert JobSpec.model_validate(segment.spec) == spec
    assert segment.spent_picodollars == round(summary["cost_usd"] * 10**12)
    header = json.loads(file.read_text().splitlines()[0])
    assert {"cpu", "numpy", "commit"} <= set(header["made_with"])
    with pytest.raises(SystemExit):
        call_command("train", str(document), "--work", str(file))
    assert "exists already" in capsys.readouterr().err


def test_a_run_that_is_stopped_keeps_what_it_has(tmp_path: Path) -> None:
    file = tmp_path / "work.jsonl"
    run = Headless(make_spec("hopper-simulated", **SMALL), work=file)
    for event in run.events():
        if event.kind == "round":
            # It is on the disk while the run goes on.
            (segment,) = read_work_file(file)
            assert len(segment.works) == 3
            run.stop()
    (segment,) = read_work_file(file)
    assert {work.round_no for work in segment.works if not work.cancelled} <= {1, 2}


@pytest.mark.django_db(transaction=True)
def test_a_job_holds_the_work_of_each_segment() -> None:
    job = make_job(spec=make_spec("hopper-simulated", **SMALL))
    assert run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event()) == 0
    job.refresh_from_db()
    assert job.observed == "succeeded"
    (segment,) = works_of(job)
    check(segment, calls=10)
    assert segment.spent_picodollars == job.account.spent_picodollars
