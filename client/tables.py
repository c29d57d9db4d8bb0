"""Responses in a terminal: tables with right-aligned numbers, and one object as lines of name and value.

A column is written heading=path:kind, such as spent=spent_usd:usd, with spaces between columns: the path leads through
the answer with dots, without one the heading is the path, and underlines of a heading are shown as spaces. A heading
with @ has the path to the word that all rows have there, or that `words` have: a kind of training names its
score and its progress. Kinds are those of `_KINDS`; text without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

_NOTHING = "–"
_OBEYED = dict.fromkeys((*range(32), *range(127, 160)), " ")
"""Control characters."""


class TablePart(NamedTuple):
    """A part of a response to show: the whole, or the value `at` a path. Without columns it is lines of text;
    `tall`: one thing, a line for each column."""

    columns: str = ""
    at: str = ""
    tall: bool = False


class _Column(NamedTuple):
    heading: str
    path: str
    kind: str

    @classmethod
    def read(cls, text: str, rows: Sequence[Any]) -> _Column:
        """Read a column. `rows`: where the word of a heading with @ is looked for."""
        named, _, kind = text.partition(":")
        heading, _, path = named.partition("=")
        before, named_by_rows, word_path = heading.partition("@")
        if named_by_rows:
            words = {word for row in rows if (word := found(row, word_path))}
            # Several kinds of training have no word in common: "score", "progress".
            heading = before + (
                words.pop() if len(words) == 1 else word_path.replace("_", ".").partition(".")[0]
            )
        return cls(heading.replace("_", " "), path or heading, kind)

    def cell(self, row: Any) -> str:
        value = found(row, self.path)
        if value in (None, "", []):
            return _NOTHING
        return plain(_KINDS[self.kind](value))


def plain(text: str) -> str:
    """The text on one line, without what a terminal obeys: others named what is shown."""
    return text.translate(_OBEYED)


def found(answer: Any, path: str) -> Any:
    """The value at the path. None if there is none."""
    for name in path.split(".") if path else ():
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer


def shown(answer: Any, parts: Iterable[TablePart], words: Any = None) -> str:
    """All parts, one below the other, without empty ones. `words`: the job that the answer is of, or the answer."""
    blocks = [_block(found(answer, part.at), part, words or answer) for part in parts]
    return "\n\n".join(block for block in blocks if block)


def takes_words(parts: Iterable[TablePart]) -> bool:
    """Whether a heading is a word of the answer."""
    return any("@" in part.columns for part in parts)


def _block(there: Any, part: TablePart, words: Any) -> str:
    if not there:
        return ""
    rows = there if isinstance(there, list) else [there]
    if not part.columns:
        return "\n".join(plain(str(row)) for row in rows)
    columns = [_Column.read(text, [*rows, words]) for text in part.columns.split()]
    if not part.tall:
        return _table(rows, columns)
    width = max(len(column.heading) for column in columns)
    return "\n".join(f"{column.heading:<{width}}  {column.cell(there)}" for column in columns)


def _table(rows: list[Any], columns: list[_Column]) -> str:
    """The table, without empty columns."""
    upright = [(heading, [heading.cell(row) for row in rows]) for heading in columns]
    placed = []
    for column, cells in upright:
        if all(cell == _NOTHING for cell in cells):
            continue
        width = max(len(column.heading), *map(len, cells))
        place = str.rjust if column.kind in _RIGHT else str.ljust
        placed.append([place(cell, width) for cell in (column.heading, *cells)])
    return "\n".join("  ".join(column[at] for column in placed).rstrip() for at in range(len(rows) + 1))


def usd(text: Any) -> str:
    """Dollars as on pages: two decimals from one dollar on, below it three significant digits."""
    amount = Decimal(str(text))
    if abs(amount) >= 1 or not amount:
        return f"${amount:,.2f}"
    places = max(2, 2 - amount.adjusted())
    return f"${amount:.{places}f}"


def _number(value: Any) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _seconds(value: Any) -> str:
    """A duration in a suitable unit."""
    for unit, seconds in (("h", 3600), ("min", 60)):
        if value >= 1.5 * seconds:
            return f"{value / seconds:,.1f} {unit}"
    return f"{value:.3g} s"


def _moment(value: str) -> str:
    """A time in the reader's time zone."""
    return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone().strftime("%Y-%m-%d %H:%M")


def _interval(value: dict[str, float | None]) -> str:
    if value["low"] is None or value["high"] is None:
        return _number(value["value"])
    return f"{_number(value['value'])} [{_number(value['low'])}, {_number(value['high'])}]"


_KINDS: dict[str, Callable[[Any], str]] = {
    "": lambda value: ", ".join(map(str, value)) if isinstance(value, list) else str(value),
    "yes": lambda value: "yes" if value else "no",
    "counts": lambda value: ", ".join(f"{count} {name}" for name, count in value.items()) or _NOTHING,
    "interval": _interval,
    "at": _moment,
    "whole": lambda value: f"{value:,}",
    "number": _number,
    "share": lambda value: f"{100 * value:.0f} %",
    "seconds": _seconds,
    "mb": lambda value: f"{value:,} MB",
    "kb": lambda value: f"{value / 1000:,.0f} kB",
    "usd": usd,
    "exact": lambda value: f"${value}",
}
_RIGHT = {"whole", "number", "share", "seconds", "mb", "kb", "usd", "exact", "interval"}
