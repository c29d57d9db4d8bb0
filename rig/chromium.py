"""Finds the browser for browser tests. `python -m rig.chromium` prints its path, or says why there is none."""

from __future__ import annotations

import os
import shutil
import subprocess

from playwright._impl._driver import compute_driver_executable

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
