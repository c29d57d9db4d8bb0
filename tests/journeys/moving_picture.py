"""The moving picture of the README: `python -m tests.journeys.moving_picture [FILE]`.

Starts Starling as a person does, opens the demo job that comes with it, and takes its page while the job learns: some
minutes become a few seconds.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from rig.chromium import QUIET, chromium_path
from rig.servers import ROOT
from tests import whole_site

FILE = ROOT / "docs" / "tour" / "learning.webp"
SIZE = {"width": 1200, "height": 880}
_SHOWN = (900, 660)
_ROUNDS = range(1, 252, 5)
"""Of which a frame shows what is there. The demo reaches its reference in round 240."""
_FRAME_MS, _LAST_MS = 130, 3000
_UNDER_WAY = (
    r"least => Number((document.body.innerText.match(/Round ([\d,]+) is under way/) || [])[1]) >= least"
)
_LARGEST_BYTES = 1_000_000


def frames(page: Page) -> Iterator[Image.Image]:
    for round_no in _ROUNDS:
        page.wait_for_function(_UNDER_WAY, arg=round_no)
        with Image.open(io.BytesIO(page.screenshot())) as taken:
            yield taken.convert("RGB").resize(_SHOWN, Image.Resampling.LANCZOS)


def open_demo(page: Page, site: whole_site.Stack) -> None:
    page.goto(site.sign_in_link())
    page.get_by_role("button").first.click()
    page.click(".demo .card-head a")
    page.wait_for_url("**/jobs/job_*/")
    page.keyboard.press("f")  # the rail folds: more room for charts
    page.wait_for_selector("[data-chart=return]:not(.no-points) canvas")


def main(file: Path) -> None:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=QUIET)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.set_default_timeout(120_000)
        with whole_site.ready(Path(name) / "site", demo=True) as site:
            open_demo(page, site)
            first, *others = frames(page)
        browser.close()
    times = [*[_FRAME_MS] * len(others), _LAST_MS]
    first.save(file, save_all=True, append_images=others, duration=times, loop=0, quality=60, method=6)
    if file.stat().st_size > _LARGEST_BYTES:
        sys.exit(f"{file} is {file.stat().st_size:,} bytes, more than {_LARGEST_BYTES:,}: take fewer frames.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
