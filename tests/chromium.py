"""Finds the browser for browser tests. `python -m tests.chromium` prints its path, or says why there is none."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from playwright._impl._driver import compute_driver_executable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Playwright

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

# No GPU here, and no errands of its own over the network.
QUIET = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class NoChromium(Exception):
    """No browser was found; the message says what to do."""


def chromium_path() -> str:
    """The path of a Chromium-like browser: $STARLING_CHROMIUM, else the first on PATH.

    Raises NoChromium, also where Playwright, which steers it, cannot start.
    """
    _check_playwright()
    named = os.environ.get("STARLING_CHROMIUM", "")
    candidates = (named,) if named else _PROGRAMS
    for program in candidates:
        if path := shutil.which(program):
            return path
    raise NoChromium(
        f"STARLING_CHROMIUM names {named}, which is no program."
        if named
        else "Browser tests need Chromium: install it (Debian: apt-get install chromium), or set STARLING_CHROMIUM."
    )


class KeptBrowser:
    """One Chromium for several tests, and a new one where that does not answer any more.

    Playwright waits without limit until a context is closed.
    """

    def __init__(self, playwright: Playwright, path: str) -> None:
        self._playwright = playwright
        self._path = path
        self._mark = f"--starling-test={secrets.token_hex(8)}"
        self._browser: Browser | None = None

    def get(self) -> Browser:
        if self._browser is None or not self._browser.is_connected():
            chromium = self._playwright.chromium
            self._browser = chromium.launch(executable_path=self._path, args=[*QUIET, self._mark])
        return self._browser

    def pids(self) -> list[int]:
        """Return its processes; those that it started have other arguments, and end with it."""
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if self._mark.encode() in file.read_bytes():
                    found.append(int(file.parent.name))
        return found

    def close(self, context: BrowserContext, *, within_s: float = 60.0) -> None:
        """Close a context. A browser that does not answer in time is killed, and its contexts with it."""
        from playwright.sync_api import Error

        with self._killed_after(within_s):
            try:
                context.close()
            except Error:
                if self.get() is context.browser:
                    raise

    @contextmanager
    def _killed_after(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self._kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _kill(self) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _check_playwright() -> None:
    """Playwright brings a Node.js of its own, which needs a library that a bare Debian lacks."""
    node = compute_driver_executable()[0]
    started = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    if started.returncode:
        raise NoChromium(
            f"Playwright, which steers the browser in tests, does not start: {started.stderr.strip()}"
            " (Debian: apt-get install libatomic1)"
        )


if __name__ == "__main__":
    try:
        print(chromium_path())
    except NoChromium as problem:
        raise SystemExit(str(problem)) from problem
