"""A table and a choice become a data set: classes are numbered, text gets places, and shards are stored.

The table is read once, into scratch files of numbers; what follows reads those, so that memory never holds all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from training.data.dataset import MOST_NAME_LETTERS, BadTable, Table, write_dataset
from training.data.manifest import Manifest
from training.data.readers.choice import MOST_NUMBERS, Choice, check, features
from training.data.readers.scratch import CategoryScratch, DenseScratch, SparseScratch, column_numbers
from training.data.readers.survey import MOST_VALUES, ColumnSurvey, TableSurvey, format_number
from training.data.readers.tables import Cells, Piece, TableFile, TableRefused, Values, place_words
from training.data.store import WritableDataStore

CATEGORIES_HASHED_FROM = 50
"""Columns of text with fewer different values get a place for each; with one that has more, all texts are hashed."""


def prepare(
    table: TableFile,
    survey: TableSurvey,
    choice: Choice,
    store: WritableDataStore,
    *,
    name: str,
    source: str,
    scratch_folder: Path,
) -> Manifest:
    """Store the data set that was chosen and return its manifest. Raises TableRefused."""
    if problems := check(survey, choice):
        raise TableRefused(problems[0].sentence)
    target = survey.column(choice.target)
    assert target is not None  # or there was a problem
    chosen = features(survey, choice)
    texts = [column for column in chosen if column.type != "number" or column.name in choice.as_text]
    with TemporaryDirectory(prefix="scratch-", dir=scratch_folder) as folder:
        make = DenseScratch if not texts else CategoryScratch if _few(texts, chosen) else SparseScratch
        with make(Path(folder), table, chosen, {column.name for column in texts}, choice) as scratch:
            classes = _Classes(table, target)
            for piece in table.pieces([target.name, *(one.name for one in chosen)], as_cells=bool(texts)):
                classes.add(piece)
                scratch.add(piece.first_row, piece.columns[1:], len(piece))
            targets, names = classes.numbered()
            made = scratch.table(targets, choice)
        whole = Table(
            name=name, source=source, features=made.features, targets=targets, target=target.name, classes=names,
            columns=made.columns, picture=made.picture, standardise=made.standardise,
        )  # fmt: skip
        try:
            return write_dataset(whole, store, held_out_share=choice.held_out_share, seed=choice.seed)
        except BadTable as error:
            raise TableRefused(str(error)) from None


def _few(texts: Sequence[ColumnSurvey], chosen: Sequence[ColumnSurvey]) -> bool:
    """Return whether each category of these columns may have a place of its own."""
    counts = [MOST_NUMBERS if one.type == "words" or one.distinct is None else one.distinct for one in texts]
    places = sum(counts) + sum(column.width for column in chosen) - len(texts)
    return max(counts) < CATEGORIES_HASHED_FROM and places <= MOST_NUMBERS


class _Classes:
    """The class of each row, in order of its appearance; numbered in the order of names at the end."""

    def __init__(self, table: TableFile, target: ColumnSurvey) -> None:
        self._table, self._target = table, target
        self._numbers: dict[str, int] = {}
        self._parts: list[npt.NDArray[np.int32]] = []

    def add(self, piece: Piece) -> None:
        values = piece.columns[0]
        if self._target.type == "number":
            numbers = column_numbers(self._table, self._target.name, piece.first_row, values)
            if np.isnan(numbers).any():
                row = piece.first_row + int(np.flatnonzero(np.isnan(numbers))[0])
                raise TableRefused(f"{place_words(self._table, row, self._target.name)} has no value.")
            different, inverse = np.unique(numbers, return_inverse=True)
            codes = np.array([self._number(format_number(value)) for value in different.tolist()], np.int32)
            self._parts.append(codes[inverse.reshape(-1)])
            return
        self._parts.append(np.array([self._number(cell) for cell in _texts(values)], np.int32))

    def _number(self, name: str) -> int:
        if len(name) > MOST_NAME_LETTERS:
            raise TableRefused(
                f"“{self._target.name}” has a class whose name has {len(name):,} letters; at most {MOST_NAME_LETTERS}"
                " are allowed. Shorten it, or choose another target."
            )
        if len(self._numbers) > MOST_VALUES:
            raise TableRefused(f"“{self._target.name}” has more than {MOST_VALUES:,} different values.")
        return self._numbers.setdefault(name, len(self._numbers))

    def numbered(self) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
        """Return the number of each row's class, and the classes' names in order."""
        of_numbers = self._target.type == "number"
        names = sorted(self._numbers, key=(lambda name: (float(name), name)) if of_numbers else None)
        places = np.empty(len(names), np.int32)
        for at, name in enumerate(names):
            places[self._numbers[name]] = at
        return places[np.concatenate(self._parts)], tuple(names)


def _texts(values: Values) -> Cells:
    return [format_number(value) for value in values.tolist()] if isinstance(values, np.ndarray) else values
