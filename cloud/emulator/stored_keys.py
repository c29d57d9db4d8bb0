"""Keys of an emulated account that outlive it: a server that was started with them goes on after its next start."""

from __future__ import annotations

import json
import os
from pathlib import Path


class KeptUnreadable(ValueError):
    """What the last start left cannot be read; the text names the file and says what to do."""


def kept(path: Path | None) -> dict[str, str]:
    """What the last start left there; empty at the first one, or where nothing is kept."""
    if path is None or not path.exists():
        return {}
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise _unreadable(path, "it holds no names with texts")
    return values


def keep(path: Path | None, values: dict[str, str]) -> None:
    """Leave it for the next start, readable by this user alone. A start that breaks off leaves the file as it was."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(values, file)
    beside.replace(path)


def _unreadable(path: Path, why: str) -> KeptUnreadable:
    return KeptUnreadable(f"{path} cannot be read ({why}). Delete it: new keys are made then.")
