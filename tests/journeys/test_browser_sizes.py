"""What the first screen holds: the form's height, a job's figures and chart, and the rows of the list."""

from typing import TYPE_CHECKING

import pytest

from tests.factories import make_project, make_user
from tests.journeys import comparing_scenes, scenes
from tests.journeys.signed_in import sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]

FOOT = "(selector) => document.querySelector(selector).getBoundingClientRect().bottom"
HEIGHT = "document.querySelector('main').getBoundingClientRect().bottom"
ROWS = """
[...document.querySelectorAll("tr[data-job]")].map((row) => {
  const { bottom, height } = row.getBoundingClientRect();
  return [bottom, height];
})
"""
DASHED = """
[...document.querySelectorAll("main *")].filter((element) => {
  const { top, height } = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  const dashed = style.borderTopStyle === "dashed" && style.borderTopWidth !== "0px";
  return height > 0 && top < innerHeight && (dashed || style.outlineStyle === "dashed");
}).length
"""


def test_a_jobs_first_screen_has_its_figures_and_its_chart(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    job = scenes.running_job(project, user)
    sign_in(page, live_site, user)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{live_site}/p/{project.slug}/jobs/{job.pk}/")
    page.wait_for_selector("[data-chart=return] canvas")
    assert page.evaluate(FOOT, "[data-chart=return]") <= 900
    assert page.evaluate(DASHED) <= 3
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate(FOOT, ".figures") <= 740
    tops = page.evaluate("[...document.querySelectorAll('.figures > div')].length")
    assert tops == 5


def test_a_phone_shows_the_tab_that_is_open_and_does_not_scroll_to_it(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    job = scenes.running_job(project, user)
    sign_in(page, live_site, user)
    page.set_viewport_size({"width": 360, "height": 600})
    page.goto(f"{live_site}/p/{project.slug}/jobs/{job.pk}/spec/")
    page.wait_for_function("document.querySelector('.tabs').scrollLeft > 0")
    tab = page.locator(".tabs [aria-current]").bounding_box()
    assert tab is not None
    assert tab["x"] + tab["width"] <= 360
    assert page.evaluate("scrollY") == 0


def test_all_charts_of_a_job_go_as_far(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    job = scenes.running_job(project, user)
    sign_in(page, live_site, user)
    page.set_viewport_size({"width": 1280, "height": 2600})
    page.goto(f"{live_site}/p/{project.slug}/jobs/{job.pk}/")
    page.wait_for_selector("html[data-drawn-seq]", state="attached")
    address = "document.querySelector(\"script[src*='jobs/charts']\").src"
    drawn = "charts.filter(({ figure }) => !figure.hidden).map(({ plot }) => plot.scales.x.max)"
    ends = page.evaluate(f"import({address}).then(({{ charts }}) => {drawn})")
    assert len(ends) > 8
    assert len(set(ends)) == 1


def test_a_queued_job_has_one_panel(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    job = scenes.submitted(project, user, "cartpole", "Cart pole")
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/jobs/{job.pk}/")
    page.wait_for_selector("text=Charts appear with the first round.")
    assert page.locator("#charts .card:visible").count() == 1
    assert page.locator("#charts canvas:visible").count() == 0


def test_a_presets_form_is_short(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{live_site}/p/{project.slug}/jobs/new/?preset=hopper-simulated")
    page.wait_for_selector("[data-forecast-more]")
    assert page.evaluate(HEIGHT) <= 1400
    page.route("**/new/forecast*", lambda route: route.abort())
    page.fill("[name='training.stop.env_steps']", "250,000")
    page.wait_for_selector("[data-forecast-words]:has-text('The site was not reached.')")
    page.unroute("**/new/forecast*")
    page.click("[data-forecast-words] >> text=Try again")
    page.wait_for_selector(".forecast-sentence:has-text('for 250,000 steps')")


def test_the_list_shows_many_rows_and_five_seeds_as_one(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    comparing_scenes.seeds_of(project, user, "Hopper with PPO", peak=2300, pace=35, usd=0.6, count=5)
    for at in range(18):
        scenes.submitted(project, user, "cartpole", f"Cart pole {at}")
    sign_in(page, live_site, user)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{live_site}/p/{project.slug}/jobs/")
    rows = page.evaluate(ROWS)
    assert len(rows) == 19
    assert max(height for _, height in rows) <= 44
    assert sum(bottom <= 900 for bottom, _ in rows) >= 16
    assert not page.is_visible(".chosen-bar")
    page.click("a[data-unfold]")
    page.wait_for_selector(".member-row >> nth=4")
    assert len(page.evaluate(ROWS)) == 24
    page.check("[aria-label^='Choose Hopper with PPO: 5 seeds']")
    assert page.inner_text("[data-chosen-words]") == "5 chosen"
    page.click("a[data-unfold]")
    page.wait_for_selector(".member-row", state="detached")
