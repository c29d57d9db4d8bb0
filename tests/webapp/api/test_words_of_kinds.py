"""The API, the command and `import starling` call a job's score and progress as its kind of training does."""

from __future__ import annotations

from typing import Any

import pytest

import client as starling
from client import runs
from client.main import main
from client.tables import TablePart, shown
from tests.factories import evaluated, make_running_job, round_finished
from tests.webapp.api_callers import ApiCaller, project_of_client
from tests.webapp.jobs.test_supervised_jobs import make_supervised_job
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Any:
    return project_of_client(monkeypatch)


@pytest.fixture
def walks(project: Any) -> Job:
    job, epoch = make_running_job(project=project)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    recorder.record(round_finished(1, mean=20.0))
    recorder.record(evaluated(1, mean=25.0))
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    return job


@pytest.fixture
def descends(project: Any) -> Job:
    job = make_supervised_job(project)
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    return job


def printed(capsys: Any, *words: str) -> str:
    capsys.readouterr()
    main(list(words))
    found: str = capsys.readouterr().out
    return found


def heads(capsys: Any, *words: str) -> list[str]:
    return printed(capsys, *words).splitlines()[0].split()


def test_a_job_and_a_comparison_name_their_score(project: Any, walks: Job, descends: Job) -> None:
    call, base = ApiCaller(project.people.get()), f"/projects/{project.slug}"
    jobs = [call.get(f"{base}/jobs/{job.pk}").json() for job in (walks, descends)]
    assert [one["progress_unit"] for one in jobs] == ["steps", "samples"]
    words = [(one["actor_name"], one["round_name"]) for one in jobs]
    assert words == [("actor", "round"), ("function", "epoch")]
    assert jobs[0]["score"] == {"name": "return", "higher_is_better": True, "decimals": 1}
    assert jobs[1]["score"] == {"name": "loss", "higher_is_better": False, "decimals": 4}
    compared = call.get(f"{base}/comparison?of={descends.pk}").json()
    assert compared["score"]["name"] == "loss"


def test_tables_are_headed_by_the_words_of_their_jobs(walks: Job, descends: Job, capsys: Any) -> None:
    mixed = heads(capsys, "jobs", "list")
    assert [
        word for word in mixed if word in ("steps", "samples", "return", "loss", "progress", "score")
    ] == [
        "progress",
        "score",
    ]
    assert {"round", "actor"} <= {*mixed}
    for job, actor, *words in (
        (walks, "actor", "round", "steps", "return"),
        (descends, "function", "epoch", "samples", "loss"),
    ):
        for what in ("rounds", "evaluations"):
            assert {*words} <= set(heads(capsys, "jobs", what, job.pk)), what
        assert actor in heads(capsys, "jobs", "rounds", job.pk)
        lines = printed(capsys, "jobs", "show", job.pk).splitlines()
        assert {actor, *words} <= {line.split()[0] for line in lines}


def test_a_forecast_says_what_one_plain_machine_would_take_of_a_model_alone(
    project: Any, capsys: Any
) -> None:
    set_to = ("--set", "training.stop.rounds=2", "--set", "budget_usd=1")
    assert "One plain machine (c5.4xlarge): about $" in printed(
        capsys, "jobs", "forecast", "siren-digits", *set_to
    )
    assert "plain machine" not in printed(capsys, "jobs", "forecast", "cartpole")


def test_following_a_job_tells_its_loss(walks: Job, descends: Job, capsys: Any) -> None:
    followed = printed(capsys, "jobs", "watch", descends.pk)
    assert " samples  training loss " in followed
    assert "evaluation after epoch" in followed
    assert "round" not in followed
    assert "return" not in followed
    assert "256 steps  training return     20.0" in printed(capsys, "jobs", "watch", walks.pk)


def test_runs_draw_themselves_in_their_own_words(walks: Job, descends: Job) -> None:
    run = starling.open_run(descends.pk)
    assert " samples" in str(run)
    assert " loss " in str(run)
    assert " epoch " in str(run)
    assert "return" not in run._repr_html_()
    columns = run.columns()
    assert {"samples", "loss"} <= columns.keys()
    assert len(columns["loss"]) == len(run.rounds()) > 1
    assert starling.open_run(walks.pk).columns()["return"] == [20.0]


def test_the_best_seed_has_the_lowest_loss_or_the_highest_return() -> None:
    def jobs(higher: bool) -> list[dict[str, Any]]:
        return [
            {
                "evaluation_return_mean": value,
                "episode_return_mean": None,
                "score": {"higher_is_better": higher},
            }
            for value in (0.5, 0.1, None, 0.9)
        ]

    assert [runs._best(jobs(higher))["evaluation_return_mean"] for higher in (False, True)] == [0.1, 0.9]


def test_a_heading_without_a_word_in_common_is_the_name_of_its_place() -> None:
    part = [TablePart("@score.name=value:number")]
    assert shown([{"value": 1, "score": {"name": "loss"}}], part).split()[0] == "loss"
    assert shown([{"value": 1}], part).split()[0] == "score"
    assert shown([{"value": 1}], part, {"score": {"name": "return"}}).split()[0] == "return"
