"""Counts how often each text occurs, for millions of texts."""

from __future__ import annotations

import hashlib
import sqlite3


class Occurrences:
    """Counts texts by their hashes in a temporary table on disk: a bill may have millions of lines without an id."""

    def __init__(self) -> None:
        # An empty name: a temporary file that no other process sees; closing it deletes it.
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("PRAGMA journal_mode = OFF")
        self._table.execute("CREATE TABLE seen (hash BLOB PRIMARY KEY, count INTEGER) WITHOUT ROWID")
        self._table.execute("BEGIN")

    def count(self, text: str) -> int:
        """How often the text has occurred, this time included; 1 for a new text."""
        row = self._table.execute(
            "INSERT INTO seen VALUES (?, 1) ON CONFLICT (hash) DO UPDATE SET count = count + 1 RETURNING count",
            (hashlib.sha256(text.encode()).digest()[:16],),
        ).fetchone()
        return int(row[0])

    def close(self) -> None:
        self._table.close()
