"""What is said of a paper's claims, word by word."""

from __future__ import annotations

import pytest

from webapp.comparing.papers.verdicts import interval_words


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((0.352, 0.3518, 0.3523), "−65 %, alike on all seeds"),
        ((0.998, 0.99, 1.004), "0 % [−1 %, 0 %]"),
        ((1.5, 1.25, 1.75), "+50 % [+25 %, +75 %]"),
    ],
)
def test_an_interval_without_width_is_not_drawn_as_one(
    interval: tuple[float, float, float], words: str
) -> None:
    found = dict(zip(("value", "low", "high"), interval, strict=True))
    assert interval_words(found, ratio=True) == words
