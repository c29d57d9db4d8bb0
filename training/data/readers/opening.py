"""Opens a table of any kind by its first bytes."""

from __future__ import annotations

from pathlib import Path

from training.data.readers.csv_table import CsvTable
from training.data.readers.npz_table import NpzTable
from training.data.readers.tables import TableFile, TableRefused


def open_table(path: Path) -> TableFile:
    """Return the table in the file. Raises TableRefused."""
    with path.open("rb") as file:
        first = file.read(4)
    if not first:
        raise TableRefused("The file is empty. Upload a table with names of columns in its first row.")
    return NpzTable(path) if first[:2] == b"PK" else CsvTable(path)
