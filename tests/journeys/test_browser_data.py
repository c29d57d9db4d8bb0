"""A person brings a table and takes a model away: upload, logistic regression by Siren for five cents, watch, pause,
resume, stop, fork, compare with a fixed number of functions, download."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.factories import make_project, make_user
from tests.journeys.hands import Mouse
from tests.journeys.signed_in import sign_in, watch_for_faults
from tests.journeys.steps import compare_jobs, stop_job
from tests.webapp.bookkeeping import assert_whole
from tests.webapp.data_tables import table_of_numbers
from tests.webapp.scheduler_rows import make_version
from webapp.jobs.models import Job
from webapp.schedulers.models import Version

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]
BUDGET = "0.05"
ROUND = r"Number(document.querySelector('[data-live=round]')?.textContent.replace(/\D/g, '') ?? 0)"


def test_from_a_table_to_a_model(live_site: str, live_worker: Path, page: Page) -> None:
    faults = watch_for_faults(page)
    page.set_default_timeout(240_000)  # its first epoch has 100 calls
    user = make_user()
    project = make_project(user)
    scheduler = make_version(project, of_data=True)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/")
    _uploads(page)
    _launches_by_siren(page, scheduler)
    _watches(page)
    _pauses_resumes_and_stops(page)
    _forks_with_fixed_functions(page)
    _downloads(page)
    assert "Siren" in compare_jobs(Mouse(page), ("By Siren", "Four functions"))
    for job in Job.objects.all():
        assert_whole(job)
        assert job.account.spent_picodollars <= 5 * 10**10
    assert faults == []


def _uploads(page: Page) -> None:
    Mouse(page).go("Data")
    table = {"name": "patients.csv", "mimeType": "text/csv", "buffer": table_of_numbers(4_000).encode()}
    page.get_by_label("File").set_input_files(table)  # type: ignore[arg-type]
    page.click("text=Upload it")
    page.get_by_label("Target").select_option("ill")
    page.check("[aria-label='Leave out age']")
    page.click("text=Make the data set")
    page.click("text=Train a model on this data set")


def _launches_by_siren(page: Page, scheduler: Version) -> None:
    """The form says what it will take, and what one plain machine would."""
    page.wait_for_selector(".forecast-sentence strong")
    assert page.input_value("[name='training.supervised.model.kind']") == "logistic"
    assert page.is_visible("text=One plain machine (c5.4xlarge): about $")
    page.fill("[name='name']", "By Siren")
    page.fill("[name='training.supervised.stop.rounds']", "5,000")
    page.fill("[name='budget_usd']", BUDGET)
    page.click("#more > summary")
    page.select_option("[name='training.supervised.scaling.kind']", "siren")
    page.select_option("[name='training.supervised.scaling.siren.scheduler']", scheduler.key)
    page.wait_for_selector(".forecast-sentence:has-text('until the budget ends it')")
    page.click("[data-launch]")
    page.wait_for_url("**/jobs/job_*/")


def _watches(page: Page) -> None:
    """Loss, functions, memory and spend, as epochs end."""
    for chart in ("return", "actors", "memory_mb", "spend", "round_time"):
        page.wait_for_selector(f"[data-chart={chart}]:not([hidden]):not(.no-points) canvas")
    assert page.inner_text("[data-chart=return] h2") == "Loss"
    parts = page.locator("[data-chart=round_time]")
    parts.scroll_into_view_if_needed()  # what is not seen is not drawn
    parts.locator("[data-legend]:has-text('Compute')").wait_for()
    assert "Rollout" not in parts.inner_text()


def _pauses_resumes_and_stops(page: Page) -> None:
    page.click("button:has-text('Pause')")
    page.wait_for_selector(".pill:has-text('Paused')")
    paused = Job.objects.get()
    assert paused.reason_code != "budget", "it was paused before its budget ended it"
    page.click("button:has-text('Resume') >> visible=true")
    page.wait_for_function(f"() => {ROUND} > {paused.round_no}")
    stop_job(Mouse(page))


def _forks_with_fixed_functions(page: Page) -> None:
    page.click(".job-menu > summary")
    page.click("text=Fork from a checkpoint")
    page.fill("[name='name']", "Four functions")
    page.click("#more > summary")
    page.select_option("[name='training.supervised.scaling.kind']", "fixed")
    page.fill("[name='training.supervised.scaling.fixed.actors']", "4")
    page.fill("[name='training.supervised.stop.rounds']", "3")
    page.click("[data-launch]")
    page.wait_for_url("**/jobs/job_*/")
    page.wait_for_selector(".pill:has-text('Succeeded')")


def _downloads(page: Page) -> None:
    page.click(".tabs >> text=Checkpoints & model")
    page.wait_for_selector("text=On 800 held-out rows")
    assert page.is_visible("text=Largest coefficients")
    with page.expect_download() as awaited:
        page.click("text=Download the")
    archive = zipfile.ZipFile(io.BytesIO(awaited.value.path().read_bytes()))
    assert sorted(archive.namelist()) == ["README.md", "model.onnx", "predict.py"]
    assert "On 800 rows" in archive.read("README.md").decode()
    page.click(".tabs >> text=Cost")
    with page.expect_download() as awaited:
        page.click("text=Cost by epoch (CSV)")
    report = awaited.value.path().read_text().splitlines()
    assert [line.partition(",")[0] for line in (report[0], report[-1])] == ["round", "total"]
    assert {"1", "2", "3"} <= {line.partition(",")[0] for line in report}
