"""The file of a bill as lines of text. Memory never holds more than the longest record allowed."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from webapp.background import WorkRefused

MOST_LETTERS = 4_000_000_000
"""After unpacking."""
LONGEST_RECORD = 2**18
# No bill compresses better. A file made to unpack without end is refused after its first megabyte.
_MOST_UNPACKED_FOLD = 200
_FOLD_COUNTS_FROM = 1_000_000
_FOLD_LOOKED_AT_EVERY = 250_000


class BillRefused(WorkRefused):
    """The file cannot be read; the message says where, why and what to do."""


class BillText:
    """The lines of an open file. `begin_record` starts a new record, which may span lines.

    Raises BillRefused for a record or a file that is longer than any bill's.
    """

    def __init__(self, text: TextIO, packed_bytes_read: Callable[[], int] | None) -> None:
        self._text = text
        self._packed_bytes_read = packed_bytes_read
        self._letters = self._in_record = self._records = 0
        self._look_at = _FOLD_COUNTS_FROM

    def begin_record(self) -> None:
        self._in_record = 0
        self._records += 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(LONGEST_RECORD - self._in_record + 1)
        if not line:
            raise StopIteration
        self._letters += len(line)
        self._in_record += len(line)
        if self._letters > MOST_LETTERS:
            raise BillRefused(
                f"The file has more than {MOST_LETTERS:,} letters unpacked. Export it by month."
            )
        if self._in_record > LONGEST_RECORD:
            raise BillRefused(
                f"Line {self._records + 1} has more than {LONGEST_RECORD:,} letters, which no line of a bill has."
                " Export the bill again as CSV."
            )
        if "\0" in line:
            raise BillRefused("This is no CSV file, for it holds NUL characters. Export the bill as CSV.")
        if self._packed_bytes_read is not None and self._letters > self._look_at:
            self._look_at = self._letters + _FOLD_LOOKED_AT_EVERY
            if self._letters > _MOST_UNPACKED_FOLD * self._packed_bytes_read():
                raise BillRefused(
                    f"The file unpacks to more than {_MOST_UNPACKED_FOLD} times its size, which no bill does."
                    " Export it again, or upload it unpacked."
                )
        return line


@contextmanager
def open_bill(path: Path) -> Iterator[BillText]:
    """The file's lines, unpacked if it is packed."""
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("rb"))
        packed = raw.peek(2)[:2] == b"\x1f\x8b"
        unpacked = stack.enter_context(gzip.open(raw, "rb")) if packed else raw
        text = stack.enter_context(io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline=""))
        yield BillText(text, raw.tell if packed else None)
