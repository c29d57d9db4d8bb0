"""The pictures of docs/tour.md: `python -m tests.journeys.tour [FOLDER]`.

Taken of made-up jobs, so that they are the same each time. That the way they show can be gone, with a mouse and by
keyboard alone, is what test_browser_team.py proves.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from rig.servers import ROOT
from tests.journeys.screenshots import served  # first: it sets Django up
from tests.journeys.signed_in import sign_in

PICTURES = {
    "first-steps": "overview-first",
    "overview": "overview",
    "form": "form",
    "job": "job-running",
    "palette": "palette-search",
    "jobs": "runs-chosen",
    "compare": "compare",
    "reports": "reports",
    "members": "members",
}
"""File -> the page in tests/journeys/every_page.py."""
OF_A_NEW_PROJECT = {"form"}
"""Taken in a project without budgets that are used up."""
SIZE = {"width": 1280, "height": 800}


def picture(page: Page, file: Path) -> None:
    page.wait_for_timeout(600)
    with Image.open(io.BytesIO(page.screenshot())) as taken:
        taken.convert("RGB").save(file, quality=80, method=6)


def main(folder: Path) -> None:
    from tests.journeys.every_page import pages
    from webapp.accounts.models import User

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, served(Path(name) / "web.log") as (browser, site):
        shown = pages()
        page = browser.new_context(viewport=SIZE, color_scheme="light", reduced_motion="reduce").new_page()
        page.set_default_timeout(120_000)
        sign_in(page, site, User.objects.get(email="ada@example.org"))
        for file, of in PICTURES.items():
            path, act = shown[of]
            if file in OF_A_NEW_PROJECT:
                path = path.replace(shown["overview"][0], shown["overview-first"][0])
            page.goto(site + path)
            if act is not None:
                act(page)
            picture(page, folder / f"{file}.webp")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "tour")
