"""The pictures of docs/tour.md: `python -m tests.journeys.tour [FOLDER]`, from the sign-in link to a comparison.

Starts Starling as `make run` does, in a folder of its own, and does what the page describes with real jobs, in minutes.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.chromium import QUIET, chromium_path
from tests.journeys.hands import Mouse
from tests.servers import ROOT, manage, server_process, wait_until
from webapp.embedded_valkey import free_port

PICTURES = ROOT / "docs" / "tour"
SIZE = {"width": 1280, "height": 800}
PATIENCE_MS = 600_000
SEEDS, ROUNDS = "3", "40"


class Tour:
    """A walk through the pages that leaves pictures behind."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.hands, self.folder = page, Mouse(page), folder

    def picture(self, name: str) -> None:
        self.page.wait_for_timeout(600)
        with Image.open(io.BytesIO(self.page.screenshot())) as taken:
            taken.convert("RGB").save(self.folder / f"{name}.webp", quality=82, method=6)

    def arrives(self, link: str) -> None:
        self.page.goto(link)
        self.page.wait_for_selector(".running-grid .sparkline")
        self.picture("overview")

    def watches_the_demo(self) -> None:
        self.hands.press("link", "Demo: Hopper on the simulated cloud")
        self.page.wait_for_selector("html[data-drawn-seq]", state="attached")
        moved = re.compile(r"round (4\d|[5-9]\d|\d{3,})")
        self.page.locator("[data-live=round]", has_text=moved).wait_for()
        self.picture("job")

    def launches(self, algorithm: str, picture: str = "") -> None:
        self.hands.go("Jobs")
        self.hands.press("link", "New job")
        self.hands.press("link", "Cart pole Balance a pole")
        self.page.wait_for_url("**preset=cartpole")
        self.hands.write("Name", f"Cart pole with {algorithm}")
        self.page.get_by_label("Algorithm", exact=True).select_option(label=algorithm)
        self.hands.write("Seeds", SEEDS)
        self.hands.write("Rounds", ROUNDS)
        if picture:
            self.page.wait_for_selector("[data-forecast-more]")
            self.page.evaluate("scrollTo(0, 0)")
            self.picture(picture)
        self.page.click("[data-launch]")
        self.page.wait_for_url(re.compile(r"/(jobs/job_|groups/)"))

    def finds_both(self) -> None:
        self.page.goto(self.page.url.partition("/p/")[0] + "/")
        self.page.wait_for_url("**/p/**")
        self.page.keyboard.press("Control+k")
        self.page.wait_for_selector("#palette [role=option]")
        self.page.keyboard.type("cart pole")
        self.page.wait_for_selector("#palette >> text=Groups and sweeps")
        self.picture("palette")
        self.page.keyboard.press("Escape")

    def compares(self) -> None:
        self.hands.go("Jobs")
        self.page.locator("tr[data-job] .tone-ok").nth(2 * int(SEEDS) - 1).wait_for()
        for box in self.page.locator("tr[data-job]:has-text('Cart pole with') [name=job]").all():
            box.check()
        self.picture("jobs")
        self.page.click("button[value=compare]")
        self.page.wait_for_selector(".compare-chart.has-data canvas")
        groups = [link.get_attribute("href") for link in self.page.locator("a[href*='/groups/']").all()]
        if len(set(groups)) > 1:
            of = "&".join(
                f"of=group_{href.rstrip('/').rpartition('/')[2]}" for href in sorted({*groups}) if href
            )
            self.page.goto(f"{self.page.url.partition('?')[0]}?{of}")
            self.page.wait_for_selector(".compare-chart.has-data canvas")
        self.picture("compare")

    def looks_at_the_money(self) -> None:
        self.hands.go("Reports")
        self.page.wait_for_selector("h1:has-text('Reports')")
        self.picture("reports")


def main(pictures: Path) -> None:
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="starling-tour-") as name:
        folder, log = Path(name) / "data", Path(name) / "log"
        port = free_port()
        with (
            server_process(manage("up", "--port", str(port), "--data", str(folder)), log=log),
            sync_playwright() as playwright,
        ):
            wait_until(lambda: _sign_in_link(log), within_s=300, what="the sign-in link")
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=QUIET)
            page = browser.new_context(
                viewport=SIZE, color_scheme="light", reduced_motion="reduce"
            ).new_page()
            page.set_default_timeout(PATIENCE_MS)
            tour = Tour(page, pictures)
            tour.arrives(_sign_in_link(log))
            tour.watches_the_demo()
            tour.launches("PPO", picture="form")
            tour.launches("A2C")
            tour.finds_both()
            tour.compares()
            tour.looks_at_the_money()
            browser.close()


def _sign_in_link(log: Path) -> str:
    found = re.search(r"http://\S+/sign-in/\S+", log.read_text()) if log.exists() else None
    return found.group() if found else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
