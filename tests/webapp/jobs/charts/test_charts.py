"""Columns of a job's rounds: spikes survive, resumes are forgotten, a growing run folds as the server cuts it."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import call_failed, checkpoint_saved, evaluated, make_running_job, round_finished
from webapp.jobs.actor_bounds import change_bounds
from webapp.jobs.charts.figures import LINES, NAMES, PACKING, packed, panels_of, point_of, unpacked
from webapp.jobs.charts.history import MARKED, Histories, History, make_buckets, series_of
from webapp.jobs.models import Event, EventKind, Job
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import resume_point

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def _report(number: int, **changes: Any) -> dict[str, Any]:
    return {**round_finished(number, mean=float(number)).report.model_dump(mode="json"), **changes}


def _history(rounds: int, **changes: Any) -> History:
    history = History(BEGUN)
    for number in range(1, rounds + 1):
        at = BEGUN + timedelta(seconds=number)
        history.take(number, at, EventKind.ROUND, {"report": _report(number, **changes)})
    return history


def test_each_round_is_a_point_while_there_is_room() -> None:
    drawn = make_buckets(_history(10).columns, 1, 10)
    assert drawn.per_point == 1
    assert drawn.columns["return"] == [float(number) for number in range(1, 11)]
    assert drawn.columns["wall_s"] == [float(number) for number in range(1, 11)]
    assert not drawn.low


def test_a_spike_of_one_round_in_thousands_is_in_the_picture() -> None:
    history = _history(5_000)
    history.columns["return"][1234] = 1e6
    history.columns["return"][4321] = -1e6
    drawn = make_buckets(history.columns, 1, 5_000)
    assert drawn.per_point == 16
    assert max(drawn.high["return"]) == 1e6  # type: ignore[type-var]
    assert min(drawn.low["return"]) == -1e6  # type: ignore[type-var]
    assert drawn.columns["round"] == [*range(16, 5_000, 16), 5_000]


def test_rounds_without_an_episode_are_no_zeros() -> None:
    history = _history(1_300)
    for at in range(0, 1_300, 2):
        history.columns["return"][at] = float("nan")
    drawn = make_buckets(history.columns, 1, 1_300)
    assert drawn.columns["return"][0] == 4.0
    assert drawn.low["return"][0] == 2.0


def test_looking_closer_brings_every_round_back() -> None:
    drawn = make_buckets(_history(5_000).columns, 1_001, 1_300)
    assert drawn.per_point == 1
    assert drawn.columns["round"] == list(range(1_001, 1_301))


def test_parts_of_a_round_add_up_to_its_time() -> None:
    report = _report(
        1,
        usage={"startup_s": 1.0, "run_s": 2.0, "transfer_s": 1.0},
        learner_usage={"hessian_products": 50, "minibatches": 100},
        collect_s=8.0,
        update_s=4.0,
        total_s=13.0,
    )
    point = point_of(report, 1.0)
    assert [point[one] for one in ("startup_s", "rollout_s", "transfer_s")] == [2.0, 4.0, 2.0]
    assert [point[one] for one in ("update_s", "detector_s", "idle_s")] == [2.0, 2.0, 1.0]


def test_a_call_that_learns_from_data_is_drawn_by_what_it_did() -> None:
    usage = {
        "startup_s": 1.0,
        "run_s": 2.0,
        "transfer_s": 3.0,
        "fetch_s": 1.5,
        "compute_s": 2.0,
        "push_s": 1.0,
    }
    report = _report(1, usage=usage, memory_mb=1769, collect_s=12.0, update_s=1.0, total_s=13.0)
    point = point_of(report, 1.0)
    parts = ("startup_s", "fetch_s", "compute_s", "push_s", "transfer_s", "rollout_s")
    assert [point[one] for one in parts] == [2.0, 3.0, 4.0, 2.0, 1.0, 0.0]
    assert point["memory_mb"] == 1769
    assert "memory_mb" not in point_of(_report(1), 1.0), "only of policies that change it"


def test_what_is_unknown_is_left_out() -> None:
    point = point_of(_report(1, episode_return_mean=None, curvature=None), 1.0)
    assert "return" not in point
    assert "curvature" not in point
    assert set(point) < set(NAMES)


def test_a_resume_takes_the_later_rounds_away() -> None:
    history = _history(30)
    judged = {"round_no": 20, "total_env_steps": 1, "return_mean": 1.0, "episode_returns": [1.0]}
    history.take(31, BEGUN, EventKind.EVALUATION, judged)
    history.take(32, BEGUN, EventKind.RESUMED, {"from_round": 12})
    assert history.rounds == 12
    assert history.evaluations == []
    assert history.marks["resumed"] == [12]


@pytest.mark.django_db
def test_a_job_s_series_follows_its_events() -> None:
    job, epoch = make_running_job()
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for event in (round_finished(1), round_finished(2), evaluated(2), checkpoint_saved(2), round_finished(3)):
        recorder.record(event)
    recorder.record(call_failed())
    recorder.flush()
    series = series_of(Job.objects.get(pk=job.pk))
    assert series["columns"]["round"] == [1, 2, 3]
    assert series["evaluations"] == {"round": [2], "steps": [512], "mean": [100.0]}
    assert series["marks"] == {**{kind: [] for kind in MARKED}, "checkpoint": [2], "call_failed": [4]}
    resume_point(job_id=job.pk, epoch=epoch, load=lambda row: b"")
    recorder.record(round_finished(3, mean=7.0))
    change_bounds(job=job, user=job.created_by, least=None, most=3)
    again = series_of(Job.objects.get(pk=job.pk))
    assert again["marks"]["bounds"] == [4], "from the next round on"
    assert again["columns"]["round"] == [1, 2, 3]
    assert again["columns"]["return"][-1] == 7.0
    assert again["marks"]["resumed"] == [2]


@pytest.mark.django_db
def test_only_new_events_are_read(django_assert_num_queries: Any) -> None:
    job, epoch = make_running_job()
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    recorder.record(round_finished(1))
    job.refresh_from_db()
    known = Histories()
    known.of(job.pk, job.started_at, job.last_seq)
    with django_assert_num_queries(0):
        known.of(job.pk, job.started_at, job.last_seq)
    recorder.record(round_finished(2))
    job.refresh_from_db()
    with django_assert_num_queries(1):
        _, history = known.of(job.pk, job.started_at, job.last_seq)
    assert history.rounds == 2


@pytest.mark.django_db
def test_rounds_are_read_from_their_packed_figures_or_else_from_their_reports() -> None:
    job, epoch = make_running_job()
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for number in (1, 2, 3, 4):
        recorder.record(round_finished(number, mean=float(number), spent=number * 10**12))
    recorder.record(checkpoint_saved(4))
    recorder.flush()
    resume_point(job_id=job.pk, epoch=epoch, load=lambda row: b"")
    for number in (5, 6):
        recorder.record(round_finished(number, mean=-float(number), spent=number * 10**12))
    job.refresh_from_db()

    def columns() -> dict[str, list[float]]:
        _, history = Histories().of(job.pk, job.started_at, job.last_seq)
        return {name: list(map(repr, column)) for name, column in history.columns.items()}  # nan equals nan

    whole = columns()
    assert [float(one) for one in whole["return"]] == [1, 2, 3, 4, -5, -6]
    assert [float(one) for one in whole["spent_usd"]] == [1, 2, 3, 4, 5, 6]
    rounds = Event.objects.filter(job=job, kind=EventKind.ROUND)
    reports = dict(rounds.values_list("pk", "payload"))
    rounds.update(payload={})
    assert columns() == whole, "the reports are not looked at"
    for pk, payload in reports.items():
        Event.objects.filter(pk=pk).update(payload=payload, figures=None, packing=None)
    assert columns() == whole, "a job from before rounds were packed"
    rounds.update(figures=b"as another version packed it", packing=PACKING - 1)
    assert columns() == whole, "a job of another version"


def test_many_rounds_at_once_and_one_by_one_are_the_same() -> None:
    """With a resume in the middle that repeats five rounds, and costs instead of what was spent."""
    numbers = [*range(1, 16), *range(11, 31)]
    blobs = [
        packed(_report(no, mean=no**2 % 37), BEGUN + timedelta(seconds=at)) for at, no in enumerate(numbers)
    ]
    together, apart = History(BEGUN), History(BEGUN)
    together.take_rounds(len(blobs), unpacked(blobs))
    for seq, blob in enumerate(blobs, 1):
        apart.take_rounds(seq, unpacked([blob]))
    assert together.rounds == apart.rounds == 30
    assert together.seq == apart.seq == 35
    for name, column in together.columns.items():
        np.testing.assert_array_equal(column, apart.columns[name], err_msg=name)


def test_a_hundred_thousand_rounds_are_cut_quickly() -> None:
    history = _history(1)
    for column in history.columns.values():
        column.extend([1.0] * 99_999)
    history.columns["round"][:] = type(history.columns["round"])("d", range(1, 100_001))
    began_s = time.thread_time()
    drawn = make_buckets(history.columns, 1, 100_000)
    assert len(drawn.columns["round"]) <= 400
    assert set(drawn.low) <= set(LINES)
    assert time.thread_time() - began_s < 2.0


@pytest.mark.django_db
def test_each_panel_is_a_chart_of_the_page_with_what_its_row_says(client: Client) -> None:
    job, _ = make_running_job()
    client.force_login(job.created_by)
    page = client.get(reverse("jobs:detail", args=[job.project.slug, job.pk])).content.decode()
    figures = {found[1]: found[0] for found in re.finditer(r'<figure[^>]*data-chart="(\w+)"[^>]*>', page)}
    rows = [row for panels in panels_of(job.training_facts).values() for row in panels.items()]
    assert list(figures) == [name for name, _ in rows]
    for name, panel in rows:
        assert (f'data-legend-name="{panel.legend}"' in figures[name]) == bool(panel.legend)
        assert ("data-from-zero" in figures[name]) == panel.from_zero
        assert ("hidden" in figures[name]) == (panel.shown_for != "all")
        assert f"<h2>{panel.title}</h2>" in page
    assert {name for name, panel in rows if panel.legend} <= set(LINES)
