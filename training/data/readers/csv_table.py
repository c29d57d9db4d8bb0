"""Tables as CSV, packed by gzip or not: any delimiter of four, any end of lines, quoted or not.

Pieces of plain numbers are read by numpy at once. A piece that numpy does not read is read again cell by cell, which
finds what is wrong with its row and column.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from training.data.dataset import MOST_NAME_LETTERS
from training.data.readers.tables import (
    FOLD_COUNTS_FROM_BYTES,
    MOST_COLUMNS,
    MOST_ROWS,
    MOST_UNPACKED_BYTES,
    MOST_UNPACKED_FOLD,
    Piece,
    TableRefused,
    parse_numbers,
    usable,
)

_DELIMITERS = ",;\t|"
_PIECE_LETTERS = 1_000_000
_LONGEST_RECORD = 4_000_000
_LETTERS_LOOKED_AT = 250_000
_LOOKED_AT = 50
_TRIES = 2
"""After so many pieces that numpy does not read, the others are read cell by cell as well."""
_UNREADABLE = (EOFError, OSError, zlib.error)


class CsvTable:
    """A CSV file. A first row without a number holds the names of its columns; otherwise they are numbered."""

    format = "csv"

    def __init__(self, path: Path) -> None:
        self._path = path
        csv.field_size_limit(_LONGEST_RECORD)
        with _open_lines(path) as lines:
            first = lines.piece(_LETTERS_LOOKED_AT)
        if not first:
            raise TableRefused("The file is empty. Upload a table with names of columns in its first row.")
        self.delimiter, records = _divide(first[: 4 * _LOOKED_AT])
        self.decimal_comma = _has_decimal_commas(records)
        if self.decimal_comma:
            records = [_with_points(record) for record in records]
        top = records[0]
        if len(top) > MOST_COLUMNS:
            raise TableRefused(f"The table has {len(top):,} columns; at most {MOST_COLUMNS:,} are allowed.")
        self.has_names = not _is_data(top)
        self.names = _names(top) if self.has_names else tuple(f"column {at + 1}" for at in range(len(top)))

    @property
    def read_together(self) -> Sequence[tuple[str, ...]]:
        return (self.names,)

    def row_number(self, row: int) -> int:
        return row + 1 + self.has_names

    def pieces(self, names: Sequence[str], *, as_cells: bool = False) -> Iterator[Piece]:
        wanted = [self.names.index(name) for name in names]
        with _open_lines(self._path) as lines:
            yield from self._pieces(lines, wanted, 0 if as_cells else _TRIES)

    def _pieces(self, lines: _Lines, wanted: list[int], tries: int) -> Iterator[Piece]:
        row, skip = 0, int(self.has_names)
        while taken := lines.piece(_PIECE_LETTERS):
            numbers = self._read_at_once(taken) if tries and not skip else None
            if numbers is not None:
                yield Piece(row, [numbers[:, at] for at in wanted])
                row += len(numbers)
            else:
                tries -= bool(tries and not skip)
                records = self._read_by_cell(taken, lines, row - skip)
                if records[skip:]:
                    columns = list(zip(*records[skip:], strict=True))
                    yield Piece(row, [columns[at] for at in wanted])
                row, skip = row + len(records) - skip, 0
            if row > MOST_ROWS:
                raise TableRefused(
                    f"The table has more than {MOST_ROWS:,} rows. Upload a part of it, such as a sample."
                )

    def _read_at_once(self, lines: list[str]) -> npt.NDArray[np.float64] | None:
        """Return the rows if all of them are usable numbers; None if a closer look is needed."""
        if not lines[0].strip():
            return None
        if self.decimal_comma and self.delimiter != ",":
            lines = [line.replace(",", ".") for line in lines]
        try:
            numbers = np.loadtxt(lines, np.float64, delimiter=self.delimiter, comments=None, ndmin=2)
        except ValueError:
            return None
        whole = numbers.shape == (len(lines), len(self.names)) and bool(usable(numbers).all())
        return numbers if whole else None

    def _read_by_cell(self, taken: list[str], lines: _Lines, row: int) -> list[list[str]]:
        """Return the records that begin in the taken lines. The last may go on in further lines."""
        counted = _Counted(taken, lines)
        reader = csv.reader(counted, delimiter=self.delimiter, strict=True)
        records: list[list[str]] = []
        while counted.number < len(taken):
            number = self.row_number(row + len(records))
            try:
                record = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                raise TableRefused(f"Row {number:,} cannot be read ({error}). See to its quotes.") from None
            if not record:
                continue
            if len(record) != len(self.names):
                raise TableRefused(
                    f"Row {number:,} has {_cells(len(record))}, and the first row has {len(self.names):,}."
                    f" Column {min(len(record), len(self.names)) + 1:,} is where they differ; correct the row."
                )
            records.append(_with_points(record) if self.decimal_comma else record)
        return records


class _Counted:
    """The taken lines, then further ones; `number` of them were read."""

    def __init__(self, taken: list[str], more: _Lines) -> None:
        self._lines = chain(taken, more)
        self._limit = _LONGEST_RECORD
        self._taken, self.number = len(taken), 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        if self.number > self._taken:
            self._limit -= len(line)
            if self._limit < 0:
                raise _too_long()
        return line


class _Lines:
    """The lines of an open file, at most so many letters at once. Raises TableRefused."""

    def __init__(self, raw: BinaryIO, text: io.TextIOWrapper, packed: bool) -> None:
        self._raw, self._text, self._packed = raw, text, packed
        self._letters = self._count = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        lines = self.piece(1)
        if not lines:
            raise StopIteration
        return lines[0]

    def piece(self, letters: int) -> list[str]:
        """Return lines of at least so many letters together; fewer at the file's end."""
        lines: list[str] = []
        length = 0
        readline = self._text.readline
        try:
            while length < letters and (line := readline(_LONGEST_RECORD + 1)):
                if len(line) > _LONGEST_RECORD:
                    raise _too_long()
                length += len(line)
                lines.append(line)
        except _UNREADABLE as error:
            raise TableRefused(
                f"The packed file is damaged or incomplete ({type(error).__name__}). Pack it again with gzip."
            ) from None
        self._check_text(lines)
        self._count += len(lines)
        self._letters += length
        if self._letters > MOST_UNPACKED_BYTES:
            raise TableRefused(
                f"The file unpacks to more than {MOST_UNPACKED_BYTES:,} letters. Upload a part of it."
            )
        folded = self._packed and self._letters > FOLD_COUNTS_FROM_BYTES
        if folded and self._letters > MOST_UNPACKED_FOLD * self._raw.tell():
            raise TableRefused(
                f"The file unpacks to more than {MOST_UNPACKED_FOLD} times its size, which no table does."
            )
        return lines

    def _check_text(self, lines: list[str]) -> None:
        whole = "".join(lines)
        if "\0" in whole:
            raise TableRefused("This is no text: it holds NUL characters. Save the table as CSV in UTF-8.")
        if whole.isascii():
            return
        for number, line in enumerate(lines, start=self._count + 1):
            try:
                line.encode()
            except UnicodeEncodeError as error:
                byte = ord(line[error.start]) - 0xDC00
                raise TableRefused(
                    f"Line {number:,} is not UTF-8 text (byte 0x{byte:02X} at letter {error.start + 1:,})."
                    " Save the table as CSV in UTF-8."
                ) from None


@contextmanager
def _open_lines(path: Path) -> Iterator[_Lines]:
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("rb"))
        packed = raw.peek(2)[:2] == b"\x1f\x8b"
        if raw.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise TableRefused("The file is UTF-16 text. Save the table as CSV in UTF-8.")
        unpacked = stack.enter_context(gzip.open(raw, "rb")) if packed else raw
        text = io.TextIOWrapper(unpacked, encoding="utf-8-sig", errors="surrogateescape", newline="")
        yield _Lines(raw, stack.enter_context(text), packed)


def _divide(lines: list[str]) -> tuple[str, list[list[str]]]:
    """Return the delimiter that divides the first lines into most columns, all rows alike, and those rows."""
    best: tuple[str, list[list[str]]] | None = None
    for delimiter in _DELIMITERS:
        records = _records(lines, delimiter)
        if not records or len(records[0]) < 2:
            continue
        # A ragged row below does not change how the table is divided.
        score = (sum(len(record) == len(records[0]) for record in records), len(records[0]))
        if best is None or score > (sum(len(one) == len(best[1][0]) for one in best[1]), len(best[1][0])):
            best = delimiter, records
    if best is None:
        raise TableRefused(
            "The first row has one column. Divide columns by commas, semicolons, tabs or bars, and see to quotes."
        )
    return best


_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*", re.ASCII)
_GROUPED_NUMBER = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*", re.ASCII)
"""A number of which no one can say whether its comma is that of decimals or divides thousands."""


def _has_decimal_commas(records: list[list[str]]) -> bool:
    """Return whether commas in numbers are those of decimals. Raises TableRefused if the numbers do not show it."""
    numbers = [
        (row, column, cell)
        for row, record in enumerate(records, start=1)
        for column, cell in enumerate(record)
        if _COMMA_NUMBER.fullmatch(cell)
    ]
    if not numbers or any(not _GROUPED_NUMBER.fullmatch(cell) for _, _, cell in numbers):
        return bool(numbers)
    row, column, cell = numbers[0]
    name = records[0][column] if not _COMMA_NUMBER.fullmatch(records[0][column]) else f"column {column + 1}"
    number = cell.strip()
    raise TableRefused(
        f"Row {row:,}, column “{name[:40]}”: “{number}” may be {number.replace(',', '.')} or {number.replace(',', '')}."
        " Write decimals with a point, and thousands without a comma."
    )


def _with_points(record: list[str]) -> list[str]:
    """Return the cells, numbers with a decimal comma written with a point."""
    return [
        cell.replace(",", ".") if "," in cell and _COMMA_NUMBER.fullmatch(cell) else cell for cell in record
    ]


def _records(lines: list[str], delimiter: str) -> list[list[str]]:
    records: list[list[str]] = []
    try:
        for record in csv.reader(iter(lines), delimiter=delimiter, strict=True):
            if record:
                records.append(record)
            if len(records) == _LOOKED_AT:
                break
    except csv.Error:
        pass  # a quote that these lines do not close
    return records


def _is_data(top: list[str]) -> bool:
    """Return whether the first row is data: it holds a number. Names that only count columns are names."""
    if [cell.strip() for cell in top] == [str(at) for at in range(len(top))]:
        return False
    return any(parse_numbers([cell]).fault is None for cell in top if cell.strip())


def _names(top: list[str]) -> tuple[str, ...]:
    names = [cell.strip()[:MOST_NAME_LETTERS] or f"column {at}" for at, cell in enumerate(top, start=1)]
    seen: dict[str, int] = {}
    for at, name in enumerate(names, start=1):
        if name in seen:
            raise TableRefused(
                f"Row 1: columns {seen[name]:,} and {at:,} are both named “{name}”. Give each its own name."
            )
        seen[name] = at
    return tuple(names)


def _cells(count: int) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'}"


def _too_long() -> TableRefused:
    return TableRefused(
        f"A row has more than {_LONGEST_RECORD:,} letters. See whether a quote is not closed."
    )
