"""A person's first day, with a mouse and by keyboard alone: sign up, watch the demo, launch by the form, compare, stop,
look at the report, delete the jobs."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.journeys.hands import Hands, Keyboard, Mouse
from tests.journeys.signed_in import watch_for_faults
from tests.journeys.steps import choose_jobs, compare_jobs, create_account, launch_pole, stop_job
from tests.webapp.bookkeeping import assert_whole
from webapp.jobs.models import Job

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]
DEMO, OWN = "Hopper, simulated cloud", "My first pole"
PASSWORD = "correct horse battery"


@pytest.mark.parametrize("hands_of", [Mouse, Keyboard])
def test_from_signing_up_to_deleting(
    live_site: str, live_worker: Path, page: "Page", hands_of: type[Hands]
) -> None:
    faults, hands = watch_for_faults(page), hands_of(page)  # type: ignore[call-arg]
    page.set_default_timeout(90_000)
    page.goto(live_site)
    _signs_up(hands)
    hands.press("link", "Launch the demo")
    hands.press("button", "Launch – at most $1.00")
    page.wait_for_url("**/jobs/job_*/")
    page.wait_for_selector("[data-chart=return]:not(.no-points) canvas")
    _launches_a_pole(hands)
    _compares(hands)
    _stops_the_demo(hands)
    _reads_the_report(hands)
    for job in Job.objects.all():
        assert_whole(job)
    _deletes(hands)
    assert faults == []


def _signs_up(hands: Hands) -> None:
    create_account(hands, "ada@example.org", PASSWORD)
    hands.page.wait_for_selector("text=0 of 5 taken")


def _launches_a_pole(hands: Hands) -> None:
    """On this machine, by the form: from a preset, with two changes."""
    hands.go("Jobs")
    hands.press("link", "New job")
    launch_pole(hands, OWN)


def _compares(hands: Hands) -> None:
    differences = compare_jobs(hands, (DEMO, OWN))
    assert "Hopper-v5" in differences
    assert "CartPole-v1" in differences


def _stops_the_demo(hands: Hands) -> None:
    hands.go("Jobs")
    hands.press("link", DEMO)
    stop_job(hands)


def _deletes(hands: Hands) -> None:
    """What was made goes by way of the archive; what was spent stays in the report."""
    hands.go("Jobs")
    choose_jobs(hands, (DEMO, OWN))
    hands.press("button", "Archive")
    hands.page.wait_for_selector("text=2 jobs archived")
    assert hands.page.locator("tr[data-job]").count() == 0
    hands.press("link", "See the archive")
    choose_jobs(hands, (DEMO, OWN))
    hands.press("button", "Delete")
    hands.press("button", "Delete them for good")
    hands.page.wait_for_selector("text=Deleted for good: 2 jobs.")
    assert hands.page.locator("tr[data-job]").count() == 0
    _reads_the_report(hands)


def _reads_the_report(hands: Hands) -> None:
    hands.go("Reports")
    hands.page.get_by_role("heading", name="Reports").wait_for()
    assert "simulated" in hands.page.inner_text("main"), "what the demo cost is no real money"
