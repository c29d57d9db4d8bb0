"""A newcomer's first hour on the site as it is started for real, while the overview is opened each second.

The oracle is the web process's own log and every answer that the browser and the poll got: none is an error.
"""

import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import whole_site
from tests.journeys.hands import Mouse
from tests.journeys.signed_in import watch_for_faults
from tests.journeys.steps import compare_jobs, launch_pole
from tests.webapp.data_tables import table_of_numbers

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.endurance, pytest.mark.browser, pytest.mark.stack]
OWN = "My first pole"
AT_LEAST_S = 240
"""The overview once failed only from two minutes after the start on: when the demo's rounds had no ended episode."""


class Poll(threading.Thread):
    """Opens the overview each second, as the person whose cookie it has."""

    def __init__(self, address: str, cookies: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(daemon=True)
        self._address, self._cookie = address, ""
        self.change(cookies)
        self._over = threading.Event()
        self.statuses: Counter[int | str] = Counter()

    def change(self, cookies: Sequence[Mapping[str, Any]]) -> None:
        self._cookie = "; ".join(f"{one['name']}={one['value']}" for one in cookies)

    def run(self) -> None:
        while not self._over.wait(1.0):
            try:
                headers = {"Cookie": self._cookie, "Accept": "text/html"}
                request = urllib.request.Request(self._address, headers=headers)
                with urllib.request.urlopen(request, timeout=60) as answer:
                    self.statuses[answer.status] += 1
            except urllib.error.HTTPError as refusal:
                self.statuses[refusal.code] += 1
            except OSError as error:
                self.statuses[repr(error)] += 1

    def end(self) -> None:
        self._over.set()
        self.join(timeout=90)


def test_a_newcomers_first_hour_meets_no_error(tmp_path: Path, page: "Page") -> None:
    faults, hands = watch_for_faults(page), Mouse(page)
    wrong: list[str] = []
    page.on("response", lambda one: wrong.append(f"{one.status} {one.url}") if one.status >= 400 else None)
    page.set_default_timeout(120_000)
    begun = time.monotonic()
    with whole_site.ready(tmp_path / "site", demo=True) as site:
        page.goto(site.sign_in_link())
        page.get_by_role("button").first.click()
        page.wait_for_url("**/p/*/")
        overview = page.url
        poll = Poll(overview, page.context.cookies())
        poll.start()
        hands.go("Jobs")
        ((demo,),) = site.rows("select name from jobs_job")
        hands.press("link", demo)
        page.wait_for_selector("[data-chart=return]:not(.no-points) canvas")
        hands.go("Jobs")
        hands.press("link", "New job")
        launch_pole(hands, OWN)
        compare_jobs(hands, (demo, OWN))
        page.goto(f"{overview}budgets/new/")
        page.get_by_label("Name").first.fill("July")
        page.get_by_label("Limit").first.fill("5")
        page.click("text=Set this budget")
        page.wait_for_selector("text=July")
        hands.go("Data")
        table = {"name": "patients.csv", "mimeType": "text/csv", "buffer": table_of_numbers(2_000).encode()}
        page.get_by_label("File").set_input_files(table)  # type: ignore[arg-type]
        page.click("text=Upload it")
        page.get_by_label("Target").select_option("ill")
        page.click("text=Make the data set")
        page.click("text=Train a model on this data set")
        page.wait_for_selector(".forecast-sentence strong")
        page.click("[data-launch]")
        page.wait_for_url("**/jobs/job_*/")
        hands.go("Members")
        page.locator("form[action$='/invite/'] input[type=email]").fill("bob@example.org")
        page.locator("form[action$='/invite/'] button.btn-primary").click()
        page.get_by_role("heading", name="Set a password").wait_for()
        for field in page.locator("input[type=password]").all():
            field.fill("correct horse battery")
        page.click("button:has-text('Set the password')")
        page.wait_for_selector("text=Send this link to bob@example.org")
        poll.change(page.context.cookies())  # a new password is a new session
        for place in ("Reports", "Clouds", "Schedulers", "Papers", "Compare", "Overview"):
            hands.go(place)
            page.wait_for_load_state("networkidle")
        time.sleep(max(0.0, AT_LEAST_S - (time.monotonic() - begun)))
        poll.end()
        log = site.log.read_text()
    assert set(poll.statuses) == {200}, poll.statuses
    assert poll.statuses[200] > AT_LEAST_S / 4
    assert wrong == []
    assert faults == []
    assert "as logged above" not in log
    assert "Traceback" not in log
