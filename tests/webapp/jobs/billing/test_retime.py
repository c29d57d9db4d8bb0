"""`manage.py retime`: a stored run on other clouds, from its file or from the job's charges."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from cloud.timing.calibration.toml_writer import write_toml
from cloud.timing.numbers import profile as profiles
from tests.factories import make_job, make_spec
from tests.webapp.test_work import SMALL
from webapp.jobs.launch.forecasts import forecast_of
from webapp.jobs.running.headless import Headless
from webapp.jobs.running.runner import run_job


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("work") / "work.jsonl"
    list(Headless(make_spec("hopper-simulated", **SMALL), work=path).events())
    return path


def retimed(capsys: pytest.CaptureFixture[str], *arguments: Any) -> Any:
    call_command("retime", *map(str, arguments), "--json")
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        call_command("retime", *map(str, arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_on_its_own_cloud_nothing_changes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = retimed(capsys, file)
    for name in ("time_s", "picodollars", "calls", "bill"):
        assert found[name] == found["stored"][name]
    assert [one["round_no"] for one in found["rounds"]] == [1, 2, 3]
    assert found["notes"] == []


def test_elsewhere_it_does(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = retimed(capsys, file, "--profile", "aci-today", "--stack", "starling-stack")
    assert found["time_s"] != found["stored"]["time_s"]
    assert {"actors", "learner"} <= {line["category"] for line in found["bill"]}
    dear = tmp_path / "prices.toml"
    dear.write_text(
        '[[price]]\nsku = "lambda.request"\nregion = "us-east-1"\nunit = "request"\nusd = "1.0"\n'
        'as_of = 2026-11-01\nsource = "a contract of our own"\nkind = "custom"\n'
    )
    found = retimed(capsys, file, "--prices", dear)
    requests = [line for line in found["bill"] if line["sku"] == "lambda.request"]
    assert sum(float(line["usd"]) for line in requests) == sum(float(line["quantity"]) for line in requests)


def test_what_was_measured_here_is_a_cloud_by_its_name(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles.FILES, "_others", [tmp_path])
    slower = profiles.load("lambda").core_ratio.model_copy(update={"value": 0.6})
    mine = profiles.load("lambda").model_copy(update={"core_ratio": slower})
    write_toml(tmp_path / "lambda-mine-2026-11-21.toml", mine, "measured")
    found = retimed(capsys, file, "--profile", "lambda-mine-2026-11-21")
    assert found["time_s"] > found["stored"]["time_s"]
    platform = {"kind": "simulated", "profile": "lambda-mine-2026-11-21"}
    here, there = (
        forecast_of(make_spec("hopper-simulated", **{**SMALL, "platform": one}))
        for one in (platform, {"kind": "simulated"})
    )
    assert here.minutes.p50 > there.minutes.p50


def test_draws_and_a_verdict(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = retimed(capsys, file, "--draws", 6, "--against", "one-machine")
    spread = found["draws"]["cost_usd"]
    assert spread["p10"] <= spread["p50"] <= spread["p90"]
    assert found["draws"]["count"] == found["verdict"]["draws"] == 6
    assert 0 <= found["verdict"]["cheaper_in"] <= 6
    call_command("retime", str(file), "--draws", "6", "--against", "one-machine")
    output = capsys.readouterr().out
    assert f"in {found['verdict']['cheaper_in']} of 6 draws" in output


def test_wrong_input_is_reported(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "profile named 'mars'" in refused(capsys, file, "--profile", "mars")
    assert "stack named 'mars'" in refused(capsys, file, "--stack", "mars")
    assert "--draws must be between" in refused(capsys, file, "--draws", "-1")
    assert "No such file" in refused(capsys, file, "--prices", tmp_path / "nothing.toml")
    assert "No such file" in refused(capsys, file, "--profile", tmp_path / "nothing.toml")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("hello\n")
    assert "broken.jsonl:1: " in refused(capsys, broken)


@pytest.mark.django_db(transaction=True)
def test_a_job_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job(spec=make_spec("hopper-simulated", **SMALL))
    assert run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event()) == 0
    job.refresh_from_db()
    found = retimed(capsys, job.pk)
    assert found["picodollars"] == found["stored"]["picodollars"] == job.account.spent_picodollars
    assert found["time_s"] == job.platform_s
    assert "'job_nothing'" in refused(capsys, "job_nothing")


def test_a_run_on_real_machines_is_asked_where_it_should_be(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "work.jsonl"
    list(Headless(make_spec("cartpole", **SMALL), work=path).events())
    assert "say with --profile where it should" in refused(capsys, path)
    found = retimed(capsys, path, "--profile", "lambda")
    assert found["calls"] >= 10
    assert found["picodollars"] > found["stored"]["picodollars"] == 0
