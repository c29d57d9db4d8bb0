"""What became of one attempt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """Sent, or why not, in words for people; `again` when another attempt may fare better."""

    sent: bool
    words: str = ""
    again: bool = False
    status: int | None = None
    retry_after_s: float | None = None


def refused(words: str, status: int | None = None) -> Outcome:
    """Trying again would meet the same."""
    return Outcome(False, words, status=status)


def later(words: str, status: int | None = None, retry_after_s: float | None = None) -> Outcome:
    """It may be better in a while."""
    return Outcome(False, words, True, status, retry_after_s)
