"""Jobs made from other jobs: forks that begin with a checkpoint, the same again, and what pages tell of it."""

import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp.bookkeeping import assert_whole
from training.engine.checkpoints import FileCheckpointStore, Progress
from training.rl.learner import LearnerState
from webapp.jobs.lineage import first_checkpoint_path, fork_source, load_first_checkpoint
from webapp.jobs.models import Job, Origin
from webapp.jobs.policies.downloads import list_checkpoints
from webapp.jobs.running.runner import run_job
from webapp.jobs.seed_groups import launch_seeds, more_seeds, run_again
from webapp.jobs.services import SpecRefused, submit_job

pytestmark = pytest.mark.django_db(transaction=True)


def _spec(**changes: Any) -> Any:
    return make_spec(
        training__scaling__actors=2,
        training__rollout__steps_per_call=16,
        training__stop={"rounds": 2, "env_steps": None},
        training__checkpoints={"every_rounds": 1},
        training__evaluation={"every_rounds": 2, "episodes": 1},
        platform__workers=1,
        **changes,
    )


def _run(job: Job) -> None:
    assert run_job(job.pk, owner="test", hand_over=threading.Event()) == 0
    job.refresh_from_db()


def _weights(job: Job, name: str) -> Any:
    data = FileCheckpointStore(Path(settings.STARLING_DATA) / "checkpoints" / job.pk).load(name)
    return LearnerState.decode(Progress.decode(data, job.parsed_spec().training).learner)


@pytest.fixture
def learned() -> Job:
    job = make_job(spec=_spec())
    _run(job)
    return job


def test_a_fork_begins_with_the_chosen_checkpoint_and_runs_to_its_own_end(learned: Job) -> None:
    first = next(row for row in list_checkpoints(learned) if row.round_no == 1)
    fork = submit_job(
        project=learned.project,
        user=learned.created_by,
        spec=_spec(name="Fork", training__seed=5),
        made_from=fork_source(learned, first.name),
    )
    submitted = fork.events.get(seq=1).payload["text"]
    assert f"{learned.name} ({learned.pk}) after round 1" in submitted
    for file in (Path(settings.STARLING_DATA) / "checkpoints" / learned.pk).iterdir():
        file.unlink()  # what the first job keeps is its own affair
    held = LearnerState.decode(
        Progress.decode(load_first_checkpoint(fork.pk) or b"", fork.parsed_spec().training).learner
    )
    assert held.version == 1
    _run(fork)
    assert (fork.observed, fork.round_no, fork.total_progress) == ("succeeded", 2, 64)
    assert _weights(fork, list_checkpoints(fork)[0].name).version == 2
    origin = Origin.objects.get(job=fork)
    assert (origin.of, origin.way, origin.round_no) == (learned, "fork", 1)
    assert_whole(fork)


def test_other_seeds_of_a_fork_begin_with_the_same(learned: Job) -> None:
    options = {"project": learned.project, "user": learned.created_by}
    group = launch_seeds(**options, spec=_spec(name="Two"), count=2, made_from=fork_source(learned, ""))
    more_seeds(user=learned.created_by, like=group.jobs.order_by("pk")[0], count=1)
    again = run_again(job=group.jobs.first(), user=learned.created_by, new_seed=True)
    beginnings = {load_first_checkpoint(job.pk) for job in (*group.jobs.all(), again)}
    assert group.jobs.count() == 3
    assert len(beginnings) == 1
    assert None not in beginnings


def test_a_fork_of_what_is_gone_or_damaged_is_refused_and_nothing_is_left(learned: Job) -> None:
    made_from = fork_source(learned, "")
    assert made_from is not None
    assert made_from.file is not None
    whole = made_from.file.read_bytes()
    made_from.file.write_bytes(whole[:-1] + b"x")
    options = {"project": learned.project, "user": learned.created_by, "spec": _spec(name="Fork")}
    with pytest.raises(SpecRefused, match=r"checkpoint .* is damaged"):
        submit_job(**options, made_from=made_from)
    made_from.file.unlink()
    with pytest.raises(SpecRefused, match="No such file"):
        submit_job(**options, made_from=made_from)
    assert not Job.objects.filter(name="Fork").exists()


def test_a_fork_keeps_environment_network_and_normaliser(learned: Job) -> None:
    strange = _spec(
        training__environment__id="Acrobot-v1",
        training__network={"kind": "mlp", "hidden": [8]},
        training__algorithm__normalise_observations=True,
    )
    with pytest.raises(SpecRefused) as refused:
        submit_job(
            project=learned.project, user=learned.created_by, spec=strange, made_from=fork_source(learned, "")
        )
    assert [problem.path for problem in refused.value.problems] == [
        "training.environment.id",
        "training.network",
        "training.algorithm.normalise_observations",
    ]


def test_a_fork_whose_beginning_is_lost_waits_for_it_and_says_so(learned: Job) -> None:
    fork = submit_job(
        project=learned.project,
        user=learned.created_by,
        spec=_spec(name="Fork"),
        made_from=fork_source(learned, ""),
    )
    first_checkpoint_path(fork.pk).unlink()
    assert run_job(fork.pk, owner="test", hand_over=threading.Event()) == 0
    fork.refresh_from_db()
    assert (fork.observed, fork.reason_code) == ("paused", "unreadable")
    assert "this fork" in fork.reason


def test_again_is_the_same_job_with_the_same_or_an_unused_seed() -> None:
    user = make_user()
    job = make_job(make_project(user), user, spec=_spec(name="Mine", training__seed=3))
    same = run_again(job=job, user=user, new_seed=False, key="one")
    assert run_again(job=job, user=user, new_seed=False, key="one") == same
    assert same.spec == job.spec
    assert (same.origin.of, same.origin.way) == (job, "again")
    new = [run_again(job=job, user=user, new_seed=True) for _ in range(2)]
    assert [one.spec["training"]["seed"] for one in new] == [4, 5]
    assert new[0].name == "Mine, seed 4"
    assert new[0].spec["budget_usd"] == job.spec["budget_usd"]
