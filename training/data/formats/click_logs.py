"""Criteo's click log: clicked or not, 13 counts and 26 texts, between tabs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from training.data.dataset import BadTable, Table
from training.data.formats.opening import lines_of, opened
from training.data.hashing import Hasher, bucket
from training.data.manifest import Column
from training.data.rows import Rows, joined

ROWS_LIMIT = 500_000
BITS = 18
_COUNTS, _TEXTS = 13, 26
_NAMES = (*(f"I{i + 1}" for i in range(_COUNTS)), *(f"C{i + 1}" for i in range(_TEXTS)))
_CHUNK = 20_000


def read_click_log(paths: Sequence[Path]) -> Table:
    """Return the log's first 500,000 rows. Raises BadTable, which names the file and the line."""
    if len(paths) != 1:
        raise BadTable(f"A click log is one file; there are {len(paths)}.")
    path, hasher, parts = paths[0], Hasher(BITS), []
    with opened(path) as file:
        rows = (_cells(line, number, path.name) for number, line in lines_of(file, path.name))
        while chunk := list(islice(rows, _CHUNK)):
            targets = np.array([cells[0] == "1" for cells in chunk], dtype=np.int32)
            columns = list(zip(*chunk, strict=True))[1:]
            parts.append(Rows(hasher.features(dict(zip(_NAMES, columns, strict=True))), targets))
            if sum(map(len, parts)) >= ROWS_LIMIT:
                break
        cut = next(rows, None) is not None
    if not parts:
        raise BadTable(f"{path.name} is empty.")
    rows_read = joined(parts)
    return Table(
        name="Click log",
        source=f"{'The first ' if cut else ''}{len(rows_read):,} rows of {path.name}, Criteo's format; "
        f"counts as buckets of their squared logarithm, all hashed into 2^{BITS} places",
        features=rows_read.features,
        targets=rows_read.targets,
        target="clicked",
        classes=("no", "yes"),
        columns=tuple(Column(name=name, type="count" if name[0] == "I" else "text") for name in _NAMES),
    )


def _cells(line: str, number: int, name: str) -> list[str]:
    """Return a row's cells, counts as buckets. Raises BadTable."""
    cells = line.split("\t")
    if len(cells) != 1 + len(_NAMES) or cells[0] not in ("0", "1"):
        raise BadTable(
            f"Line {number:,} of {name} is no row of a click log: it needs 0 or 1, {_COUNTS} counts and {_TEXTS} texts "
            f"between tabs, and has {len(cells)} cells."
        )
    for i in range(1, 1 + _COUNTS):
        if cells[i]:
            try:
                cells[i] = bucket(int(cells[i]))
            except ValueError:
                raise BadTable(
                    f"Line {number:,} of {name}: {_NAMES[i - 1]} is {cells[i][:40]!r}, not a count."
                ) from None
    return cells
