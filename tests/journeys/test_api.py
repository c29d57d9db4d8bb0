"""The whole way by program: the downloaded command launches, watches, pauses, stops and reports on a served site, and
makes a model from a table."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rig.servers import wait_until
from tests.factories import make_project, make_user
from tests.webapp.data_tables import table_of_numbers
from tests.webapp.scheduler_rows import make_version
from webapp.api.tokens import make_token
from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd

pytestmark = [pytest.mark.slow, pytest.mark.stack, pytest.mark.django_db(transaction=True)]

SMALL = (
    *("--set", "training.scaling.actors=2", "--set", "training.rollout.steps_per_call=64"),
    *("--set", 'training.stop={"env_steps": 2000000}', "--set", "budget_usd=2"),
    *("--set", "platform.workers=1", "--set", "training.checkpoints.every_rounds=2"),
)


class Command:
    """The command, as someone has it on another machine: the file, Python, and the environment. Its words follow
    `words`."""

    def __init__(self, site: str, token: str, folder: Path, words: tuple[str, ...] = ("jobs",)) -> None:
        self._words = words
        self._file = folder / "starling"
        with urllib.request.urlopen(f"{site}/api/command") as answer:
            self._file.write_bytes(answer.read())
        self._environment = {
            "STARLING_URL": site,
            "STARLING_TOKEN": token,
            "HOME": str(folder),
            "PATH": "/usr/bin",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-I", str(self._file), *self._words, *words],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str, code: int = 0) -> str:
        process = self.start(*words)
        out, err = process.communicate(timeout=600)
        assert process.returncode == code, err
        return out or err

    def answer_of(self, *words: str) -> Any:
        return json.loads(self(*words, "--json").splitlines()[-1])


def test_a_job_by_program_from_launch_to_bill(live_site: str, live_worker: Path, tmp_path: Path) -> None:
    user = make_user()
    project = make_project(user)
    _, key = make_token(user=user, name="CI", scopes=("jobs",))
    starling = Command(live_site, key, tmp_path)

    assert starling("list") == "Nothing there.\n"
    job_id = starling.answer_of("run", "cartpole", *SMALL)["id"]
    watching = starling.start("watch", job_id, "--json")
    wait_until(lambda: Job.objects.get(pk=job_id).round_no >= 4, within_s=120, what="four rounds")

    starling("pause", job_id)
    wait_until(lambda: Job.objects.get(pk=job_id).observed == "paused", within_s=120, what="it pauses")
    out, err = watching.communicate(timeout=600)
    assert watching.returncode == 4, err
    *events, last = map(json.loads, out.splitlines())
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    assert last.get("state") == "paused", (last, err)

    at = Job.objects.get(pk=job_id).round_no
    assert starling.answer_of("resume", job_id)["wanted"] == "run"
    wait_until(lambda: Job.objects.get(pk=job_id).round_no > at, within_s=120, what="it goes on")
    starling("stop", job_id)
    wait_until(lambda: Job.objects.get(pk=job_id).observed == "cancelled", within_s=120, what="it stops")

    job = Job.objects.select_related("account").get(pk=job_id)
    report = starling.answer_of("report", job_id)
    assert report["total_usd"] == exact_usd(job.account.spent_picodollars + job.account.overrun_picodollars)
    assert report["reserved_usd"] == "0"
    answer_of = [line.split() for line in starling("report", job_id).splitlines()]
    assert ["total", f"${report['total_usd']}"] in answer_of
    assert ["money", "actual"] in answer_of

    board = Path(starling("tensorboard", job_id, str(tmp_path / "board")).strip())
    assert board.read_bytes()[12 + 9 : 12 + 9 + 15].endswith(b"brain.Event:2")
    assert job_id in starling("list", "--state", "stopped")
    assert "no such job" in starling("stop", "job_nowhere", code=1)
    refused = json.loads(
        starling("run", "cartpole", "--set", "budget_usd=-1", "--json", code=1).splitlines()[0]
    )
    assert refused["errors"][0]["path"] == "budget_usd"
    assert project.jobs.count() == 1


def test_a_model_by_program_from_a_table_to_its_file(
    live_site: str, live_worker: Path, tmp_path: Path
) -> None:
    """As the journey in the browser: by Siren's agent for five cents, then a fork with four functions."""
    user = make_user()
    project = make_project(user)
    scheduler = make_version(project, of_data=True)
    _, key = make_token(user=user, name="CI", scopes=("jobs",))
    starling = Command(live_site, key, tmp_path, words=())

    table = tmp_path / "patients.csv"
    table.write_text(table_of_numbers(4_000))
    uploaded = starling.answer_of("datasets", "upload", str(table), "--wait")
    assert uploaded["state"] == "choosing"
    made = starling.answer_of(
        *("datasets", "choose", str(uploaded["id"]), "ill", "--leave-out", "age", "--wait")
    )
    by_siren = (
        *("--set", "name=By Siren", "--set", f"training.data={made['data']}", "--set", "budget_usd=0.05"),
        *("--set", f'training.scaling={{"kind": "siren", "scheduler": "{scheduler.key}"}}'),
        *("--set", "training.stop.rounds=5000"),
    )
    forecast = starling("jobs", "forecast", "siren-digits", *by_siren)
    assert "the budget ends" in forecast
    assert "One plain machine (c5.4xlarge): about $" in forecast

    job_id = starling.answer_of("jobs", "run", "siren-digits", *by_siren)["id"]
    wait_until(lambda: Job.objects.get(pk=job_id).round_no >= 2, within_s=120, what="two epochs")
    starling("jobs", "pause", job_id)
    wait_until(lambda: Job.objects.get(pk=job_id).observed == "paused", within_s=120, what="it pauses")
    at = Job.objects.get(pk=job_id).round_no
    starling("jobs", "resume", job_id)
    wait_until(lambda: Job.objects.get(pk=job_id).round_no > at, within_s=120, what="it goes on")
    starling("jobs", "stop", job_id)
    wait_until(lambda: Job.objects.get(pk=job_id).observed == "cancelled", within_s=120, what="it stops")
    reports = Job.objects.get(pk=job_id).rounds.values_list("payload__report", flat=True)
    assert {512 <= one["memory_mb"] <= 3008 for one in reports} == {True}

    four = ("--set", 'training.scaling={"kind": "fixed", "actors": 4}', "--set", "training.stop.rounds=3")
    fork = starling("jobs", "fork", job_id, "--set", "name=Four functions", *four, "--watch", "--json")
    fork_id = json.loads(fork.splitlines()[-1])["id"]
    compared = starling.answer_of("compare", job_id, fork_id)
    assert compared["score"]["name"] == "loss"
    model = Path(starling("jobs", "policy", fork_id, str(tmp_path / "model.zip")).strip())
    with zipfile.ZipFile(model) as packed:
        assert sorted(packed.namelist()) == ["README.md", "model.onnx", "predict.py"]
    assert starling.answer_of("jobs", "report", fork_id)["reserved_usd"] == "0"
