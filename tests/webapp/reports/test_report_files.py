"""Large reports are built by the worker: once, for members only, with progress and a notice, and not for ever."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.urls import reverse

from tests.factories import FixedClock, make_project, make_running_job, make_spec, make_user
from tests.webapp.api_callers import ApiCaller
from tests.webapp.settled import DAY, many_charges
from webapp.alerts.models import Alert, AlertKind
from webapp.background import TASK
from webapp.celery import app
from webapp.money.amounts import exact_usd
from webapp.reports import query_params, report_builds
from webapp.reports.files.formats import FORMATS
from webapp.reports.models import FileState, ReportFile
from webapp.reports.report_query import Question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous:Warning"),
]


class Scene:
    def __init__(self) -> None:
        self.clock = FixedClock()
        self.owner = make_user()
        self.project = make_project(self.owner)
        spec = make_spec("hopper-simulated")
        job, _ = make_running_job(project=self.project, user=self.owner, spec=spec)
        self.total = many_charges([job], 2500, DAY, timedelta(hours=3))
        self.question = Question(
            project=self.project.pk, first_day=DAY.date(), last_day=DAY.date(), prices="simulated", by="call"
        )

    def ask(self, format_key: str = "json", **changes: Any) -> ReportFile:
        question = self.question.model_copy(update=changes)
        return report_builds.request_file(
            question=question, format_key=format_key, user=self.owner, clock=self.clock
        )

    def address(self, report: ReportFile) -> str:
        return reverse("reports:built", args=[self.project.slug, report.pk])


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_report_is_built_once_told_and_handed_to_members(scene: Scene, client: Any) -> None:
    report = scene.ask("focus")
    assert (report.state, report.rows_of) == (FileState.QUEUED, 2500)
    assert scene.ask("focus") == report, "the same one is on its way"
    client.force_login(scene.owner)
    assert client.get(scene.address(report)).status_code == 404

    report_builds.BUILDING.run(report.pk, clock=scene.clock)
    report_builds.BUILDING.run(report.pk, clock=scene.clock)
    report.refresh_from_db()
    assert (report.state, report.rows_done) == (FileState.READY, 2500)
    answer = client.get(scene.address(report))
    assert "focus-1.2.csv" in answer["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(b"".join(answer).decode())))
    assert sum(round(float(row["BilledCost"]) * 10**12) for row in rows) == scene.total
    assert not Alert.objects.exists(), "no one is told of what they have just asked for"
    client.force_login(make_user())
    assert client.get(scene.address(report)).status_code == 404


def test_a_person_who_has_waited_for_long_gets_an_alert(scene: Scene) -> None:
    report = scene.ask("focus")
    scene.clock.forward(report_builds.WAITED_FOR.total_seconds())
    report_builds.BUILDING.run(report.pk, clock=scene.clock)
    alert = Alert.objects.get(kind=AlertKind.REPORT)
    assert (alert.project, alert.severity) == (scene.project, "info")


def test_a_report_that_a_program_asks_for_raises_no_alert(scene: Scene) -> None:
    caller = ApiCaller(scene.owner)
    query = {"first_day": "2026-11-03", "last_day": "2026-11-03", "format": "csv", "prices": "simulated"}
    made = caller.post(f"/projects/{scene.project.slug}/reports", query).json()
    report_builds.BUILDING.run(made["id"])
    assert caller.get(f"/projects/{scene.project.slug}/reports/{made['id']}").json()["state"] == "ready"
    assert not Alert.objects.exists()


def test_the_page_leaves_only_large_files_to_the_worker(
    scene: Scene, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"from": "2026-11-03", "to": "2026-11-03", "by": "call", "prices": "simulated"}
    client.force_login(scene.owner)
    page, file = (reverse(f"reports:{name}", args=[scene.project.slug]) for name in ("page", "file"))
    assert "Build JSON" not in client.get(page, query).content.decode()
    monkeypatch.setattr(query_params, "_MADE_AT_ONCE", 1000)
    text = client.get(page, query).content.decode()
    assert "Build JSON" in text
    assert "Build CSV" not in text, "it streams"
    large = client.get(file, {**query, "format": "json"})
    assert large.status_code == 302
    assert large["Location"].startswith(page)
    csv_file = b"".join(client.get(file, {**query, "format": "csv"})).decode()
    assert csv_file.splitlines()[-1].split(",")[12] == exact_usd(scene.total)

    client.post(reverse("reports:build", args=[scene.project.slug]), {**query, "format": "json"})
    report = ReportFile.objects.get()
    assert Question.model_validate(report.question) == scene.question
    listed = client.get(reverse("reports:files", args=[scene.project.slug])).content.decode()
    assert 'data-unfinished="yes"' in listed
    assert "Waiting" in listed


def test_what_a_dead_worker_left_is_built_again(scene: Scene) -> None:
    report = scene.ask()
    ReportFile.objects.update(state=FileState.BUILDING)
    report_builds.BUILDING.recover(clock=scene.clock)
    report.refresh_from_db()
    assert report.state == FileState.BUILDING, "it may still be at work"
    scene.clock.forward(report_builds.SILENT_FOR.total_seconds() + 1)
    report_builds.BUILDING.recover(clock=scene.clock)
    report_builds.BUILDING.run(report.pk, clock=scene.clock)
    report.refresh_from_db()
    assert report.state == FileState.READY


def test_the_worker_does_what_messages_and_the_beat_say(scene: Scene) -> None:
    report = scene.ask()
    app.loader.import_default_modules()
    for beat in ("reports", "background"):
        app.tasks[settings.CELERY_BEAT_SCHEDULE[beat]["task"]]()
    app.tasks[TASK]("reports.reportfile", report.pk)
    app.tasks[TASK]("reports.cloudbill", 0)
    report.refresh_from_db()
    assert report.state == FileState.READY


def test_a_report_goes_after_a_week_with_its_file(scene: Scene) -> None:
    report = scene.ask()
    report_builds.BUILDING.run(report.pk, clock=scene.clock)
    report.refresh_from_db()
    path = report_builds.folder() / report.file
    assert path.stat().st_size == report.byte_count
    scene.clock.forward(report_builds.KEPT_FOR.total_seconds() + 1)
    report_builds.BUILDING.recover(clock=scene.clock)
    assert not path.exists()
    assert not ReportFile.objects.exists()


def test_one_project_cannot_fill_the_worker(scene: Scene) -> None:
    for day in range(1, report_builds.MOST_UNFINISHED + 1):
        scene.ask(first_day=DAY.replace(day=day).date(), last_day=DAY.replace(day=20).date())
    with pytest.raises(report_builds.TooMany, match="are being built"):
        scene.ask("xlsx")


def test_one_that_cannot_be_built_says_so(scene: Scene) -> None:
    report = scene.ask()
    in_its_place = report_builds.folder() / f"{report.pk}{FORMATS[report.format].suffix}"
    in_its_place.mkdir()
    report_builds.BUILDING.run(report.pk, clock=scene.clock)
    in_its_place.rmdir()
    report.refresh_from_db()
    assert report.state == FileState.FAILED
    assert "Build it again" in report.reason
    assert not Alert.objects.filter(kind=AlertKind.REPORT).exists()
