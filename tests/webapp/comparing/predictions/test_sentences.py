"""What is said of a prediction when its job has ended."""

from __future__ import annotations

from webapp.comparing.predictions import text
from webapp.comparing.predictions.models import Prediction


def test_each_figure_is_said_to_be_inside_or_outside_its_band() -> None:
    row = Prediction(
        time_s=40.0,
        time_p10_s=30.0,
        time_p90_s=50.0,
        cost_picodollars=9 * 10**11,
        cost_p10_picodollars=10**11,
        cost_p90_picodollars=2 * 10**11,
        score=20.0,
        score_p10=30.0,
        score_p90=10.0,
    )
    assert text.verdict(row, "return", 1) == (
        "It came to time 40.0 s (inside its band), cost $0.900 (outside its band), return 20.0 (inside its band)."
    )
