"""Keys of an emulated account in a file: a server that was started with them can go on after the next start."""

from __future__ import annotations

import json
import os
from pathlib import Path


class UnreadableKeys(ValueError):
    """The file of the last start cannot be read. The text names it and says what to do."""


def read_keys(path: Path | None) -> dict[str, str]:
    """Return the keys of the last start; empty if there are none, or no file is used. Raises UnreadableKeys."""
    if path is None or not path.exists():
        return {}
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise _unreadable(path, "it holds no names with texts")
    return values


def write_keys(path: Path | None, values: dict[str, str]) -> None:
    """Write the keys atomically, readable by this user only."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(values, file)
    fresh.replace(path)


def _unreadable(path: Path, why: str) -> UnreadableKeys:
    return UnreadableKeys(f"{path} cannot be read ({why}). Delete it: new keys are made then.")
