"""What became of one attempt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """Sent, or why not, in words for people; `again` when another attempt may fare better.

    What was not even `tried` is no attempt: the channel may work well.
    """

    sent: bool
    words: str = ""
    again: bool = False
    status: int | None = None
    retry_after_s: float | None = None
    tried: bool = True


def refused(words: str, status: int | None = None) -> Outcome:
    """Trying again would meet the same."""
    return Outcome(False, words, status=status)


def later(words: str, status: int | None = None, retry_after_s: float | None = None) -> Outcome:
    """It may be better in a while."""
    return Outcome(False, words, True, status, retry_after_s)


def postponed(words: str, wait_s: float) -> Outcome:
    """No attempt was made. The delivery waits so long."""
    return Outcome(False, words, True, retry_after_s=wait_s, tried=False)
