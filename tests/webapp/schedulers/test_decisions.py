"""Why each round had its actors, as the chart of actors asks for it."""

from typing import Any

import pytest
from django.test import Client

from rig.stored_rounds import store_rounds
from tests.factories import make_running_job, make_user, round_finished
from webapp.jobs.models import Job, Round
from webapp.jobs.running.recorder import Recorder
from webapp.schedulers.views import decisions

pytestmark = pytest.mark.django_db


def _ran(reasons: list[str]) -> Job:
    job, epoch = make_running_job(user=make_user())
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for round_no, why in enumerate(reasons, 1):
        event = round_finished(round_no)
        report = event.report.model_copy(update={"plan_reason": why})
        recorder.record(event.model_copy(update={"report": report}))
    recorder.flush()
    job.refresh_from_db()
    return job


def test_each_reason_is_said_where_it_begins_to_hold() -> None:
    job = _ran(["fixed at 8", "fixed at 8", "R 0.78 is the lowest", "fixed at 8"])
    said: Any = [(1, "fixed at 8"), (3, "R 0.78 is the lowest"), (4, "fixed at 8")]
    assert decisions(job) == {"every": 1, "last": 4, "said": said}
    client = Client()
    client.force_login(job.created_by)
    shown = client.get(f"/p/{job.project.slug}/jobs/{job.pk}/decisions").json()
    assert shown["said"] == [list(one) for one in said]


def test_of_a_long_run_those_of_the_charts_points_are_reported() -> None:
    job = _ran(["a"])
    report = Round.objects.get().report
    reports = [{**report, "round_no": no, "plan_reason": f"why {no}"} for no in range(2, 1502)]
    store_rounds(job, reports, job.since)
    Job.objects.filter(pk=job.pk).update(round_no=1501)
    job.refresh_from_db()
    shown = decisions(job)
    assert shown["every"] == 4
    assert [no for no, _ in shown["said"]][:2] == [4, 8]
    assert shown["said"][-1] == (1501, "why 1501")
    assert len(shown["said"]) == 376
