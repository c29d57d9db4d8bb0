"""A copy of the code that knows one thing more: its file, and its rows in the tables. Its own tests run there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rig.servers import ROOT

_ROOMS = (
    "training",
    "cloud",
    "emulator",
    "client",
    "webapp",
    "research",
    "rig",
    "templates",
    "static",
    "tests",
)


def copy_with(to: Path, files: Mapping[Path, str], rows: Mapping[str, Iterable[tuple[str, str]]]) -> None:
    """Copy the code to the folder `to`, with these files at these places, and texts of other files replaced."""
    # With what is compiled, which saves seconds, but for what other processes are writing.
    for room in _ROOMS:
        shutil.copytree(ROOT / room, to / room, ignore=shutil.ignore_patterns("*.pyc.*"))
    for file in ("pyproject.toml", "manage.py"):
        shutil.copy(ROOT / file, to / file)
    for source, place in files.items():
        shutil.copy(source, to / place)
    for name, changes in rows.items():
        text = (to / name).read_text()
        for old, new in changes:
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new, 1)
        (to / name).write_text(text)


def run_in_copy(copy: Path, *arguments: str) -> None:
    """Run tests of the copy, which must pass."""
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
