"""A person trains a scheduler on the simulated cloud, has a job decided by it, and measures a reward surface."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.factories import make_project, make_user
from tests.journeys.signed_in import sign_in, watch_for_faults
from webapp.jobs.models import Round
from webapp.schedulers.models import Version

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]


def test_siren_trains_its_agent_for_a_data_set(live_site: str, live_worker: Path, page: "Page") -> None:
    """Its workload is chosen first, then the fields are those of its agent; the version that comes out is shown."""
    faults = watch_for_faults(page)
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/schedulers/")
    page.click("text=Train a scheduler")
    page.select_option("[name='workload']", "siren-digits")
    page.select_option("[name='data']", "breast_cancer")
    page.fill("[name='name']", "Small Siren")
    page.fill("[name='rounds']", "2")
    page.fill("[name='target']", "0.2")
    for name, value in (("actors_max", "2"), ("episodes", "2"), ("rehearsals", "4")):
        page.fill(f"[name='scheduling.siren.{name}']", value)
    page.click("[data-train]")
    page.wait_for_selector("text=Open the scheduler", timeout=240_000)
    # Four recorded with fixed numbers, two real ones, and two that choose between the last and the best agent.
    assert page.locator(".episodes tbody tr").count() >= 6
    version = Version.objects.get()
    page.click("text=Open the scheduler")
    shown = page.inner_text("main")
    assert "Small Siren" in shown
    assert re.search(r"1 to 2 functions .* 3,008 MB", shown)
    assert "of 2 real episodes" in page.inner_text(".version .figures")
    page.click(".page-head >> text=Schedulers")
    page.click("main >> text=Small Siren")
    page.click("text=Use it in a job")
    assert page.input_value("[name='training.scaling.siren.scheduler']") == version.key
    assert faults == []


def test_a_scheduler_is_trained_and_decides_for_a_job(
    live_site: str, live_worker: Path, page: "Page"
) -> None:
    faults = watch_for_faults(page)
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/schedulers/")
    page.click("text=Train a scheduler")
    page.fill("[name='name']", "Tiny")
    page.fill("[name='rounds']", "4")
    for name, value in (("actors_max", "2"), ("episodes", "2"), ("rehearsals", "4")):
        page.fill(f"[name='scheduling.{name}']", value)
    page.click("[data-train]")
    # It shows itself without being loaded again.
    page.wait_for_selector("text=Open the scheduler", timeout=90_000)
    # Two recorded with fixed numbers, two real ones, and two that choose between the last and the best agent.
    assert page.locator(".episodes tbody tr").count() == 6
    assert page.locator(".scores rect").count() == 2
    version = Version.objects.get()
    page.click("text=Open the scheduler")
    assert "of 2 real episodes" in page.inner_text(".version .figures")
    page.click("text=Use it in a job")
    assert page.input_value("[name='training.scaling.learned.scheduler']") == version.key
    assert page.locator("[name='training.scaling.learned.weights']").count() == 0
    page.select_option("[name='platform.kind']", "simulated")
    page.evaluate("document.querySelectorAll('form details').forEach((one) => (one.open = true))")
    page.fill("[name='training.stop.rounds']", "4")
    page.click("[data-launch]")
    page.wait_for_selector("[data-live='pill']:has-text('Succeeded')", timeout=60_000)
    reasons = [one.report["plan_reason"] for one in Round.objects.order_by("round_no")]
    assert len(reasons) == 4
    assert all(one.startswith("the scheduler gives") for one in reasons)
    chart = page.locator("[data-chart='actors']")
    chart.scroll_into_view_if_needed()
    plot = chart.locator("[data-plot]")
    plot.focus()
    plot.press("Home")
    of_round = chart.locator("[data-why]")
    chart.locator("[data-why]:has-text('Round 1 had')").wait_for()
    assert reasons[0] in of_round.inner_text()
    plot.press("ArrowRight")
    chart.locator("[data-why]:has-text('Round 2 had')").wait_for()
    assert reasons[1] in of_round.inner_text()
    # News of the job that come meanwhile change the sentence of its last round alone.
    page.evaluate("document.querySelector(\"[data-live='plan']\").textContent = 'news of the job'")
    assert reasons[1] in of_round.inner_text()
    assert not chart.get_by_text("news of the job").is_visible()
    plot.blur()
    chart.get_by_text("news of the job").wait_for()
    assert not of_round.is_visible()
    chart.locator(".chart-menu summary").click()
    chart.locator("[data-export='table']").click()
    table = chart.locator("[data-table]")
    table.locator("tr:nth-child(4)").wait_for()
    assert reasons[3] in table.inner_text()
    assert faults == []
