"""Finds the browser for browser tests. `python -m tests.chromium` prints its path, or says why there is none."""

import os
import shutil

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
    """The path of a Chromium-like browser: $STARLING_CHROMIUM, else the first on PATH. Raises NoChromium."""
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


if __name__ == "__main__":
    try:
        print(chromium_path())
    except NoChromium as problem:
        raise SystemExit(str(problem)) from problem
