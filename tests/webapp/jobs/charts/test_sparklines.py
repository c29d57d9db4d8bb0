"""The small lines of lists: read once for each state of a job."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import make_project, make_running_job, round_finished
from webapp.jobs.charts import sparklines
from webapp.jobs.charts.sparklines import scores_of
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import resume_point

pytestmark = pytest.mark.django_db


def _queries_and_scores(*names: str) -> tuple[int, list[list[tuple[int, float]]]]:
    jobs = [Job.objects.get(pk=pk) for pk in names]
    with CaptureQueriesContext(connection) as queries:
        found = scores_of(jobs)
    return len(queries), [list(found[pk]) for pk in names]


def test_a_line_is_read_again_only_after_its_job_has_changed() -> None:
    project = make_project()
    (first, epoch), (second, of_second) = (make_running_job(project=project) for _ in range(2))
    for job, lease, means in ((first, epoch, (10.0, 20.0)), (second, of_second, (5.0,))):
        recorder = Recorder(job.pk, lease, keep_checkpoints=3)
        for number, mean in enumerate(means, start=1):
            recorder.record(round_finished(number, mean=mean))
    both = (first.pk, second.pk)
    assert _queries_and_scores(*both) == (1, [[(1, 10.0), (2, 20.0)], [(1, 5.0)]])
    assert _queries_and_scores(*both) == (0, [[(1, 10.0), (2, 20.0)], [(1, 5.0)]])
    Recorder(second.pk, of_second, keep_checkpoints=3).record(round_finished(2, mean=6.0))
    assert _queries_and_scores(*both) == (1, [[(1, 10.0), (2, 20.0)], [(1, 5.0), (2, 6.0)]])
    resume_point(job_id=first.pk, epoch=epoch, load=lambda row: None)
    assert _queries_and_scores(*both) == (0, [[], [(1, 5.0), (2, 6.0)]])
    Recorder(first.pk, epoch, keep_checkpoints=3).record(round_finished(1, mean=11.0))
    assert _queries_and_scores(*both) == (1, [[(1, 11.0)], [(1, 5.0), (2, 6.0)]])


def test_only_so_many_lines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    jobs = [make_running_job(project=project) for _ in range(3)]
    for job, epoch in jobs:
        Recorder(job.pk, epoch, keep_checkpoints=3).record(round_finished(1, mean=1.0))
    monkeypatch.setattr(sparklines, "_KEPT", 2)
    monkeypatch.setattr(sparklines, "_known", {})
    names = [job.pk for job, _ in jobs]
    for _ in range(2):
        assert _queries_and_scores(*names) == (1, [[(1, 1.0)]] * 3)
        assert len(sparklines._known) == 2
