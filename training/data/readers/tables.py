"""What every kind of table is: columns with names, and pieces of consecutive rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

MOST_UNPACKED_BYTES = 1_000_000_000
MOST_UNPACKED_FOLD = 200
"""No table of data packs better. A file made to unpack without end is refused after its first megabytes."""
FOLD_COUNTS_FROM_BYTES = 50_000_000
MOST_ROWS = 10_000_000
MOST_COLUMNS = 2000
LARGEST = float(np.finfo(np.float32).max)
"""Features are float32."""
MISSING = ("", "NA")
"""Cells without a value."""


class TableRefused(ValueError):
    """The table cannot be read, or not be learned from. The message says where, why and what to do."""


Cells = Sequence[str]
Values = npt.NDArray[Any] | Cells
"""A column's part of some rows: numbers, [row] or [row, number], or cells of text."""


@dataclass(frozen=True)
class Piece:
    """Consecutive rows: the first one's number, counted from 0, and their values by column."""

    first_row: int
    columns: Sequence[Values]

    def __len__(self) -> int:
        return len(self.columns[0])


class TableFile(Protocol):
    """An open file."""

    @property
    def format(self) -> str: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def read_together(self) -> Sequence[tuple[str, ...]]:
        """Names of the columns that certainly have as many rows as each other."""

    def row_number(self, row: int) -> int:
        """Return the number that people give the row, which is counted from 0 here."""

    def pieces(self, names: Sequence[str], *, as_cells: bool = False) -> Iterator[Piece]:
        """Yield the rows of these columns, in their order. `as_cells`: text as it is in the file, also of a piece
        that holds numbers alone. Raises TableRefused.
        """


def usable(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which numbers features can hold: finite ones that are not too large."""
    sound: npt.NDArray[np.bool_] = np.abs(values) <= LARGEST
    return sound


def fault_of(number: float) -> str:
    """Return what is wrong with a number that is not usable."""
    return "is too large a number" if np.isfinite(number) else "is not a finite number"


@dataclass(frozen=True)
class ParsedNumbers:
    """Cells as numbers: NaN where there is none. `text_count` cells are text. The first cell that is no usable number
    is `fault`, at `fault_row` of the cells; None if there is none.
    """

    values: npt.NDArray[np.float64]
    missing: int
    text_count: int = 0
    fault_row: int = 0
    fault: str | None = None


def parse_numbers(cells: Cells) -> ParsedNumbers:
    """Return the cells as numbers, with the first that is none."""
    missing = sum(map(cells.count, MISSING))
    try:
        given = [("nan" if cell in MISSING else cell) for cell in cells] if missing else cells
        values = np.fromiter(map(float, given), np.float64, len(cells))
    except ValueError:
        return _parse_slowly(cells)
    plain = "_" not in "".join(cells) and "".join(cells).isascii()
    sound = int(usable(values).sum()) == len(cells) - missing
    return ParsedNumbers(values, missing) if plain and sound else _parse_slowly(cells)


def _parse_slowly(cells: Cells) -> ParsedNumbers:
    values = np.full(len(cells), np.nan)
    missing = texts = fault_row = 0
    fault: str | None = None
    for row, cell in enumerate(cells):
        if (stripped := cell.strip()) in MISSING:
            missing += 1
            continue
        number = _number(stripped)
        if number is not None and abs(number) <= LARGEST:
            values[row] = number
            continue
        texts += number is None
        if fault is None:
            fault_row = row
            fault = f"{_quoted(cell)} {'is not a number' if number is None else fault_of(number)}"
    return ParsedNumbers(values, missing, texts, fault_row, fault)


def _number(text: str) -> float | None:
    """Return the number; None for text. Python also reads 1_000 and digits of other scripts: text here."""
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _quoted(cell: str) -> str:
    return f"“{cell if len(cell) <= 40 else cell[:39] + '…'}”"


def place_words(table: TableFile, row: int, column: str) -> str:
    """Return where a cell is, to begin a sentence."""
    return f"Row {table.row_number(row):,}, column “{column}”"
