"""A stack or a profile as a TOML file that reads back equal."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from cloud.timing.numbers.quantity import Quantity

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def write_toml(path: Path, model: BaseModel, heading: str) -> None:
    """Write `model` below the comment `heading`, atomically: a concurrent reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(toml_of(model, heading), encoding="utf-8")
    fresh.replace(path)


def toml_of(model: BaseModel, heading: str) -> str:
    lines = [f"# {line}" for line in heading.splitlines()]
    return "\n".join([*lines, *_table(_items(model), ())]) + "\n"


def _table(items: dict[str, Any], place: tuple[str, ...]) -> Iterator[str]:
    """Yield a table's own lines first, then the tables within it, as the format requires."""
    inner = {name: value for name, value in items.items() if _is_table(value)}
    for name, value in items.items():
        if name not in inner:
            yield f"{_key(name)} = {_value(value)}"
    for name, value in inner.items():
        here = (*place, name)
        yield ""
        yield f"[{'.'.join(map(_key, here))}]"
        yield from _table(_items(value), here)


def _items(value: BaseModel | dict[str, Any]) -> dict[str, Any]:
    pairs = (
        value
        if isinstance(value, dict)
        else {name: getattr(value, name) for name in type(value).model_fields}
    )
    # What is left out reads back as None.
    return {name: item for name, item in pairs.items() if item is not None}


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, BaseModel) and not isinstance(value, Quantity))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, Quantity):
        numbers = ", ".join(f"{name} = {_value(getattr(value, name))}" for name in ("value", "low", "high"))
        return f"{{ {numbers}, kind = {_text(value.kind)}, source = {_text(value.source)} }}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"{type(value).__name__} has no place in a file of numbers")


def _text(value: str) -> str:
    # JSON strings are valid in TOML, but for one character that TOML requires to be escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
