"""Pictures of the pages to look at: `python -m tests.journeys.screenshots FOLDER [WORD ...]`.

Serves the site on a folder of its own with made-up jobs, and takes each page in light and dark, wide and narrow.
With words, only pages whose name has one of them.
"""

# ruff: noqa: E402 - Django is set up before models are imported

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # the browser's driver keeps an event loop in this thread

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from playwright.sync_api import Browser, Error, Page, sync_playwright

from rig.chromium import QUIET, chromium_path
from rig.servers import answers, reserved_port, server_process, wait_until
from tests.journeys.every_page import GATES, THEMES, WIDTHS, Act, pages
from tests.journeys.signed_in import sign_in
from webapp.accounts.models import User
from webapp.web_server import web_server


def take(browser: Browser, site: str, folder: Path, wanted: list[str]) -> None:
    shown: dict[str, tuple[str, Act | None]] = {name: (path, None) for name, path in GATES.items()}
    inside = pages()
    shown |= inside
    first_inside = next(iter(inside))
    page = browser.new_context(color_scheme="light").new_page()
    page.set_default_timeout(60_000)
    page.on("console", lambda message: message.type == "error" and print("console:", message.text))
    page.on("pageerror", lambda error: print("page error:", error))
    for name, (path, act) in shown.items():
        if name == first_inside:
            sign_in(page, site, User.objects.get(email="ada@example.org"))
        if not wanted or any(word in name for word in wanted):
            try:
                _pictures(page, site + path, folder, name, act)
            except Error as problem:  # the other pages are worth looking at all the same
                print(f"{name}: {problem}", flush=True)


def _pictures(page: Page, address: str, folder: Path, name: str, act: Act | None) -> None:
    """A page is loaded once; it follows the theme and the window's size by itself."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    page.goto(address)
    if act is not None:
        act(page)
    for size, (width, height) in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            page.wait_for_timeout(250)
            page.screenshot(path=str(folder / f"{name}-{theme}-{size}.png"), full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            print(f"{name}, {size}: {wide} px too wide")


@contextmanager
def served(log: Path) -> Iterator[tuple[Browser, str]]:
    """A browser, and the address of the site on an empty folder."""
    call_command("migrate", verbosity=0)
    port = reserved_port()
    command = web_server(port=port)
    environment = {
        "STARLING_TEST_FOLDER": str(settings.STARLING_TEST_FOLDER),
        "SECRET_KEY": settings.SECRET_KEY,
        "STARLING_AWS_PRINCIPAL": "arn:aws:iam::999988887777:role/starling",
    }
    with server_process(command, environment=environment, log=log), sync_playwright() as playwright:
        site = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{site}/livez"), within_s=90, what="the site answers")
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=QUIET)
        yield browser, site
        browser.close()


def main(folder: Path, wanted: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with served(folder / "web.log") as (browser, site):
        take(browser, site, folder, wanted)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
