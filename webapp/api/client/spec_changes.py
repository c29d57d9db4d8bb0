"""Changes of a spec by path, such as training.seed=7, before it is sent."""

from __future__ import annotations

from typing import Any

from .starling import StarlingError


def wrong(why: str, fix: str) -> StarlingError:
    """An error before anything was sent."""
    return StarlingError("Nothing was sent.", why, fix, status=400)


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the field at the path. Raises StarlingError if the path leads through a value."""
    *tables, name = path.split(".")
    here = document
    for table in tables:
        inner = here.setdefault(table, {})
        if not isinstance(inner, dict):
            raise wrong(f"{table} in {path} is no table of fields.", "See the spec with `jobs spec`.")
        here = inner
    here[name] = value
