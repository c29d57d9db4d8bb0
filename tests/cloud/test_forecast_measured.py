"""Forecasts of jobs whose actors go by what only training can measure: the range is the policy's own, and is told."""

from typing import Any

import numpy as np
import pytest

from cloud.timing.forecast import forecast
from cloud.timing.forecasting.plan import assumed_plan, plan_of
from tests.cloud.test_forecast import HOPPER, LAMBDA, PLENTY, spec
from tests.factories import round_finished
from training.engine.reports import RoundReport
from training.rl.figures import CurvatureReport
from training.scaling.boosting import Boosting
from training.scaling.plan import Bounds
from training.spec import RETURN

NITRO: dict[str, Any] = {"kind": "boosting", "actors_min": 8, "actors_max": 64}


def _history(rng: np.random.Generator, rounds: int) -> list[RoundReport]:
    found = []
    for k in range(1, rounds + 1):
        ratio = float(np.exp(rng.normal()))
        curvature = CurvatureReport(largest=ratio, smallest=-1.0, ratio=ratio, products=8, samples=64)
        found.append(round_finished(k).report.model_copy(update={"curvature": curvature}))
    return found


@pytest.mark.parametrize("rule", ["paper", "released"])
def test_no_decision_lies_outside_of_what_was_said_beforehand(rule: Any) -> None:
    policy, rng = Boosting(rule=rule), np.random.default_rng(0)
    assert policy.actor_range(1) == (16, 16)
    for round_no in range(2, 70):
        least, most = policy.actor_range(round_no)
        decided = policy.decide(_history(rng, round_no - 1)[-64:], Bounds(), round_no, RETURN).actors
        assert least <= decided <= most, round_no
    assert policy.actor_range(60)[1] == (8 if rule == "paper" else 64)


def test_nitros_forecast_says_what_it_takes_for_granted_and_shrinks_as_nitro_does() -> None:
    training = spec(**HOPPER, scaling=NITRO, stop={"env_steps": None, "rounds": 50})
    found = forecast(training, LAMBDA, PLENTY)
    reported = [one for one in found.assumptions if "curvature" in one]
    assert len(reported) == 1
    assert "from 8 to 64" in reported[0]
    flat = {"kind": "noise_scale", "actors_min": 8, "actors_max": 64}
    wider = forecast(training.model_copy(update={"scaling": spec(scaling=flat).scaling}), LAMBDA, PLENTY)
    assert found.steps.p90 < 0.7 * wider.steps.p90
    assert not any("fewer and fewer" in one for one in wider.assumptions)


def test_what_is_supposed_lies_where_runs_with_random_curvature_do() -> None:
    """The oracle is the policy itself over many histories: the middle case has about as many actors in all."""
    training = spec(**HOPPER, scaling=NITRO, stop={"env_steps": None, "rounds": 50})
    middle = assumed_plan(training, 50, 0.5)
    rounds = np.diff(np.append(middle.begins, 50))
    rng, totals = np.random.default_rng(1), []
    for seed in range(20):
        history = _history(rng, 50)
        totals.append(
            sum(training.scaling.decide(history[:k][-64:], Bounds(), seed, RETURN).actors for k in range(50))
        )
    assert (middle.actors * rounds).sum() == pytest.approx(np.mean(totals), rel=0.3)


def test_a_plan_that_can_be_known_is_not_supposed() -> None:
    training = spec(**HOPPER, scaling={"kind": "chance"}, stop={"env_steps": None, "rounds": 50})
    assert len(plan_of(training, 50).actors) > 20
