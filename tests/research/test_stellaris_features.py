"""Stellaris' feature table: a box is ticked only by a run that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from research.calculations.stellaris_features import NOT_SHOWN, SHOWN, STELLARIS, ShortRun, compute, shown_by
from tests.factories import round_finished
from training.engine.reports import GradientsReport, RoundReport

_ZEROS: dict[str, Any] = dict.fromkeys(
    ("staleness_least", "staleness_mean", "queue_mean", "queue_most", "held_share", "actors_busy"), 0
)


def report(actors: int, staleness_most: float | None = None) -> RoundReport:
    gradients = None
    if staleness_most is not None:
        gradients = GradientsReport(
            **_ZEROS,
            learners=2,
            gradients=4,
            steps=3,
            released={},
            staleness_most=staleness_most,
            bound=None,
            learners_busy=1.0,
            starved_share=0.0,
            learning_s=1.0,
            step_length=1.0,
        )
    return round_finished(1).report.model_copy(update={"actors": actors, "gradients": gradients})


def test_each_box_is_ticked_by_what_shows_it_and_by_nothing_else() -> None:
    fixed = ShortRun([report(2), report(2)], whole=True, gradients_picodollars=0)
    assert shown_by([fixed, fixed]) == (NOT_SHOWN, NOT_SHOWN, SHOWN, NOT_SHOWN)
    cut_short = fixed._replace(whole=False)
    assert shown_by([fixed, cut_short])[2] == NOT_SHOWN
    ramp = fixed._replace(rounds=[report(2), report(3)])
    assert shown_by([ramp, fixed])[1] == SHOWN
    # Two runs with different numbers of actors are no scaling.
    assert shown_by([fixed, fixed._replace(rounds=[report(3)])])[1] == NOT_SHOWN
    assert shown_by([fixed._replace(gradients_picodollars=1), fixed])[3] == SHOWN
    for staleness, box in ((0.0, NOT_SHOWN), (1.0, SHOWN)):
        assert shown_by([fixed._replace(rounds=[report(2, staleness)]), fixed])[0] == box


@pytest.mark.slow
def test_runs_show_that_only_many_learners_have_all_four() -> None:
    (table,), (statement,) = compute(quick=True)
    assert statement.verdict == "holds"
    assert [row[0] for row in table.rows if set(row[1:]) == {SHOWN}] == [STELLARIS]
