"""The figures in a text: tests assert what a sentence reports, and not its words."""

from __future__ import annotations

import re


def figures_in(text: str) -> list[str]:
    """Return amounts, numbers and times of day in their order: "At $3.60 an hour until 12:16" has $3.60 and 12:16."""
    return re.findall(r"\$?\d+(?:[.,:]\d+)*", text)
