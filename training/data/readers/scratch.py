"""Features of all rows in files of their own while a table is prepared, so that memory never holds all rows.

`DenseScratch` keeps numbers and pictures, `CategoryScratch` numbers beside columns of few categories, `SparseScratch`
hashed texts with numbers beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from training.data.hashing import Hasher, place_of, words_and_pairs
from training.data.manifest import Column
from training.data.readers.choice import Choice
from training.data.readers.survey import ColumnSurvey, format_number
from training.data.readers.tables import (
    MISSING,
    Cells,
    TableFile,
    TableRefused,
    Values,
    fault_of,
    parse_numbers,
    place_words,
    usable,
)
from training.data.rows import DenseFeatures, SparseFeatures
from training.data.split import held_out_rows

_FEWEST_PIXELS = 64
_LARGE = 2.0**20
"""From here on float32 has less than four binary digits behind the point, which a time in seconds or an id needs."""
MOST_SCRATCH_BYTES = 6 * 10**9
"""The shards of numbers take as much as their scratch files, those of texts less than half as much."""


@dataclass(frozen=True)
class MadeFeatures:
    features: DenseFeatures | SparseFeatures
    columns: tuple[Column, ...]
    picture: tuple[int, int] | None = None
    standardise: bool = False


class Scratch:
    """Numbers of all rows in files of their own, without a name that outlives the folder. Raises TableRefused if they
    take more of the disk than any table should.
    """

    def __init__(
        self, folder: Path, table: TableFile, chosen: Sequence[ColumnSurvey], texts: set[str], choice: Choice
    ) -> None:
        self._folder, self._table, self._choice = folder, table, choice
        self._chosen, self._of_text = list(chosen), texts
        self._files: dict[str, BinaryIO] = {}
        self._rows = self._byte_count = 0

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def _append(self, name: str, values: npt.NDArray[Any]) -> None:
        if name not in self._files:
            self._files[name] = (self._folder / name).open("wb")
        self._byte_count += values.nbytes
        if self._byte_count > MOST_SCRATCH_BYTES:
            raise TableRefused(
                f"Its features take more than {MOST_SCRATCH_BYTES // 10**9} GB of the disk. Leave out columns, or"
                " upload a part of the rows."
            )
        self._files[name].write(np.ascontiguousarray(values).data)

    def _mapped(self, name: str, dtype: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
        """Return the file as an array that the system keeps in memory only as far as there is room."""
        if name not in self._files or 0 in shape:
            return np.zeros(shape, dtype)
        self._files[name].flush()
        return np.memmap(self._folder / name, dtype, mode="r", shape=shape)


class DenseScratch(Scratch):
    """Every number at its place; NaN where there is none. Pictures stay bytes."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._width = sum(column.width for column in self._chosen)
        self._picture = _picture(self._chosen)
        self._dtype = np.dtype(np.uint8) if self._picture else _dtype(self._chosen)

    def add(self, first_row: int, columns: Sequence[Values], count: int) -> None:
        pairs = zip(self._chosen, columns, strict=True)
        parts = [
            column_numbers(self._table, column.name, first_row, values).reshape(count, -1)
            for column, values in pairs
        ]
        whole = np.concatenate(parts, axis=1)
        self._append("rows", whole.astype(self._dtype))
        self._rows += count

    def table(self, targets: npt.NDArray[np.int32], choice: Choice) -> MadeFeatures:
        features = DenseFeatures(self._mapped("rows", self._dtype, self._rows, self._width))
        if self._picture:
            return MadeFeatures(features, (), self._picture)
        columns = [
            Column(name=name, missing=one.missing) for one in self._chosen for name in _number_names(one)
        ]
        return MadeFeatures(features, tuple(columns), None, standardise=True)


def _dtype(columns: Sequence[ColumnSurvey]) -> np.dtype[Any]:
    """Return how numbers wait to be standardised: those of large columns keep their last digits."""
    largest = max((max(abs(column.low or 0.0), abs(column.high or 0.0)) for column in columns), default=0.0)
    return np.dtype(np.float64 if largest >= _LARGE else np.float32)


def _number_names(one: ColumnSurvey) -> list[str]:
    """Return a name for each number of a row."""
    return [one.name] if one.width == 1 else [f"{one.name} {at + 1}"[-200:] for at in range(one.width)]


def _picture(chosen: Sequence[ColumnSurvey]) -> tuple[int, int] | None:
    """Return the rows and columns of a picture, if features are the bytes of one: an entry of [row, height, width], or
    a column for each pixel of a square.
    """
    if any(one.missing or not one.whole or (one.low or 0) < 0 or (one.high or 0) > 255 for one in chosen):
        return None
    if len(chosen) == 1 and chosen[0].picture is not None and chosen[0].bytes_exactly:
        return chosen[0].picture
    side = round(len(chosen) ** 0.5)
    one_each = all(column.width == 1 for column in chosen)
    bright = max((column.high or 0) for column in chosen) > 1
    square = side * side == len(chosen) >= _FEWEST_PIXELS
    return (side, side) if square and one_each and bright else None


class CategoryScratch(Scratch):
    """Numbers at their places, and for each category of a column of few a place of its own: 1 in its rows, else 0. A
    missing category is 0 in all of them.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._numeric = [column for column in self._chosen if column.name not in self._of_text]
        self._wide = sum(column.width for column in self._numeric)
        self._dtype = _dtype(self._numeric)
        self._categories: dict[str, dict[str, int]] = {
            column.name: {} for column in self._chosen if column.name in self._of_text
        }

    def add(self, first_row: int, columns: Sequence[Values], count: int) -> None:
        numbers, numbered = [np.zeros((count, 0))], []
        for column, values in zip(self._chosen, columns, strict=True):
            if column.name in self._of_text:
                known = self._categories[column.name]
                numbered.append([_number_of(known, cell) for cell in category_cells(column, values)])
            else:
                numbers.append(column_numbers(self._table, column.name, first_row, values).reshape(count, -1))
        self._append("numbers", np.concatenate(numbers, axis=1).astype(self._dtype))
        self._append("categories", np.array(numbered, np.int32).T)
        self._rows += count

    def table(self, targets: npt.NDArray[np.int32], choice: Choice) -> MadeFeatures:
        numbers = self._mapped("numbers", self._dtype, self._rows, self._wide)
        numbered = self._mapped("categories", np.int32, self._rows, len(self._categories))
        ordered = {name: sorted(known, key=_in_order) for name, known in self._categories.items()}
        for begin in range(0, self._rows, _ROWS_AT_ONCE):
            here = slice(begin, begin + _ROWS_AT_ONCE)
            parts = [np.asarray(numbers[here])]
            for at, (name, names) in enumerate(ordered.items()):
                places = [self._categories[name][text] for text in names]
                parts.append(np.equal.outer(np.asarray(numbered[here, at]), places))
            self._append("rows", np.concatenate(parts, axis=1).astype(self._dtype))
        columns = [
            Column(name=name, missing=one.missing) for one in self._numeric for name in _number_names(one)
        ]
        columns += [
            Column(
                name=column.name,
                type="number indicator" if column.type == "number" else "text indicator",
                missing=column.missing,
                frequent=(value,),
            )
            for column in self._chosen
            if column.name in ordered
            for value in ordered[column.name]
        ]
        features = DenseFeatures(self._mapped("rows", self._dtype, self._rows, len(columns)))
        return MadeFeatures(features, tuple(columns), None, standardise=True)


def _number_of(known: dict[str, int], cell: str) -> int:
    """Return the number of a category, which a new one gets; -1 for a cell without one."""
    return -1 if cell.strip() in MISSING else known.setdefault(cell, len(known))


def _in_order(category: str) -> tuple[bool, float, str]:
    """Return what sorts categories: numbers by their size, then names."""
    number = parse_numbers([category]).values[0]
    return (bool(np.isnan(number)), 0.0 if np.isnan(number) else float(number), category)


class SparseScratch(Scratch):
    """Texts at their hashed places. Numbers wait, because they are standardised by the rows that are learned from."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._numeric = [column for column in self._chosen if column.name not in self._of_text]
        self._numbers_wide = sum(column.width for column in self._numeric)
        self._dtype = _dtype(self._numeric)
        self._hasher = Hasher(self._choice.place_bits)
        self._stored = 0

    def add(self, first_row: int, columns: Sequence[Values], count: int) -> None:
        numbers: list[npt.NDArray[Any]] = []
        rows: list[npt.NDArray[np.int64]] = []
        places: list[npt.NDArray[np.int32]] = []
        shares: list[npt.NDArray[np.float32]] = []
        for column, values in zip(self._chosen, columns, strict=True):
            if column.name not in self._of_text:
                numbers.append(column_numbers(self._table, column.name, first_row, values).reshape(count, -1))
                continue
            hashed = self._hashed(column, category_cells(column, values))
            rows.append(np.repeat(np.arange(count), np.diff(hashed.offsets)))
            places.append(hashed.places)
            shares.append(hashed.values)
        order = np.argsort(row := np.concatenate(rows), kind="stable")
        self._append("lengths", np.bincount(row, minlength=count).astype(np.int64))
        self._append("places", np.concatenate(places)[order])
        self._append("shares", np.concatenate(shares)[order])
        if numbers:
            self._append("numbers", np.concatenate(numbers, axis=1).astype(self._dtype))
        self._rows += count
        self._stored += len(row)

    def _hashed(self, column: ColumnSurvey, cells: Cells) -> SparseFeatures:
        """Return a place for each category, and one for each different word and pair of words of a text."""
        given = ["" if cell.strip() in MISSING else cell for cell in cells]
        if column.type == "words":
            return self._hasher.bags(column.name, [words_and_pairs(cell) for cell in given])
        return self._hasher.features({column.name: given})

    def table(self, targets: npt.NDArray[np.int32], choice: Choice) -> MadeFeatures:
        rows, wide, width = self._rows, self._numbers_wide, self._hasher.width
        numbers = self._mapped("numbers", self._dtype, rows, wide)
        learned = ~held_out_rows(targets, choice.held_out_share, choice.seed)
        mean, scale = _moments(numbers, learned)
        names = [(column, name) for column in self._numeric for name in _number_names(column)]
        own = np.array([place_of(name, "", self._choice.place_bits) for _, name in names], np.int32)
        lengths = self._mapped("lengths", np.int64, rows)
        texts = (
            self._mapped("places", np.int32, self._stored),
            self._mapped("shares", np.float32, self._stored),
        )
        for part in _merged(numbers, mean, scale, own, lengths, *texts, width):
            for file, values in zip(("all lengths", "all places", "all values"), part, strict=True):
                self._append(file, values)
        offsets = np.concatenate([[0], np.cumsum(self._mapped("all lengths", np.int64, rows))]).astype(
            np.int64
        )
        stored = int(offsets[-1])
        features = SparseFeatures(
            offsets,
            self._mapped("all places", np.int32, stored),
            self._mapped("all values", np.float32, stored),
            width,
        )
        columns = [_text_column(column) for column in self._chosen if column.name in self._of_text]
        columns += [Column(name=name, mean=float(mean[at]), scale=float(scale[at]), missing=column.missing)
                    for at, (column, name) in enumerate(names)]  # fmt: skip
        return MadeFeatures(features, tuple(columns))


def _text_column(column: ColumnSurvey) -> Column:
    if column.type == "words":
        return Column(name=column.name, type="words", missing=column.missing)
    frequent = tuple(name for name, _ in column.values)
    kind: Literal["category", "text"] = "category" if column.type == "number" else "text"
    return Column(name=column.name, type=kind, missing=column.missing, frequent=frequent)


_ROWS_AT_ONCE = 8192


def _moments(numbers: npt.NDArray[Any], learned: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
    """Return the mean and the scale of each column, over the rows that are learned from, without missing numbers."""
    count, total, squares = (np.zeros(numbers.shape[1]) for _ in range(3))
    origin = np.nan_to_num(np.asarray(numbers[0], np.float64)) if len(numbers) else total
    for begin in range(0, len(numbers), _ROWS_AT_ONCE):
        part = np.asarray(numbers[begin : begin + _ROWS_AT_ONCE], np.float64)[
            learned[begin : begin + _ROWS_AT_ONCE]
        ]
        known = ~np.isnan(part)
        away = np.where(known, part - origin, 0.0)
        count += known.sum(axis=0)
        total += away.sum(axis=0)
        squares += (away * away).sum(axis=0)
    shift = total / np.maximum(count, 1)
    deviation = np.sqrt(np.maximum(squares / np.maximum(count, 1) - shift**2, 0.0))
    varies = deviation > 1e-9 * (1.0 + np.abs(origin))
    return origin + shift, np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 1.0)


def _merged(
    numbers: npt.NDArray[Any],
    mean: npt.NDArray[Any],
    scale: npt.NDArray[Any],
    own: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int64],
    places: npt.NDArray[np.int32],
    shares: npt.NDArray[np.float32],
    width: int,
) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Yield lengths, places and values of some rows: texts and numbers together, each place once a row."""
    begin_place = 0
    for begin in range(0, len(lengths), _ROWS_AT_ONCE):
        here = np.asarray(lengths[begin : begin + _ROWS_AT_ONCE])
        count, stored = len(here), int(here.sum())
        standard = np.nan_to_num((np.asarray(numbers[begin : begin + count], np.float64) - mean) * scale)
        row = np.concatenate([np.repeat(np.arange(count), here), np.repeat(np.arange(count), len(own))])
        place = np.concatenate([places[begin_place : begin_place + stored], np.tile(own, count)])
        value = np.concatenate([shares[begin_place : begin_place + stored], standard.reshape(-1)])
        begin_place += stored
        keys, inverse = np.unique(row * width + place, return_inverse=True)
        sums = np.bincount(inverse.reshape(-1), value, len(keys))
        keys, sums = keys[sums != 0], sums[sums != 0]
        lengths_here = np.bincount(keys // width, minlength=count).astype(np.int64)
        yield lengths_here, (keys % width).astype(np.int32), sums.astype(np.float32)


def column_numbers(table: TableFile, name: str, first_row: int, values: Values) -> npt.NDArray[Any]:
    """Return the column's numbers, NaN where there is none. Raises TableRefused for a cell that is no number."""
    if isinstance(values, np.ndarray):
        if values.dtype != np.uint8 and not (sound := usable(values)).all():
            row = int(np.argwhere(~sound)[0][0])
            number = values[~sound][0]
            raise TableRefused(f"{place_words(table, first_row + row, name)}: {number} {fault_of(number)}.")
        return values
    parsed = parse_numbers(values)
    if parsed.fault is not None:
        raise TableRefused(f"{place_words(table, first_row + parsed.fault_row, name)}: {parsed.fault}.")
    return parsed.values


def category_cells(column: ColumnSurvey, values: Values) -> Cells:
    """Return the column's categories. A number is written in one way, so that 3 and 3.0 are one category."""
    if isinstance(values, np.ndarray):
        return [format_number(value) for value in values.tolist()]
    if column.type != "number":
        return values
    return [_category(cell) for cell in values]


def _category(cell: str) -> str:
    parsed = parse_numbers([cell])
    return cell if parsed.fault is not None or parsed.missing else format_number(float(parsed.values[0]))
