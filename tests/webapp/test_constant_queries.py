"""Every page and every address of the API that lists something: as many queries for twelve rows as for four."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from cloud.accounts.profiling_runs import ProfilingPlan
from tests.factories import (
    call_failed,
    checkpoint_saved,
    evaluated,
    make_alert,
    make_connection,
    make_delivery,
    make_project,
    make_running_job,
    make_spec,
    make_user,
    round_finished,
)
from tests.members import add_member
from tests.webapp.ab_test_rows import make_ab_test
from tests.webapp.scheduler_rows import make_rows
from training.rl.environments.model import EnvironmentSpec
from webapp.accounts import services as accounts
from webapp.api.tokens import make_token
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.charts.history import histories
from webapp.jobs.form.drafts import save_draft
from webapp.jobs.list import actions
from webapp.jobs.list.run_table import save_view
from webapp.jobs.models import Film, JobGroup
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.surfaces.models import Surface
from webapp.money.budgets import create_budget
from webapp.reports.models import CloudBill, ReportFile
from webapp.reports.schedules import add_schedule
from webapp.resources.profiling.models import MemoryProfile

pytestmark = pytest.mark.django_db

PAGES = (
    *("", "find/?q=job", "jobs/", "jobs/?rows=1", "compare/?of={group}", "groups/{group_no}/", "jobs/new/"),
    *("jobs/{job}/", "jobs/{job}/actors/", "jobs/{job}/events/?rounds=1", "jobs/{job}/checkpoints/"),
    *(
        "jobs/{job}/cost/",
        "ab-tests/",
        "goals/",
        "alerts/",
        "alerts/channels/",
        "alerts/channels/{channel}/",
        "budgets/",
    ),
    *("reports/?range=last-30-days&by=job", "reports/bills/", "clouds/", "schedulers/", "members/"),
)
"""Below the project's address."""
API = (
    *("", "/{slug}", "/{slug}/jobs", "/{slug}/connections", "/{slug}/budgets", "/{slug}/reports"),
    *("/{slug}/jobs/{job}/events", "/{slug}/jobs/{job}/rounds", "/{slug}/jobs/{job}/evaluations"),
    *(
        "/{slug}/jobs/{job}/checkpoints",
        "/{slug}/groups",
        "/{slug}/comparison?of={group}",
        "/{slug}/alerts",
    ),
    *("/{slug}/members", "/{slug}/channels", "/{slug}/channels/{channel}/deliveries", "/{slug}/schedules"),
    *(
        "/{slug}/bills",
        "/{slug}/drafts",
        "/{slug}/views",
        "/{slug}/schedulers",
        "/{slug}/scheduler-trainings",
        "/{slug}/ab-tests",
        "/{slug}/goals",
        "/{slug}/jobs/{job}/predictions",
    ),
    *("/{slug}/jobs/{job}/surfaces", "/{slug}/jobs/{job}/films", "/{slug}/connections/simulated/profiles"),
)
"""Below /api/v1/projects."""


class Growing:
    """A project with `rows` of everything."""

    def __init__(self) -> None:
        self.owner = make_user()
        self.project = make_project(self.owner)
        self.job, epoch = make_running_job(project=self.project, user=self.owner)
        self.recorder = Recorder(self.job.pk, epoch, keep_checkpoints=100)
        self.channel = make_delivery(self.project)[0]
        self.rows = 0
        _, self.key = make_token(user=self.owner, name="test", scopes=())
        self.grow()
        self.grow()

    def grow(self) -> None:
        """One more of everything, twice."""
        for _ in range(2):
            self.rows += 1
            self._one_more(self.rows)
        self.recorder.flush()
        histories.forget()

    def _one_more(self, number: int) -> None:
        spec = make_spec(name=f"Job {number}", tags=[f"tag{number}"], group="Seeds", training__seed=number)
        job, epoch = make_running_job(project=self.project, user=self.owner, spec=spec)
        Recorder(job.pk, epoch, keep_checkpoints=3).record(round_finished(1, mean=float(number)))
        actions.set_note(job=job, text="noted")
        for event in (
            round_finished(number),
            evaluated(number, 100.0 + number),
            checkpoint_saved(number),
            call_failed(),
        ):
            self.recorder.record(event)
        make_alert(self.project)
        make_ab_test(self.job)
        make_connection(self.project)
        create_budget(project=self.project, name=f"b{number}", limit_picodollars=10**15, user=self.owner)
        add_member(self.project, make_user().email, "viewer")
        accounts.create_project(f"Another {number}", self.owner)
        make_token(user=self.owner, name=f"t{number}", scopes=())
        save_view(project=self.project, user=self.owner, name=f"v{number}", address="?q=state:failed")
        save_draft(project=self.project, user=self.owner, values={"name": f"d{number}"}, begun_with="")
        fields = {"every": "week", "by": "day", "prices": "actual", "formats": ["csv"]}
        add_schedule(project=self.project, user=self.owner, recipients=[self.owner], **fields)
        now = SYSTEM_CLOCK.now()
        bill = {"imported_by": self.owner, "since": now, "sha256": str(number)}
        CloudBill.objects.create(project=self.project, name=f"bill{number}", **bill)
        span = {"first_day": "2026-11-01", "last_day": "2026-11-30"}
        row = {
            "question": span,
            "format": "csv",
            "requested_by": self.owner,
            "requested_at": now,
            "since": now,
        }
        ReportFile.objects.create(project=self.project, **row)
        make_rows(self.project, name=f"s{number}")
        around = {"checkpoint": f"c{number}", "sha256": f"{number:064}", "round_no": number, "since": now}
        Film.objects.create(job=self.job, requested_by=self.owner, **around)
        grid = {"grid": 9, "span": 1, "episodes": 1}
        Surface.objects.create(job=self.job, requested_by=self.owner, **around, **grid)
        plan = ProfilingPlan(environment=EnvironmentSpec(), memory_mb=(1024,)).model_dump(mode="json")
        wish = {"requested_by": self.owner, "requested_at": now, "since": now, "limit_picodollars": 0}
        MemoryProfile.objects.create(project=self.project, plan=plan, state="done", **wish)

    def address(self, path: str) -> str:
        group = JobGroup.objects.get(project=self.project, name="Seeds")
        return path.format(
            slug=self.project.slug,
            job=self.job.pk,
            group=f"group_{group.pk}",
            group_no=group.pk,
            channel=self.channel.pk,
        )


@pytest.fixture
def growing() -> Iterator[Growing]:
    histories.forget()
    yield Growing()
    histories.forget()


def _grew(get: Callable[[str], Any], growing: Growing, paths: tuple[str, ...]) -> dict[str, list[str]]:
    """By path: the queries that are more than before, where there are any."""

    def queries_by_path() -> dict[str, list[str]]:
        found = {}
        for path in paths:
            get(path)  # what a process learns once
            histories.forget()
            with CaptureQueriesContext(connection) as queries:
                answer = get(path)
            assert answer.status_code == 200, (path, answer.status_code)
            found[path] = [one["sql"] for one in queries.captured_queries]
        return found

    few = queries_by_path()
    for _ in range(4):
        growing.grow()
    many = queries_by_path()
    return {path: many[path][len(few[path]) :] for path in paths if len(many[path]) > len(few[path])}


def test_pages_ask_as_often_for_many_rows_as_for_few(growing: Growing, client: Client) -> None:
    client.force_login(growing.owner)
    base = f"/p/{growing.project.slug}/"
    grew = _grew(lambda path: client.get(base + growing.address(path)), growing, PAGES)
    assert grew == {}


def test_tokens_and_installation_pages_too(growing: Growing, client: Client) -> None:
    growing.owner.is_staff = True
    growing.owner.save()
    client.force_login(growing.owner)
    paths = ("/account/tokens/", "/reports/?range=last-30-days")
    assert _grew(client.get, growing, paths) == {}


def test_the_api_asks_as_often_for_many_rows_as_for_few(growing: Growing, client: Client) -> None:
    def get(path: str) -> Any:
        headers = {"Authorization": f"Bearer {growing.key}"}
        return client.get(f"/api/v1/projects{growing.address(path)}", headers=headers)

    assert _grew(get, growing, API) == {}
