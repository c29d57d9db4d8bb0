"""Dollars to the goal: jobs are read once, medians count those that never got there, and the board is quick."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.factories import make_job, make_project, make_running_job, make_spec, make_user, round_finished
from webapp.comparing.goal_board import board_of, subjects_of
from webapp.comparing.goal_results import measured_rows, read_finished
from webapp.comparing.models import GoalResult
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder

pytestmark = pytest.mark.django_db
CENT = 10**10


def _finished(project: Any, means: list[float], state: str = "succeeded", spec: Any = None) -> Job:
    """A Cart pole job with these returns, of a second and a cent a round."""
    job, epoch = make_running_job(project=project, spec=spec or make_spec(platform={"kind": "simulated"}))
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for round_no, mean in enumerate(means, start=1):
        recorder.record(round_finished(round_no, mean=mean, spent=CENT * round_no))
    recorder.flush()
    Job.objects.filter(pk=job.pk).update(observed=state)
    return Job.objects.get(pk=job.pk)


def _row(project: Any, number: int, cost: int | None, policy: str = "fixed", **changes: Any) -> GoalResult:
    job = changes.pop("job", None) or make_job(project, spec=make_spec(name=f"Job {number}"))
    given = {
        "subject": "CartPole-v1",
        "algorithm": "ppo",
        "cloud": "simulated:lambda",
        "goal": 475.0,
        **changes,
    }
    return GoalResult(
        job=job,
        project=project,
        policy=policy,
        reached=cost is not None,
        cost_picodollars=cost,
        time_s=None if cost is None else cost / CENT,
        **given,
    )


def test_a_finished_job_is_read_once_with_what_it_took_to_get_there() -> None:
    project = make_project()
    job = _finished(project, [480.0] * 6)
    never = _finished(project, [20.0] * 6)
    _finished(project, [480.0] * 6, state="cancelled")
    _finished(project, [480.0] * 6, state="running")
    assert read_finished() == 2
    assert read_finished() == 0
    row = GoalResult.objects.get(job=job)
    assert (row.reached, row.cost_picodollars, row.time_s) == (True, CENT, 1.0)
    assert (row.subject, row.algorithm, row.policy) == (
        "CartPole-v1",
        "ppo",
        job.spec["training"]["scaling"]["kind"],
    )
    assert (row.cloud, row.money, row.goal) == ("simulated:lambda", "simulated", 475.0)
    assert not GoalResult.objects.get(job=never).reached


def test_medians_count_runs_that_never_got_there_and_are_unknown_below_half() -> None:
    project = make_project()
    rows = [_row(project, at, cost) for at, cost in enumerate([5 * CENT, CENT, None, 3 * CENT])]
    rows += [_row(project, 10 + at, cost, "nitro") for at, cost in enumerate([CENT, None, None])]
    GoalResult.objects.bulk_create(rows)
    board = board_of(project, "CartPole-v1")
    assert board is not None
    first, second = board.rows
    assert (first.setting.policy, first.runs, first.reached) == ("fixed", 4, 3)
    assert (first.cost_picodollars, first.time_s) == (3 * CENT, 3.0)
    assert first.job == rows[1].job_id, "the one that got there for least"
    assert (second.setting.policy, second.runs, second.reached) == ("nitro", 3, 1)
    assert second.cost_picodollars is second.time_s is None
    assert (first.algorithm, first.policy) == ("PPO", "Fixed")


def test_real_and_simulated_money_are_rows_of_their_own() -> None:
    project = make_project()
    GoalResult.objects.bulk_create([_row(project, 1, CENT, money="simulated"), _row(project, 2, 2 * CENT)])
    board = board_of(project, "CartPole-v1")
    assert board is not None
    assert [(row.setting.money, row.runs) for row in board.rows] == [("simulated", 1), ("", 1)]


def test_other_projects_and_environments_without_a_reference_are_left_out() -> None:
    project, other = make_project(), make_project()
    GoalResult.objects.bulk_create([_row(other, 1, CENT)])
    board = board_of(project, "CartPole-v1")
    assert board is not None
    assert board.rows == ()
    assert subjects_of(project) == {}
    assert board_of(project, "Ant-v5") is None


def test_measured_rows_come_from_the_stored_experiments() -> None:
    rows = measured_rows("CartPole-v1")
    assert len(rows) > 10
    best = [
        row.cost_picodollars for row in rows if row.goal == rows[0].goal and row.cost_picodollars is not None
    ]
    assert best == sorted(best)
    assert [row.goal for row in rows] == sorted((row.goal for row in rows), reverse=True)
    assert all(row.cost_picodollars is None for row in rows if row.reached < row.runs / 2)
    fixed = next(row for row in rows if row.arm == "fixed at 8")
    assert "scaling=fixed&actors=8" in fixed.run


def test_the_page_shows_both_and_run_this_opens_the_form_with_the_setting(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    project = make_project(user)
    job = _finished(project, [480.0] * 6)
    read_finished()
    page = client.get(reverse("comparing:goals", args=[project.slug])).content.decode()
    assert "$0.0100 sim." in page
    assert "1 of 1" in page
    assert f"?clone={job.pk}" in page
    assert "for the papers" in page
    form = reverse("jobs:new", args=[project.slug])
    begun = client.get(
        f"{form}?environment=Hopper-v5&profile=lambda&scaling=fixed&actors=13"
    ).content.decode()
    assert 'value="13"' in begun
    empty = client.get(f"{reverse('comparing:goals', args=[project.slug])}?subject=Humanoid-v5")
    assert "has finished" in empty.content.decode()


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_jobs_take_as_many_queries_as_ten(client: Client, count: int) -> None:
    user = make_user()
    client.force_login(user)
    project = make_project(user)
    like = make_job(project)
    jobs = Job.objects.bulk_create(
        [
            Job(
                id=f"job_{at}",
                project=project,
                name="n",
                spec=like.spec,
                created_by=user,
                created_at=like.created_at,
                since=like.since,
            )
            for at in range(count)
        ],
        batch_size=2_000,
    )
    rows = [
        _row(project, at, None if at % 3 == 0 else CENT * (1 + at % 97), ("fixed", "nitro")[at % 2], job=job)
        for at, job in enumerate(jobs)
    ]
    address = reverse("comparing:goals", args=[project.slug])
    GoalResult.objects.bulk_create(rows[:10])
    client.get(address)
    with CaptureQueriesContext(connection) as few:
        client.get(address)
    GoalResult.objects.bulk_create(rows[10:], batch_size=5_000)
    with CaptureQueriesContext(connection) as many:
        began = time.perf_counter()
        page = client.get(address).content.decode()
        took_s = time.perf_counter() - began
    assert ("5,000" in page) == (count > 5_000)
    assert len(many) == len(few)
    print(f"the board of {count:,} jobs took {1000 * took_s:.0f} ms")
