"""A test in words: its question, its answer in one sentence, and how far it is."""

from __future__ import annotations

from typing import Any

from training.statistics.sequential import LEVEL, POWER
from webapp.comparing.abtests.models import ABTest, AbTestState
from webapp.comparing.abtests.results import PairResults
from webapp.formatting import UNKNOWN, Pill, format_score, plural

PILLS = {
    AbTestState.RUNNING: Pill("Running", "running", "play-fill"),
    AbTestState.BETTER: Pill("Better", "ok", "check-lg"),
    AbTestState.WORSE: Pill("Worse", "failed", "x-octagon-fill"),
    AbTestState.NO_DIFFERENCE: Pill("No difference found", "waiting", "dash-lg"),
    AbTestState.OUT_OF_MONEY: Pill("Budget used up", "budget", "sign-stop-fill"),
    AbTestState.FAILED: Pill("Failed", "failed", "x-octagon-fill"),
    AbTestState.STOPPED: Pill("Stopped", "waiting", "slash-circle"),
}
EFFECT_WORDS = {2.0: "Very large", 1.5: "Large", 1.0: "Medium", 0.75: "Small"}
CERTAINTY = f"Such an answer is wrong in at most {100 * LEVEL:.0f} % of all tests."


def question(test: ABTest) -> str:
    """Return the question: "Algorithm: is A2C better than PPO?"."""
    return f"{test.field_title}: is {test.new_value} better than {test.old_value}?"


def answer(test: ABTest, results: PairResults) -> str:
    """Return the answer in one sentence; while the test runs, that it is not known."""
    ended = len(results.differences)
    if test.state == AbTestState.RUNNING:
        return "Not known yet."
    if test.state in (AbTestState.BETTER, AbTestState.WORSE):
        word = "Yes" if test.state == AbTestState.BETTER else "No, it is worse"
        return f"{word}: {_shift(test, results)} over {plural(test.pairs, 'pair')} of seeds."
    if test.state == AbTestState.NO_DIFFERENCE:
        return (
            f"No difference found in {plural(test.pairs, 'pair')} of seeds; one of {effect_words(test.effect)} would"
            f" have been found with {100 * POWER:.0f} % probability."
        )
    why = (
        "the budget was used up"
        if test.state == AbTestState.OUT_OF_MONEY
        else test.get_state_display().lower()
    )
    return f"Unanswered: {why} after {plural(ended, 'pair')} of at most {test.most_pairs}."


def _shift(test: ABTest, results: PairResults) -> str:
    name, decimals = (results.score.name, results.score.decimals) if results.score else ("score", 1)
    difference = test.difference or 0.0
    direction = "higher" if difference > 0 else "lower"
    return f"with {_setting(test)} the {name} is {format_score(abs(difference), decimals)} {direction} on average"


def _setting(test: ABTest) -> str:
    return f"{test.field_title[:1].lower()}{test.field_title[1:]} {test.new_value}"


def progress(test: ABTest, results: PairResults) -> str:
    """Return how many pairs have ended and when the test looks next; empty once it has ended."""
    if test.state != AbTestState.RUNNING:
        return ""
    ended = len(results.differences)
    return f"{ended} of at most {test.most_pairs} pairs of runs have ended; the test looks after {results.next_look}."


def effect_words(effect: float) -> str:
    return f"{effect:g} standard deviation{'' if effect == 1 else 's'}"


def pair_rows(results: PairResults) -> list[dict[str, Any]]:
    """Return the pairs for the table."""
    decimals = results.score.decimals if results.score else 1
    return [
        {
            "seed": pair.seed,
            "a": pair.a,
            "b": pair.b,
            "score_a": _score(pair.score_a, decimals),
            "score_b": _score(pair.score_b, decimals),
            "difference": format_signed((pair.score_b or 0.0) - (pair.score_a or 0.0), decimals)
            if pair.difference is not None
            else UNKNOWN,
        }
        for pair in results.pairs
    ]


def _score(value: float | None, decimals: int) -> str:
    return UNKNOWN if value is None else format_score(value, decimals)


def format_signed(value: float, decimals: int) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{format_score(abs(value), decimals)}"
