"""Texts of users in Markdown: they stand there as they are, and are never read as markup."""

from __future__ import annotations

import re

_MARKUP = re.compile(r"([\\`*\[\]|])")
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of what follows."""


def literal(text: str) -> str:
    """Return the text for one line of Markdown, also in a cell of a table: no link, picture, code or tag begins in
    it.
    """
    line = _INVISIBLE.sub("", " ".join(text.split()))
    return _MARKUP.sub(r"\\\1", line).replace("<", "&lt;")
