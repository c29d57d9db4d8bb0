"""From the form to the end of a real job under a real worker: budget reached and raised, and stopped by hand."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rig.servers import wait_until
from tests.factories import make_project, make_user
from tests.journeys.signed_in import sign_in, watch_for_faults
from tests.webapp.bookkeeping import assert_whole
from webapp.jobs.models import Job

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.stack, pytest.mark.django_db(transaction=True)]

# A hundred rounds, and the start of a process before them: on a slow and busy machine these take minutes.
_PATIENCE_MS = 300_000


def _launch(page: "Page", site: str, preset: str, **fields: Any) -> Job:
    """Fill the form as a person would, and launch."""
    user = make_user()
    project = make_project(user)
    sign_in(page, site, user)
    page.goto(f"{site}/p/{project.slug}/jobs/new/?preset={preset}")
    for name, value in fields.items():
        place = page.locator(f"[name='{name.replace('__', '.')}']")
        if not place.is_visible():
            place.evaluate("element => element.closest('details').open = true")
        place.fill(str(value))
    page.click("[data-launch]")
    page.wait_for_url("**/jobs/job_*/")
    return Job.objects.get()


def _now(job: Job) -> Job:
    job.refresh_from_db()
    return job


def test_a_simulated_job_meets_its_budget_is_given_more_and_goes_on(
    live_site: str, live_worker: Path, page: "Page"
) -> None:
    faults = watch_for_faults(page)
    job = _launch(
        page,
        live_site,
        "hopper-simulated",
        training__scaling__fixed__actors=2,
        training__rollout__steps_per_call=64,
        # Slow functions: the two minutes that this budget pays are over after some hundred rounds.
        training__rollout__memory_mb=128,
        budget_usd="0.03",
    )
    page.wait_for_selector(".pill:has-text('Stopped by budget')", timeout=_PATIENCE_MS)
    stopped_at = _now(job).round_no
    account = job.account
    account.refresh_from_db()
    assert 0 < account.spent_picodollars <= account.limit_picodollars
    assert account.reserved_picodollars == 0
    assert_whole(job)
    page.wait_for_selector("text=This job is stopped. It costs nothing now.")
    page.fill("[name=limit_usd]", "2")
    page.click("text=Raise the budget and resume")
    wait_until(lambda: _now(job).round_no > stopped_at, within_s=_PATIENCE_MS / 1000, what="the job goes on")
    assert job.events.get(kind="resumed").payload["from_round"] == stopped_at
    page.wait_for_selector("[data-live=money-sentence]:has-text('cannot cost more than $2.00')")
    page.wait_for_selector("[data-live=budget-box]", state="hidden")
    page.click("[data-live=stop-form] button")
    page.click("text=Stop the job for good")
    page.wait_for_selector(".pill:has-text('Stopped')", timeout=_PATIENCE_MS)
    assert_whole(_now(job))
    assert faults == []


@pytest.mark.slow
def test_a_running_job_is_stopped(live_site: str, live_worker: Path, page: "Page") -> None:
    job = _launch(
        page, live_site, "cartpole", training__scaling__fixed__actors=2, training__stop__env_steps=10**7
    )
    page.wait_for_selector("[data-chart=return]:not(.no-points) canvas", timeout=_PATIENCE_MS)
    page.click("[data-live=stop-form] button")
    page.click("text=Stop the job for good")
    page.wait_for_selector(".pill:has-text('Stopped')", timeout=_PATIENCE_MS)
    wait_until(
        lambda: not _now(job).lease_owner, within_s=_PATIENCE_MS / 1000, what="the lease is given back"
    )
    assert (job.observed, job.reason_code) == ("cancelled", "cancelled")
    assert job.account.reserved_picodollars == 0
    assert job.checkpoints.exists(), "what it learned stays"
    assert_whole(job)
    page.wait_for_selector("[data-live=stop-form]", state="hidden")
    assert page.locator("[name=limit_usd]:visible").count() == 0
