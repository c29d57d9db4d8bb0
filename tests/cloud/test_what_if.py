"""A running job's predicted end from its rates: what ends it, when, and for how much."""

from dataclasses import replace

import pytest

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import configuration_of
from cloud.timing.forecasting.result import Band
from cloud.timing.forecasting.what_if import (
    Ends,
    JobProgress,
    RateChange,
    change_between,
    picodollars_of,
    predict_end,
    rent_usd_a_second,
)
from training.spec import TrainingSpec

_PROGRESS = JobProgress(
    steps=10_000,
    rounds=10,
    time_s=100.0,
    spent_usd=0.10,
    seconds_a_step=0.01,
    usd_a_step=0.00001,
    steps_a_round=1_000,
    doubt=0.02,
    actors=8,
)


def _ends(**changes: float | None) -> Ends:
    return Ends(**{"steps": 40_000, "rounds": None, "minutes": None, "limit_usd": 10.0, **changes})  # type: ignore[arg-type]


def test_a_job_goes_on_at_its_rates_to_its_steps() -> None:
    found = predict_end(_PROGRESS, _ends())
    assert found is not None
    assert found.ends_by == "steps"
    assert found.steps == Band(40_000, 40_000, 40_000)
    assert found.time_s.p50 == pytest.approx(400, rel=0.01)
    assert found.usd.p50 == pytest.approx(0.40, rel=0.01)
    assert 0.8 * 400 < found.time_s.p10 < found.time_s.p50 < found.time_s.p90 < 1.2 * 400


def test_whatever_comes_first_ends_it() -> None:
    for changes, by, time_s in (
        ({"rounds": 20.0}, "rounds", 200),
        ({"minutes": 5.0}, "minutes", 300),
        ({"limit_usd": 0.2}, "budget", 200),
    ):
        found = predict_end(_PROGRESS, _ends(**changes))
        assert found is not None
        assert found.ends_by == by
        assert found.time_s.p50 == pytest.approx(time_s, rel=0.03)
        assert found.usd.p90 <= 10.0


def test_a_job_never_costs_more_than_its_limit() -> None:
    found = predict_end(_PROGRESS, _ends(limit_usd=0.2))
    assert found is not None
    assert found.usd.p90 <= 0.2


def test_without_an_end_there_is_no_prediction() -> None:
    free = replace(_PROGRESS, usd_a_step=0.0)
    assert predict_end(free, _ends(steps=None)) is None


def test_other_actors_change_rates_by_the_ratio_of_two_forecasts_and_widen_the_band() -> None:
    same, twice = (
        predict_end(_PROGRESS, _ends()),
        predict_end(_PROGRESS, _ends(), RateChange(time=0.5, cost=1.1, round_steps=2.0, doublings=1.0)),
    )
    assert same is not None
    assert twice is not None
    assert twice.time_s.p50 == pytest.approx(250, rel=0.01)
    assert twice.usd.p50 == pytest.approx(0.43, rel=0.01)
    assert (twice.time_s.p90 - 100) / (twice.time_s.p10 - 100) > (same.time_s.p90 - 100) / (
        same.time_s.p10 - 100
    )


def test_rounds_are_whole() -> None:
    found = predict_end(_PROGRESS, _ends(steps=10_500))
    assert found is not None
    assert found.steps.p50 == 11_000


def test_the_ratio_of_forecasts_is_a_step() -> None:
    class _Forecast:
        def __init__(self, minutes: float, usd: float, rounds: float) -> None:
            self.minutes, self.whole_dollars = Band(0, minutes, 0), Band(0, usd, 0)
            self.steps, self.rounds, self.kept_back = Band(0, 1_000, 0), Band(0, rounds, 0), 0.01

    training = TrainingSpec()
    functions = configuration_of(training, SimulatedOptions(learner="function"))
    found = change_between(functions, training, _Forecast(10, 1, 100), _Forecast(6, 1.2, 50), 8, 16)  # type: ignore[arg-type]
    assert (found.time, found.cost, found.round_steps) == pytest.approx((0.6, 1.2, 2.0))
    assert found.doublings == pytest.approx(1.0)
    assert found.start_s > 0, "new functions start cold"
    assert found.start_usd > 0
    assert found.rent_usd_a_second == 0
    fewer = change_between(functions, training, _Forecast(6, 1.2, 50), _Forecast(10, 1, 100), 16, 8)  # type: ignore[arg-type]
    assert fewer.start_s == fewer.start_usd == 0


def test_rent_is_that_of_machines_that_stand() -> None:
    server = configuration_of(TrainingSpec(), SimulatedOptions(learner="server"))
    assert rent_usd_a_second(server, 8) > 0


def test_evaluations_to_come_take_their_time() -> None:
    seen = replace(_PROGRESS, evaluation_s=10.0, evaluation_usd=0.01)
    found = predict_end(seen, replace(_ends(), evaluated_every=10))
    assert found is not None
    assert found.time_s.p50 == pytest.approx(400 + 3 * 12, rel=0.02)
    assert found.usd.p50 == pytest.approx(0.43, rel=0.02)
    unseen = predict_end(_PROGRESS, replace(_ends(), evaluated_every=10))
    assert unseen is not None
    assert unseen.time_s.p90 - unseen.time_s.p10 > found.time_s.p90 - found.time_s.p10 - 20


def test_bands_are_stored_in_whole_picodollars() -> None:
    assert picodollars_of(Band(0.1, 0.2, 0.3)) == (10**11, 2 * 10**11, 3 * 10**11)
