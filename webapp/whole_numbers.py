"""Whole numbers in what people send. Python refuses to read thousands of digits, and a database to store twenty."""

from __future__ import annotations

_LARGEST = 2**63 - 1
_MOST_DIGITS = 19


def read_whole(text: str, most: int = _LARGEST) -> int | None:
    """Return the whole number from 0 to `most` that the text is; None for any other text."""
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) > most:
        return None
    return int(text)
