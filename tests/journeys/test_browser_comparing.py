"""From two runs to their comparison: launched by the form, chosen in the list, compared, with more seeds on offer."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.factories import make_project, make_spec, make_user
from tests.journeys import comparing_scenes
from tests.journeys.signed_in import sign_in, watch_for_faults
from webapp.jobs.services import submit_job

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


def test_two_quick_jobs_are_chosen_and_compared(live_site: str, live_worker: Path, page: "Page") -> None:
    faults = watch_for_faults(page)
    user = make_user()
    project = make_project(user)
    for name, rate in (("Slow learner", 0.0001), ("Quick learner", 0.001)):
        spec = make_spec(
            name=name,
            training__algorithm__learning_rate=rate,
            training__scaling={"kind": "fixed", "actors": 1},
            training__stop={"rounds": 4},
        )
        submit_job(project=project, user=user, spec=spec)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/jobs/?q=learner")
    for name in ("Slow learner", "Quick learner"):
        page.wait_for_selector(f"tr[data-job]:has-text('{name}') .pill:has-text('Succeeded')", timeout=90_000)
        page.check(f"[aria-label='Choose {name}']")
    assert page.inner_text("[data-chosen-words]") == "2 chosen"
    page.click("button[value=compare]")
    page.wait_for_selector(".compare-chart.has-data canvas")
    words = page.inner_text("main")
    assert "3 more seeds each" in words
    table = page.inner_text("[aria-labelledby=figures-title]")
    assert "Slow learner" in table
    assert "best so far" in table
    differences = page.inner_text("[aria-labelledby=differences-title]")
    assert "Learning rate" in differences
    assert "0.0001" in differences
    assert "training.scaling" not in differences, "only what differs is shown"
    page.click("[data-axis=usd]")
    assert "over=usd" in page.url
    assert page.get_attribute("[data-axis=usd]", "aria-pressed") == "true"
    page.click("[data-axis=steps]")
    page.click("[data-curve-table] summary")
    page.wait_for_selector("[data-curve-table] th:has-text('Steps')")
    assert page.locator("[data-curve-table] th").all_inner_texts()[0] == "Steps"
    assert page.locator("[data-curve-table] tbody tr").count() == 10
    ends = page.locator("[data-curve-table] tbody tr").last.locator("td").all_inner_texts()
    assert "–" not in ends, "both runs go as far"
    page.click("[aria-label='Remove Slow learner']")
    expect(page.locator(".chip")).to_have_count(1, timeout=30_000)
    assert faults == []


def test_a_comparison_is_zoomed_for_all_sides_and_one_of_them_is_highlighted(
    live_site: str, page: "Page"
) -> None:
    faults = watch_for_faults(page)
    user = make_user()
    project = make_project(user)
    groups = [
        comparing_scenes.seeds_of(project, user, name, peak=peak, pace=35, usd=0.6, count=2)
        for name, peak in (("Hopper with PPO", 2300), ("Hopper with A2C", 1500))
    ]
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/compare/?" + "&".join(f"of=group_{one.pk}" for one in groups))
    page.wait_for_selector(".compare-chart.has-data canvas")
    place = page.locator(".compare-chart .u-over").bounding_box()
    assert place is not None
    y = place["y"] + place["height"] / 2

    def steps_at(share: float) -> int:
        page.mouse.move(place["x"] + place["width"] * share, y)
        page.wait_for_selector("[data-cursor-words]:has-text('steps')")
        return int("".join(filter(str.isdigit, page.inner_text("[data-cursor-words]"))))

    whole = steps_at(0.9) - steps_at(0.1)
    page.mouse.move(place["x"] + place["width"] * 0.4, y)
    page.mouse.down()
    page.mouse.move(place["x"] + place["width"] * 0.6, y, steps=4)
    page.mouse.up()
    page.wait_for_selector("[data-unzoom]:visible")
    assert 0 < steps_at(0.9) - steps_at(0.1) < whole / 4
    page.click("[data-unzoom]")
    page.wait_for_selector("[data-unzoom]", state="hidden")
    drawn = "document.querySelector('.compare-chart canvas').toDataURL()"
    page.mouse.move(0, 0)
    page.wait_for_selector("[data-cursor-words]:has-text('at the end')")
    both = page.evaluate(drawn)
    page.hover("[data-side='0']")
    page.wait_for_function(f"before => {drawn} !== before", arg=both)
    page.mouse.move(0, 0)
    page.wait_for_function(f"before => {drawn} === before", arg=both)
    assert faults == []


def test_the_list_is_asked_its_columns_chosen_and_its_jobs_archived(live_site: str, page: "Page") -> None:
    faults = watch_for_faults(page)
    user = make_user()
    project = make_project(user)
    comparing_scenes.seeds_of(project, user, "Hopper, 32 actors", peak=2300, pace=35, usd=0.6, count=3)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/jobs/")
    page.keyboard.press("/")
    page.keyboard.type("tag:baseline cost>0.1")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=tag*")
    expect(page.locator("tr[data-job]")).to_have_count(1, timeout=30_000)
    page.click("a[data-unfold]")
    expect(page.locator(".member-row")).to_have_count(3, timeout=30_000)
    page.click("summary:has-text('Columns')")
    page.check(".column-boxes label:has-text('Tags') input")
    page.click("text=Show these")
    page.wait_for_selector("th.column-tags")
    assert page.input_value("[data-question]") == "tag:baseline cost>0.1", "the question stays"
    page.click("summary:has-text('Views')")
    page.fill("#view-name", "Baselines")
    page.click(".view-save button")
    page.click("summary:has-text('Views')")
    assert page.get_attribute("a:has-text('Baselines')", "aria-current") == "true"
    page.keyboard.press("Escape")
    page.check("[data-choose-all]")
    page.click("button[value=archive]")
    page.wait_for_selector("text=3 jobs archived")
    assert page.locator("tr[data-job]").count() == 0
    page.click("text=Undo")
    expect(page.locator("tr[data-job].seeds-row")).to_have_count(1, timeout=30_000)
    assert faults == []
