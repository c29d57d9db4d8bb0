"""What is said of the question of an A/B test that ended without an answer."""

from __future__ import annotations

import pytest

from webapp.comparing.abtests import text
from webapp.comparing.abtests.models import ABTest, AbTestState
from webapp.comparing.abtests.results import PairResults


@pytest.mark.parametrize(
    ("state", "why"), [(AbTestState.OUT_OF_MONEY, "the budget was used up"), (AbTestState.STOPPED, "stopped")]
)
def test_a_question_without_an_answer(state: str, why: str) -> None:
    test = ABTest(state=state, most_pairs=8)
    assert text.answer(test, PairResults(8, (), None)) == f"Unanswered: {why} after 0 pairs of at most 8."
