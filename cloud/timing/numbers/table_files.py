"""Reads TOML files that are lists of tables, such as prices and machines, with the line where each table begins."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

Built = TypeVar("Built")


class TableFileError(ValueError):
    """A file has a fault; the message begins with `file:line:`."""


@dataclass(frozen=True)
class TableEntry:
    """One table `[[table]]` of a file, not yet checked."""

    path: Path
    table: str
    line: int
    key_lines: dict[str, int]
    values: dict[str, Any]
    error: type[TableFileError]

    @property
    def where(self) -> str:
        return f"{self.path.name}:{self.line}"

    def build(self, model: type[Built]) -> Built:
        """Return the entry as `model`. Raises `error`, which names the line of the wrong field."""
        try:
            return TypeAdapter(model).validate_python(self.values)
        except ValidationError as error:
            first = error.errors()[0]
            place = [str(part) for part in first["loc"]]
            line = self.key_lines.get(place[0], self.line) if place else self.line
            message = first["msg"].removeprefix("Value error, ")
            field = f"{place[0]}: " if place else ""
            raise self.error(f"{self.path.name}:{line}: {field}{message}") from None


def read_tables(path: Path, tables: set[str], error: type[TableFileError]) -> Iterator[TableEntry]:
    """Yield all tables of the named kinds in the order of the file. Anything else in it raises `error`."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as problem:
        match = re.search(r"at line (\d+)", str(problem))
        # A fault at the very end of a file has no line of its own.
        line = int(match[1]) if match else len(text.splitlines()) or 1
        raise error(f"{path.name}:{line}: {problem}") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"{path.name}:1: it cannot be read: {problem}") from None
    lines = _table_lines(text)
    for name, entries in document.items():
        if name not in tables or not isinstance(entries, list):
            known = " and ".join(f"[[{table}]]" for table in sorted(tables))
            raise error(f"{path.name}:{_line_of(text, name)}: {name} is not known here; write {known}")
    for table in sorted(tables):
        values = document.get(table, [])
        places = [(line, keys) for name, line, keys in lines if name == table]
        if len(places) != len(values):
            # Tables written as one inline list have no line of their own, so the file's first line is used.
            places = [(1, {})] * len(values)
        for (line, key_lines), entry in zip(places, values, strict=True):
            yield TableEntry(path, table, line, key_lines, entry, error)


def _table_lines(text: str) -> list[tuple[str, int, dict[str, int]]]:
    """Return each `[[table]]` with its line and those of its keys; the parser does not keep lines."""
    tables: list[tuple[str, int, dict[str, int]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[\s*([\w-]+)\s*\]\]", line):
            tables.append((header[1], number, {}))
        elif tables and (key := re.match(r"\s*([\w-]+)\s*=", line)):
            tables[-1][2].setdefault(key[1], number)
    return tables


def _line_of(text: str, name: str) -> int:
    begins = re.compile(rf"\s*(\[\s*)*{re.escape(name)}\b")
    return next((number for number, line in enumerate(text.splitlines(), start=1) if begins.match(line)), 1)
