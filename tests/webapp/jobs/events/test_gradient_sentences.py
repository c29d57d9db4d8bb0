"""Sentences about a round of learners that compute gradients."""

from __future__ import annotations

from typing import Any

from webapp.jobs.charts.figures import LINES
from webapp.jobs.events.event_text import gradients_sentence
from webapp.jobs.events.job_summary import learners_sentence

FOUND: dict[str, Any] = {
    "learners": 4,
    "gradients": 40,
    "steps": 26,
    "staleness_mean": 1.04,
    "bound": 1.6,
    "starved_share": 0.62,
    "dropped": {},
    "wasted_picodollars": 0,
    "queue_mean": 0.5,
}


def test_a_round_says_what_its_gradients_became() -> None:
    text = "40 gradients in 26 steps, 1.0 versions behind on average, bound 1.6."
    assert gradients_sentence(FOUND) == text
    wasted = FOUND | {"dropped": {"too_old": 2}, "wasted_picodollars": 200_000_000, "bound": None}
    assert gradients_sentence(wasted) == (
        "40 gradients in 26 steps, 1.0 versions behind on average. 2 dropped, $0.000200 wasted."
    )
    assert gradients_sentence(None) == ""


def test_a_round_says_which_side_limits_it() -> None:
    assert learners_sentence(FOUND).startswith("Learners waited for data 62")
    assert learners_sentence(FOUND).endswith("of the time: more than 4 would bring nothing.")
    assert learners_sentence(FOUND | {"starved_share": 0.1}).endswith("learners limit its time, not actors.")
    assert learners_sentence(None) == ""


def test_charts_read_the_figures_of_gradients_and_nothing_of_other_rounds() -> None:
    assert LINES["gradient_staleness"].read({"gradients": FOUND}) == 1.04
    assert LINES["dropped_gradients"].read({"gradients": FOUND | {"dropped": {"numbers": 3}}}) == 3
    for name in ("gradient_staleness", "dropped_gradients", "ratio_mean", "staleness_bound"):
        assert LINES[name].read({}) is None
