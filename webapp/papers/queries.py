"""Results as they are stored with the project: read again when a file has changed, and never more often."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
_read: dict[Path, tuple[int, dict[str, Any]]] = {}


def result_names() -> list[str]:
    return sorted(path.stem for path in RESULTS.glob("*.json"))


def find_result(name: str) -> dict[str, Any] | None:
    """The stored results of an experiment or calculation; None without results or without a title in them."""
    if name not in result_names():
        return None
    path = RESULTS / f"{name}.json"
    try:
        written_ns = path.stat().st_mtime_ns
        known = _read.get(path)
        if known is None or known[0] != written_ns:
            known = _read[path] = (written_ns, json.loads(path.read_text("utf-8")))
    except (OSError, ValueError):
        return None
    return known[1] if "title" in known[1] else None
