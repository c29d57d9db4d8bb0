"""That an arm is not worse than another: by a declared margin, and as one of a family of claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from research.claims import Higher, NotWorse
from research.experiment import Arm, Cell, Experiment, ExperimentSetting
from research.reports.cost_report import cost_verdicts
from research.reports.judging import part_sentence, undecided
from research.reports.outcomes import RunOutcome, Summary
from tests.research.tiny_experiment import CART


def test_that_it_is_not_worse_is_one_of_the_family_of_claims() -> None:
    """One of ten that are asked of the same seeds: what it says alone may be chance. Its p value is Student's, of how
    far the ratio is from the margin and not from 1; the test here is scipy's, of logarithms.
    """
    ours, theirs = [96.0, 99.0, 90.0, 104.0, 101.0], [100.0, 106.0, 98.0, 107.0, 110.0]

    def told(arm: str, returns: list[float]) -> Summary:
        def run(seed: int, score: float) -> RunOutcome:
            rows = [
                {"kind": "begin", "made_with": {}},
                {"kind": "final", "returns": [score]},
                {"kind": "end"},
            ]
            return RunOutcome(Cell(arm, CART, seed), rows)

        runs = tuple(run(seed, score) for seed, score in enumerate(returns))
        return Summary(arm, CART, len(returns), runs)

    arms = (Arm(name="ours", title="Ours"), Arm(name="theirs", title="Theirs"))
    not_worse = NotWorse(arm="ours", against="theirs", environment=CART, margin=0.9)
    higher = Higher(arm="ours", against=("theirs",), environments=(CART,))
    summaries = [told("ours", ours), told("theirs", theirs)]
    base = {"title": "T", "question": "Q?", "oracle": "O", "can_claim": "C", "base": {}, "arms": arms}
    settings = (ExperimentSetting(environment=CART, seeds=tuple(range(5))),)

    def judged(claims: tuple[Any, ...], told_of: list[Summary] = summaries) -> list[Any]:
        return cost_verdicts(Experiment(**base, settings=settings, claims=claims), told_of, {}, draws=0)

    one_of_five = replace(summaries[1], outcomes=summaries[1].outcomes[:4])
    (waits,) = judged((not_worse,), [summaries[0], one_of_five])
    assert waits.verdict == "open"
    assert waits.reason.startswith(part_sentence(4, 5))
    # An arm that more seeds were declared for is compared by those of the other.
    more = told("ours", [*ours, 1.0, 2.0])
    (alone,) = judged((not_worse,))
    (longer,) = judged((not_worse,), [more, summaries[1]])
    assert longer.figures["interval"] == alone.figures["interval"]
    assert alone.verdict == "holds"
    assert alone.label == "learned"
    assert alone.asked["margin"] == 0.9
    p_value = alone.figures["p_value"]
    logs = np.log(np.array(ours) / (0.9 * np.array(theirs)))
    assert p_value == pytest.approx(stats.ttest_1samp(logs, 0.0).pvalue, rel=0.5)
    primary, *_, last = judged((*(higher.model_copy() for _ in range(10)), not_worse))
    assert "p_holm" not in primary.figures
    assert last.figures["family"] == 10
    # Holm by hand: the other nine, all with one smaller p value, come first, and no later one may be below them.
    assert primary.figures["p_value"] < p_value
    assert last.figures["p_holm"] == pytest.approx(max(10 * primary.figures["p_value"], p_value))
    assert last.verdict == undecided(5)
    assert "among 10 claims" in last.reason
