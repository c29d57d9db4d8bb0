"""What stands around every page, by keyboard alone: the palette, the keys, the first steps; and times where one is."""

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import make_job, make_project, make_running_job, make_spec, make_user, round_finished
from tests.journeys import scenes
from tests.journeys.signed_in import sign_in, watch_for_faults
from tests.ledger_contract import reservation, settlement
from webapp.job_states import Observed
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder
from webapp.money.ledger import DatabaseLedger

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


def test_everything_is_reached_by_keys(live_site: str, page: "Page") -> None:
    faults = watch_for_faults(page)
    user = make_user()
    job = make_job(make_project(user), user, make_spec(name="Needle in a haystack"))
    base = f"{live_site}/p/{job.project.slug}"
    sign_in(page, live_site, user)
    page.goto(f"{base}/")
    page.keyboard.press("Control+k")
    field = page.locator("#palette input")
    page.wait_for_selector("#palette [role=option]")
    page.keyboard.type("needle hay")
    page.wait_for_selector("#palette [role=status]:has-text('1 found')")
    chosen = page.locator("[role=option][aria-selected=true]")
    assert "Needle in a haystack" in chosen.inner_text()
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base}/jobs/{job.pk}/")

    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_url(f"{base}/budgets/")
    page.keyboard.press("Control+k")
    page.wait_for_selector("#palette [role=option]")
    first = chosen.inner_text()
    page.keyboard.press("ArrowUp")
    assert chosen.count() == 1
    assert chosen.inner_text() != first, "up from the first comes to the last"
    page.keyboard.press("ArrowDown")
    assert chosen.inner_text() == first
    page.keyboard.press("Escape")
    assert not page.is_visible("#palette")

    page.keyboard.press("?")
    assert page.is_visible("#keys >> text=Go to")
    page.locator("[data-single-keys]").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.keyboard.press("?")
    assert not page.is_visible("#keys"), "a user who switched them off keeps them off"
    assert page.url == f"{base}/budgets/"
    assert faults == []


def test_the_rail_folds_by_button_and_key_and_is_so_at_the_next_page_before_anything_is_painted(
    live_site: str, page: "Page"
) -> None:
    user = make_user()
    base = f"{live_site}/p/{make_project(user).slug}"
    sign_in(page, live_site, user)
    # What a page looks like before its modules have run: they never come.
    page.route("**/js/frame.js*", lambda route: route.abort() if held else route.continue_())
    held = False
    page.goto(f"{base}/jobs/")
    rail = page.locator(".rail")
    assert rail.bounding_box()["width"] == 216  # type: ignore[index]
    page.get_by_role("button", name="Collapse", exact=True).click()
    assert rail.bounding_box()["width"] == 64  # type: ignore[index]
    assert page.get_by_role("button", name="Expand", exact=True).is_visible()
    link = rail.get_by_role("link", name="Budgets", exact=True)
    name = link.locator(".word")
    assert name.evaluate("(word) => getComputedStyle(word).clipPath") != "none", (
        "a name is heard and not seen"
    )
    link.hover()
    assert name.evaluate("(word) => getComputedStyle(word).clipPath") == "none"
    held = True
    page.goto(f"{base}/budgets/")
    assert rail.bounding_box()["width"] == 64  # type: ignore[index]
    held = False
    page.reload()
    page.wait_for_function("document.querySelector('[data-messages]')")
    page.keyboard.press("f")
    assert rail.bounding_box()["width"] == 216  # type: ignore[index]
    page.keyboard.press("f")
    page.set_viewport_size({"width": 360, "height": 740})
    assert link.locator("xpath=ancestor::nav").bounding_box()["width"] == 360  # type: ignore[index]
    assert name.evaluate("(word) => getComputedStyle(word).clipPath") == "none", "the bar has its words"
    page.click(".bar-more summary")
    page.click(".bar-more a:has-text('Members')")  # what is cut off cannot be clicked
    page.wait_for_url(f"{base}/members/")


def test_the_overview_follows_what_happens(live_site: str, page: "Page") -> None:
    user = make_user()
    job = make_job(make_project(user), user)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{job.project.slug}/")
    row = page.locator(".running-grid tbody tr")
    assert "Queued" in row.inner_text()
    page.wait_for_selector("[data-rate]:has-text('1 queued')")
    scenes.history(job, 12)
    scenes.put(job, Observed.RUNNING, "Round 13.", round_no=12, training_score=321.0)
    page.wait_for_selector("[data-rate]:has-text('1 job'):not(:has-text('queued'))")
    page.wait_for_selector(".running-grid tbody tr:has(.sparkline):has-text('321.0')")
    scenes.put(job, Observed.FAILED, "The update ran out of memory.", round_no=12)
    page.wait_for_selector("a:has-text('Read log')")
    page.wait_for_selector("main :text('No job of this project is running')")
    page.click("text=Hide >> visible=true")
    page.click("text=Show the first steps again")
    page.wait_for_selector("text=/[01] of 5 taken/")


def test_times_are_reported_where_the_reader_is_and_in_utc(live_site: str, browser: "Browser") -> None:
    user = make_user()
    job = _spending_job(user)
    context = browser.new_context(timezone_id="Asia/Kolkata")
    page = context.new_page()
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{job.project.slug}/jobs/{job.pk}/")
    times = page.locator("[data-live=since] time")
    page.wait_for_selector("[data-live=since] time[title*='GMT+5:30']")
    title = times.get_attribute("title")
    assert title is not None
    assert title.endswith("UTC")
    assert f"{job.since:%H:%M}" in title.partition("·")[2]
    page.wait_for_selector("[data-live=burn]:has-text(', ± 20 s)')")
    burn = page.inner_text("[data-live=burn]")
    # In the quarter of an hour before midnight the limit is met on another day, which is said.
    here, utc = r"(?:\d+ \w+ )?(\d\d):(\d\d)", r"(\d\d):(\d\d) UTC(?: on \d+ \w+)?"
    found = re.search(rf"meets its limit at {here} \({utc}, ± 20 s\)", burn)
    assert found, burn
    hours, minutes, utc_hours, utc_minutes = map(int, found.groups())
    assert (60 * hours + minutes - 60 * utc_hours - utc_minutes) % (24 * 60) == 5 * 60 + 30
    context.close()


def _spending_job(user: Any) -> Job:
    """It runs on this machine at an even rate, and money alone ends it."""
    stop = {"env_steps": None, "rounds": 10**6}
    job, epoch = make_running_job(user=user, spec=make_spec(training__stop=stop))
    ledger = DatabaseLedger(job.account.pk, epoch)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for number in range(1, 11):
        ledger.reserve([reservation(f"r{number}", 10**9)])
        ledger.settle([settlement(f"r{number}", 10**9)])
        recorder.record(round_finished(number, spent=number * 10**9))
    return job
