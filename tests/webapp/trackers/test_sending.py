"""What trackers get, and that a run neither waits for one nor ends with it. MLflow is a small server of its API."""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_job, make_project, make_spec, make_user
from tests.figures import figures_in
from tests.webapp.trackers.mlflow_server import MlflowServer, mlflow_server
from tests.webapp.trackers.rows import make_tracker
from webapp.connections.sealing import Secret
from webapp.jobs.models import Job
from webapp.jobs.running import tracking
from webapp.jobs.running.runner import run_job
from webapp.trackers import wandb
from webapp.trackers.mlflow import MlflowRun
from webapp.trackers.models import TrackedRun
from webapp.trackers.tracking import GOES_ON, End, NotTracked, RunFacts, Stream, TrackedStep, TryLater

FACTS = RunFacts("job_a", "First", {"training.seed": "7", "name": "x" * 900}, {"money": "actual"})
PATIENT_S = 60.0


@pytest.fixture
def server(settings: Any) -> Iterator[MlflowServer]:
    with mlflow_server() as one:
        settings.STARLING_ALERT_HOSTS = [f"127.0.0.1:{one.port}"]
        yield one


def _rows(count: int, figures: int = 1) -> list[TrackedStep]:
    return [
        TrackedStep(step, float(step), {f"f{at}": float(step) for at in range(figures)})
        for step in range(count)
    ]


class TestMlflow:
    def test_a_run_has_its_parameters_curves_and_end(self, server: MlflowServer) -> None:
        run = MlflowRun(server.address, "Hopper", None)
        assert run.begin(FACTS) == f"{server.address}/#/experiments/1/runs/run1"
        run.send(_rows(60, figures=40))
        run.end("finished", {"final/evaluation": 5.0})
        kept = server.run
        assert (kept.name, kept.status) == ("First", "FINISHED")
        assert kept.parameters["training.seed"] == "7"
        assert kept.tags == {"money": "actual", "starling.job": "job_a"}
        assert kept.curve("f39") == [(step, float(step)) for step in range(60)]
        assert kept.curve("final/evaluation") == [(0, 5.0)]
        assert 100 < server.largest <= 1000

    def test_files_go_through_the_server_and_nowhere_else(self, server: MlflowServer) -> None:
        run = MlflowRun(server.address, "Hopper", Secret("abc"))
        run.begin(FACTS)
        run.keep({"policy.onnx": b"weights", "read me.md": b"card"})
        assert server.run.files == {"policy/policy.onnx": b"weights", "policy/read%20me.md": b"card"}
        assert set(server.authorizations) == {"Bearer abc"}
        server.artifacts = "s3://bucket/1"
        other = MlflowRun(server.address, "Walker", None)
        other.begin(RunFacts("job_b", "Second", {}, {}))
        other.keep({"policy.onnx": b"weights"})
        assert not server.runs["run2"].files

    def test_the_jobs_next_process_goes_on_in_the_same_run(self, server: MlflowServer) -> None:
        first = MlflowRun(server.address, "Hopper", None)
        url = first.begin(FACTS)
        first.end("paused", {})
        assert server.run.status == "RUNNING"
        server.run.status = "FAILED"
        assert MlflowRun(server.address, "Hopper", None).begin(FACTS) == url
        assert (len(server.runs), server.run.status, list(server.experiments)) == (1, "RUNNING", ["Hopper"])

    @pytest.mark.parametrize(
        ("token", "header"),
        [
            (None, None),
            (Secret("abc"), "Bearer abc"),
            (Secret("ada:pw"), f"Basic {base64.b64encode(b'ada:pw').decode()}"),
        ],
    )
    def test_it_signs_in_as_the_server_wants(
        self, server: MlflowServer, token: Secret | None, header: str | None
    ) -> None:
        MlflowRun(server.address, "Hopper", token).begin(FACTS)
        assert set(server.authorizations) == {header}

    @pytest.mark.parametrize(
        ("status", "error", "words"),
        [
            (503, TryLater, "answered 503"),
            (429, TryLater, "answered 429"),
            (401, NotTracked, "refused the token"),
            (400, NotTracked, "Not now, <b>please</b>"),
        ],
    )
    def test_a_refusal_says_what_and_whether_to_try_again(
        self, server: MlflowServer, status: int, error: type[Exception], words: str
    ) -> None:
        server.answers = [status]
        with pytest.raises(error, match=words) as refused:
            MlflowRun(server.address, "Hopper", None).begin(FACTS)
        assert type(refused.value) is error

    def test_an_address_is_checked_at_each_request(self, server: MlflowServer, settings: Any) -> None:
        settings.STARLING_ALERT_HOSTS = []
        with pytest.raises(NotTracked, match="https only"):
            MlflowRun(server.address, "Hopper", None).begin(FACTS)
        assert not server.authorizations

    def test_no_server_at_all_is_tried_later(self, settings: Any) -> None:
        settings.STARLING_ALERT_HOSTS = ["127.0.0.1:9"]
        with pytest.raises(TryLater, match="takes no connections"):
            MlflowRun("http://127.0.0.1:9", "Hopper", None).begin(FACTS)


class _Kept:
    """A tracker in memory. `fails` are raised one by one; `gate` lets requests wait."""

    def __init__(self, *fails: Exception) -> None:
        self.rows: list[TrackedStep] = []
        self.ends: list[tuple[End, Mapping[str, float]]] = []
        self.fails = list(fails)
        self.gate = threading.Event()
        self.gate.set()
        self.closed = False

    def begin(self, facts: RunFacts) -> str:
        self.gate.wait(PATIENT_S)
        if self.fails:
            raise self.fails.pop(0)
        return "https://tracker.example.org/run"

    def send(self, rows: Sequence[TrackedStep]) -> None:
        self.rows += rows

    def end(self, end: End, figures: Mapping[str, float]) -> None:
        self.ends.append((end, figures))

    def keep(self, files: Mapping[str, bytes]) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class TestAStream:
    def test_everything_is_sent_in_order_and_then_the_end(self) -> None:
        kept = _Kept()
        stream = Stream("MLflow", kept, FACTS)
        for row in _rows(250):
            stream.offer(row)
        stream.close(PATIENT_S, "finished", {"x": 1.0})
        assert kept.rows == _rows(250)
        assert kept.ends == [("finished", {"x": 1.0})]
        assert (stream.url, stream.problem, kept.closed) == ("https://tracker.example.org/run", "", True)

    def test_a_slow_tracker_gets_every_other_row_and_that_is_said(self) -> None:
        kept = _Kept()
        kept.gate.clear()
        stream = Stream("MLflow", kept, FACTS, most_waiting=10)
        for row in _rows(100):
            stream.offer(row)
        kept.gate.set()
        stream.close(PATIENT_S, "finished")
        assert 5 <= len(kept.rows) <= 10
        assert kept.rows[-1].step == 99
        left_out = 100 - len(kept.rows)
        assert stream.problem.startswith("MLflow is slower")
        assert figures_in(stream.problem) == [str(left_out)]

    def test_a_tracker_that_does_not_answer_holds_no_one_up(self) -> None:
        kept = _Kept()
        kept.gate.clear()
        stream = Stream("MLflow", kept, FACTS)
        stream.offer(_rows(1)[0])
        stream.close(0.0, "finished")
        assert stream.problem.startswith("MLflow had not")
        assert figures_in(stream.problem) == ["1"]
        assert kept.closed
        kept.gate.set()

    def test_one_that_is_away_for_a_while_is_tried_again(self) -> None:
        kept = _Kept(TryLater("Away."), TryLater("Away."))
        stream = Stream("MLflow", kept, FACTS, again_after_s=(0.0, 0.0))
        stream.offer(_rows(1)[0])
        stream.close(PATIENT_S, "finished")
        assert (len(kept.rows), stream.problem) == (1, "")

    @pytest.mark.parametrize(
        ("failure", "words"),
        [
            (NotTracked("No such project."), f"No such project. {GOES_ON}"),
            (TryLater("Away."), f"Away. {GOES_ON}"),
            (ValueError("secret"), f"Sending to MLflow failed: ValueError. {GOES_ON}"),
        ],
    )
    def test_a_failure_is_said_and_nothing_waits_any_more(self, failure: Exception, words: str) -> None:
        kept = _Kept(failure, failure)
        stream = Stream("MLflow", kept, FACTS, again_after_s=(0.0,))
        stream.close(PATIENT_S)
        stream.offer(_rows(1)[0])
        stream.close(PATIENT_S, "finished")
        assert stream.problem == words
        assert not kept.rows
        assert not stream._waiting


_PACKAGE = """
import json, os, sys

class Settings(dict):
    def __init__(self, **given):
        super().__init__(given)

def _keep(what):
    with open(FILE, "a") as file:
        file.write(json.dumps(what) + "\\n")

def login(**given):
    _keep({"login": given})

class Run:
    url = "https://wandb.ai/lab/hopper/runs/job_a"
    summary = {}
    def define_metric(self, *names, **given):
        pass
    def log(self, figures):
        print("their package talks")
        _keep({"log": figures})
    def finish(self, exit_code):
        _keep({"finish": exit_code, "summary": self.summary})

def init(**given):
    if given["project"] == "closed":
        raise RuntimeError("permission\\ndenied")
    variables = sorted(name for name in os.environ if "SECRET" in name or name == "WANDB_API_KEY")
    _keep({"init": {key: given[key] for key in ("entity", "project", "id", "resume", "config")}, "sees": variables})
    return Run()
"""


class TestWandb:
    """Their package is a small one that keeps what it is told."""

    @pytest.fixture
    def kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        file = tmp_path / "kept.jsonl"
        (tmp_path / "wandb.py").write_text(f"FILE = {str(file)!r}\n{_PACKAGE}")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("WANDB_API_KEY", "of the operator")
        monkeypatch.setenv("SECRET_KEY", "of the installation")
        return file

    def test_a_run_is_reported_by_a_process_that_sees_no_secret_of_ours(self, kept: Path) -> None:
        run = wandb.WandbRun("", "lab/hopper", Secret("key"))
        assert run.begin(FACTS) == "https://wandb.ai/lab/hopper/runs/job_a"
        run.send(_rows(2))
        run.end("failed", {"final/evaluation": 5.0})
        run.close()
        login, begun, *rows, end = map(json.loads, kept.read_text().splitlines())
        assert login["login"]["key"] == "key"
        assert begun["sees"] == []
        assert begun["init"] == {
            "entity": "lab",
            "project": "hopper",
            "id": "job_a",
            "resume": "allow",
            "config": FACTS.parameters,
        }
        assert [row["log"] for row in rows] == [{"f0": float(at), "global_step": at} for at in range(2)]
        assert end == {"finish": 1, "summary": {"final/evaluation": 5.0}}
        assert not Path(run._folder).exists()

    def test_a_refusal_is_a_sentence(self, kept: Path) -> None:
        run = wandb.WandbRun("", "closed", Secret("key"))
        with pytest.raises(NotTracked, match=r"W&B .*: permission denied"):
            run.begin(FACTS)
        run.close()

    def test_a_process_that_died_is_a_sentence_too(self, kept: Path) -> None:
        run = wandb.WandbRun("", "hopper", Secret("key"))
        run.begin(FACTS)
        assert run._process is not None
        run._process.kill()
        run._process.wait()
        with pytest.raises(NotTracked, match="has ended"):
            run.end("finished", {})
        run.close()

    def test_without_the_package_it_says_how_to_get_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "wandb", None)
        with pytest.raises(NotTracked, match="pip install wandb"):
            wandb.WandbRun("", "hopper", None).begin(FACTS)


def _small(**changes: Any) -> Any:
    return make_spec(
        training__scaling__actors=2,
        training__rollout__steps_per_call=16,
        training__stop={"rounds": 3, "env_steps": None},
        training__evaluation={"every_rounds": 3, "episodes": 1},
        **changes,
    )


def _run(job: Job) -> None:
    assert run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event()) == 0
    job.refresh_from_db()


@pytest.mark.django_db(transaction=True)
class TestAJob:
    @pytest.fixture
    def project(self) -> Any:
        return make_project(make_user())

    def test_its_rounds_evaluations_spending_spec_and_score_are_there(
        self, project: Any, server: MlflowServer
    ) -> None:
        make_tracker(project, server.address)
        job = make_job(project, spec=_small(training__seed=7, platform={"kind": "simulated"}))
        _run(job)
        kept = server.run
        assert kept.status == "FINISHED"
        assert kept.parameters["training.seed"] == "7"
        assert [step for step, _ in kept.curve("rollout/round")] == [32, 64, 96]
        assert kept.curve("eval/mean_reward") == [(96, job.evaluated_score)]
        assert kept.curve("final/evaluation") == [(0, job.evaluated_score)]
        assert kept.tags["money"] == "simulated"
        assert kept.curve("cost/simulated_usd")[-1][1] > 0
        assert not kept.curve("cost/spent_usd"), "what no one pays is not called spent"
        assert TrackedRun.objects.get().url == f"{server.address}/#/experiments/1/runs/run1"
        assert not TrackedRun.objects.get().problem
        assert kept.files["policy/policy.onnx"]
        assert {"policy/policy.onnx"} < set(kept.files)

    def test_it_runs_to_its_end_without_a_tracker_that_is_set(
        self, project: Any, server: MlflowServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tracking, "_GRACE_S", 0.0)
        make_tracker(project, server.address)
        server.open.clear()  # it takes connections and never answers
        job = make_job(project, spec=_small(platform__workers=1))
        _run(job)
        assert (job.observed, job.round_no) == ("succeeded", 3)
        assert "the run ended" in TrackedRun.objects.get().problem

    def test_a_policy_that_cannot_be_made_leaves_the_run_finished(
        self, project: Any, server: MlflowServer, monkeypatch: pytest.MonkeyPatch, caplog: Any
    ) -> None:
        def fails(*_: Any) -> Any:
            raise KeyError("a figure that no one expected to miss")

        monkeypatch.setattr(tracking, "policy_files", fails)
        make_tracker(project, server.address)
        job = make_job(project, spec=_small(platform={"kind": "simulated"}))
        _run(job)
        assert (job.observed, job.crashes) == ("succeeded", 0)
        assert server.run.status == "FINISHED"
        assert not server.run.files
        assert "not sent to MLflow" in caplog.text

    def test_one_that_is_off_gets_nothing(self, project: Any, server: MlflowServer) -> None:
        make_tracker(project, server.address, on=False)
        trackers = tracking.Trackers(make_job(project))
        trackers.open()
        trackers.close()
        assert not server.authorizations
