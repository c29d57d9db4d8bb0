"""A browser that several tests use, one after the other."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rig.chromium import QUIET

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Playwright


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
