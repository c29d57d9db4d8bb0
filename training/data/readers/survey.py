"""What is in a table: its columns with their types, missing values and most frequent values, and its first rows."""

from __future__ import annotations

import math
from collections import Counter
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from training.base_model import FrozenModel
from training.data.readers.npz_table import NpzTable
from training.data.readers.tables import (
    Cells,
    TableFile,
    TableRefused,
    Values,
    fault_of,
    parse_numbers,
    place_words,
    usable,
)

MOST_VALUES = 1000
"""Different values of a column are counted up to so many."""
_VALUES_KEPT = 20
_LETTERS_KEPT = 1_000_000
"""Of the values of all columns: a survey is read whenever its page is."""
_ROWS_SHOWN, _COLUMNS_SHOWN, _LETTERS_SHOWN = 8, 60, 60
_WORDS_OF_A_TEXT = 5.0
"""A column with so many words a cell, on average, is texts; with fewer, names of categories."""


class ColumnSurvey(FrozenModel):
    """One column. `words`: texts of several words. `unusable`: no column of rows, `problem` says why.

    `width` is how many numbers a row has. `distinct` is None where there are more than MOST_VALUES different values;
    `values` are the most frequent ones with their counts, where there are few. `first_missing` is the number of the
    first row without a value, 0 if each has one. `problem` says where a cell is not of its column's type.
    """

    name: str
    type: Literal["number", "text", "words", "unusable"]
    rows: int
    width: int = 1
    picture: tuple[int, int] | None = None
    missing: int = 0
    first_missing: int = 0
    distinct: int | None = None
    values: tuple[tuple[str, int], ...] = ()
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    whole: bool = False
    bytes_exactly: bool = False
    """Whether an entry of an archive has the type uint8."""
    problem: str = ""


class TableSurvey(FrozenModel):
    """A table. `named`: whether its first row holds the names. `first_rows` are cells of its first columns."""

    format: Literal["csv", "npz"]
    rows: int
    named: bool = True
    delimiter: str = ""
    columns: tuple[ColumnSurvey, ...] = Field(min_length=1)
    first_rows: tuple[tuple[str, ...], ...] = ()

    def column(self, name: str) -> ColumnSurvey | None:
        return next((column for column in self.columns if column.name == name), None)


def survey(table: TableFile) -> TableSurvey:
    """Return what is in the table. Raises TableRefused."""
    columns: list[_Column] = []
    shown: list[list[str]] = []
    for names in table.read_together:
        if isinstance(table, NpzTable) and (problem := table.problem(names[0])):
            columns.append(_Column(table, names[0], problem))
            continue
        group = [_Column(table, name) for name in names]
        for piece in table.pieces(names):
            for column, values in zip(group, piece.columns, strict=True):
                column.add(piece.first_row, values)
            if not piece.first_row and len(columns) < _COLUMNS_SHOWN:
                shown += [_first_cells(values) for values in piece.columns[: _COLUMNS_SHOWN - len(columns)]]
        columns += group
    surveys = _within_letters([column.found() for column in columns])
    rows = max(part.rows for part in surveys)
    if not rows:
        raise TableRefused("The table has no rows below its names. Upload it with its rows.")
    count = min(map(len, shown), default=0)
    return TableSurvey(
        format="npz" if table.format == "npz" else "csv",
        rows=rows,
        named=getattr(table, "has_names", True),
        delimiter=getattr(table, "delimiter", ""),
        columns=surveys,
        first_rows=tuple(zip(*(cells[:count] for cells in shown), strict=True)),
    )


def _within_letters(columns: list[ColumnSurvey]) -> tuple[ColumnSurvey, ...]:
    """Return the columns, the later ones without their values where all have too many letters together."""
    left, found = _LETTERS_KEPT, []
    for column in columns:
        left -= sum(len(name) for name, _ in column.values)
        found.append(column if left >= 0 else column.model_copy(update={"values": ()}))
    return tuple(found)


class _Column:
    """A column while it is read. Its type is what most cells of its first piece are."""

    def __init__(self, table: TableFile, name: str, problem: str = "") -> None:
        self._table, self._name, self._problem = table, name, problem
        self._of_text: bool | None = None
        self._rows = self._missing = self._first_missing = self._words = 0
        self._counts: Counter[str] | Counter[float] | None = Counter()
        self._low, self._high, self._sum = math.inf, -math.inf, 0.0
        self._whole = True
        self._unusable = bool(problem)

    def add(self, first_row: int, values: Values) -> None:
        self._rows += len(values)
        if isinstance(values, np.ndarray):
            # A piece of numbers alone, in a column of text: its cells are numbers written as text.
            if self._of_text:
                self._add_texts(first_row, [format_number(value) for value in values.tolist()])
            else:
                self._of_text = False
                self._add_array(first_row, values)
            return
        if self._of_text is None:
            parsed = parse_numbers(values)
            given = len(values) - parsed.missing
            self._of_text = None if not given else parsed.text_count * 2 > given
        if self._of_text:
            self._add_texts(first_row, values)
        else:
            self._add_cells(first_row, values)

    def _add_cells(self, first_row: int, cells: Cells) -> None:
        parsed = parse_numbers(cells)
        if parsed.fault is not None and not self._problem:
            where = place_words(self._table, first_row + parsed.fault_row, self._name)
            self._problem = f"{where}: {parsed.fault}."
        if parsed.missing and not self._missing:
            self._first_missing = self._table.row_number(first_row + _first_missing(cells))
        self._missing += parsed.missing
        self._add_numbers(parsed.values[usable(parsed.values)])

    def _add_array(self, first_row: int, values: npt.NDArray[np.float64]) -> None:
        if values.dtype == np.uint8:
            self._add_numbers(values)
            return
        sound = usable(values)
        if not sound.all() and not self._problem:
            row = int(np.argwhere(~sound)[0][0])
            number = values[row] if values.ndim == 1 else values[row][~sound[row]][0]
            where = place_words(self._table, first_row + row, self._name)
            self._problem = f"{where}: {number} {fault_of(number)}."
        self._add_numbers(values[sound])

    def _add_numbers(self, values: npt.NDArray[np.float64]) -> None:
        if not values.size:
            return
        self._low, self._high = min(self._low, float(values.min())), max(self._high, float(values.max()))
        self._sum += float(values.sum(dtype=np.float64))
        self._whole = self._whole and (values.dtype == np.uint8 or bool((values == np.floor(values)).all()))
        if self._counts is not None:
            found, counts = np.unique(values, return_counts=True)
            self._count(dict(zip(found.tolist(), counts.tolist(), strict=True)))

    def _add_texts(self, first_row: int, cells: Cells) -> None:
        given = [cell for cell in cells if cell not in ("", "NA")]
        if len(given) < len(cells) and not self._missing:
            self._first_missing = self._table.row_number(first_row + _first_missing(cells))
        self._missing += len(cells) - len(given)
        self._words += sum(cell.count(" ") + 1 for cell in given)
        if self._counts is not None:
            self._count(Counter(given))

    def _count(self, more: dict[float, int] | Counter[str]) -> None:
        assert self._counts is not None
        if len(more) <= MOST_VALUES:
            self._counts.update(more)  # type: ignore[arg-type]  # one type of values for each column
        if max(len(more), len(self._counts)) > MOST_VALUES:
            self._counts = None

    def found(self) -> ColumnSurvey:
        table = self._table
        shape = table.shape(self._name) if isinstance(table, NpzTable) else ()
        known = {"name": self._name, "rows": self._rows, "problem": self._problem}
        if self._unusable:
            return ColumnSurvey(**{**known, "rows": shape[0] if shape else 0}, type="unusable")
        distinct = None if self._counts is None else len(self._counts)
        known |= {
            "missing": self._missing,
            "first_missing": self._first_missing,
            "distinct": distinct,
            "values": self._values(),
        }
        given = self._rows - self._missing
        if self._of_text:
            words = self._words / max(1, given) >= _WORDS_OF_A_TEXT
            return ColumnSurvey(**known, type="words" if words else "text")
        width = math.prod(shape[1:]) if len(shape) > 1 else 1
        some = self._low <= self._high
        return ColumnSurvey(
            **known,
            type="number",
            width=width,
            picture=(shape[1], shape[2]) if len(shape) == 3 else None,
            low=self._low if some else None,
            high=self._high if some else None,
            mean=self._sum / (given * width) if some else None,
            whole=some and self._whole,
            bytes_exactly=isinstance(table, NpzTable) and table.dtype(self._name) == np.uint8,
        )

    def _values(self) -> tuple[tuple[str, int], ...]:
        if self._counts is None or len(self._counts) > _VALUES_KEPT:
            return ()
        return tuple((value_name(value)[:200], count) for value, count in self._counts.most_common())


def value_name(value: float | str) -> str:
    return value if isinstance(value, str) else format_number(value)


def format_number(value: float) -> str:
    """Return the number as a class or a cell is named: 3, not 3.0."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(float(value))


def _first_missing(cells: Cells) -> int:
    return next(at for at, cell in enumerate(cells) if cell.strip() in ("", "NA"))


def _first_cells(values: Values) -> list[str]:
    return [_cell(value) for value in values[:_ROWS_SHOWN]]


def _cell(value: object) -> str:
    if isinstance(value, np.ndarray):
        few = ", ".join(f"{number:g}" for number in value[:4].tolist())
        text = f"{few}, …" if len(value) > 4 else few
    else:
        text = value if isinstance(value, str) else f"{value:g}"
    return text if len(text) <= _LETTERS_SHOWN else text[: _LETTERS_SHOWN - 1] + "…"
