"""Forecasts against whole jobs that were simulated somewhere in the ranges of what is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import Forecast, configuration_of, first_round_picodollars, forecast
from cloud.timing.forecasting.configuration import Configuration
from tests.cloud.test_forecast import HOPPER, PLENTY, fixed, spec
from tests.cloud.unlearned import really
from training.rl.environments.expectations import expectation_of

STELLARIS: dict[str, Any] = {"kind": "staleness_aware", "learners": 4, "trajectories_per_gradient": 4}
IN_WAVES: dict[str, Any] = {"scaling": fixed(16), "stop": {"env_steps": 60_000}, "loop": STELLARIS}
JOBS_WITH_LEARNERS_THAT_ARE_FUNCTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (IN_WAVES, {}),
    ({**IN_WAVES, "loop": STELLARIS | {"where": "learner"}}, {"learner_lanes": 4}),
    ({**IN_WAVES, "loop": STELLARIS | {"order": "launch"}}, {"profile": "one-machine"}),
    (
        {**IN_WAVES, "loop": STELLARIS | {"actors_wait": False}, "algorithm": {"kind": "impala"}},
        {"profile": "stellaris-cluster"},
    ),
    ({**IN_WAVES, "loop": STELLARIS | {"truncation": "off"}, "algorithm": {"kind": "impact"}}, {}),
    ({**IN_WAVES, "loop": STELLARIS | {"fit_learners": True}}, {}),
    (
        {
            **IN_WAVES,
            "loop": STELLARIS | {"fit_learners": True, "actors_wait": False},
            "algorithm": {"kind": "impala"},
            "stop": {"env_steps": 300_000},
        },
        {},
    ),
]

A_JOB_OF_EACH_KIND: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"scaling": fixed(8), "stop": {"env_steps": 200_000}}, {}),
    ({"scaling": fixed(64), "stop": {"env_steps": 400_000}, "loop": {"kind": "pipelined"}}, {}),
    ({"scaling": fixed(16), "stop": {"env_steps": 300_000}, "loop": {"kind": "asynchronous"}}, {}),
    (
        {
            "environment": {"id": "CartPole-v1"},
            "scaling": fixed(8),
            "rollout": {"steps_per_call": 32},
            "stop": {"env_steps": 50_000},
        },
        {},
    ),
    (
        {
            "scaling": {"kind": "ramp", "actors_first": 4, "actors_last": 40, "over_rounds": 40},
            "stop": {"env_steps": 400_000},
        },
        {},
    ),
    (
        {"environment": {"id": "HalfCheetah-v5"}, "scaling": fixed(32), "stop": {"env_steps": 300_000}},
        {"profile": "aci-today"},
    ),
    (
        {"scaling": fixed(16), "stop": {"env_steps": 200_000}, "loop": {"kind": "asynchronous"}},
        {"profile": "aci-today"},
    ),
    (
        {"environment": {"id": "Walker2d-v5"}, "scaling": fixed(16), "stop": {"env_steps": 200_000}},
        {"profile": "one-machine"},
    ),
    (
        {
            "environment": {"id": "Humanoid-v5"},
            "scaling": fixed(128),
            "stop": {"env_steps": None, "rounds": 8},
        },
        {"learner": "function"},
    ),
    (
        {
            "algorithm": {"kind": "impact"},
            "scaling": fixed(24),
            "stop": {"env_steps": 200_000},
            "loop": {"kind": "asynchronous", "staleness_limit": 2, "trajectories_per_update": 6},
        },
        {"profile": "minionsrl-cluster"},
    ),
    ({"scaling": fixed(60), "stop": {"env_steps": None, "minutes": 3}}, {"provisioned": 60}),
    (
        {
            "environment": {"id": "Pendulum-v1"},
            "algorithm": {"kind": "a2c"},
            "scaling": fixed(12),
            "rollout": {"steps_per_call": 64},
            "evaluation": {"every_rounds": 3, "episodes": 20},
            "stop": {"env_steps": 80_000},
        },
        {"profile": "ray-nodes"},
    ),
]


@pytest.mark.slow
def test_most_jobs_end_where_they_were_forecast() -> None:
    """Each job runs on a cloud that is somewhere in the ranges of what we know, under a seed of its own."""
    jobs = range(len(A_JOB_OF_EACH_KIND))
    time, cost = zip(*(_beside_a_real_job(number, 100 + number, number) for number in jobs), strict=True)
    inside, errors = zip(*time, *cost, strict=True)
    assert np.mean(inside) >= 0.6
    assert np.median(errors) <= 0.2


@pytest.mark.endurance
def test_four_of_five_jobs_end_between_p10_and_p90_of_their_forecast() -> None:
    """Nothing was fitted to these forty jobs: the forecast knows neither their clouds nor their seeds."""
    ended = [_beside_a_real_job(number, 7_000 + number, 7_000 + number) for number in range(40)]
    for inside, errors in (zip(*figure, strict=True) for figure in zip(*ended, strict=True)):
        assert 0.7 <= np.mean(inside) <= 0.9
        assert np.median(errors) <= 0.2


def _beside_a_real_job(number: int, seed: int, cloud_seed: int) -> list[tuple[bool, float]]:
    """Return for time and cost whether the job ended inside its forecast, and how far from the middle."""
    changes, bought = A_JOB_OF_EACH_KIND[number % len(A_JOB_OF_EACH_KIND)]
    training = spec(**HOPPER | changes)
    options = SimulatedOptions(seed=seed, **bought)
    found = forecast(training, options, PLENTY)
    rng = np.random.default_rng(cloud_seed)
    scene = configuration_of(training, options)
    cloud = scene.at({name: float(rng.triangular(0, 0.5, 1)) for name in scene.uncertain()})
    expected = expectation_of(training.environment.id)
    steps = round(rng.triangular(expected.shortest, expected.usual, expected.longest + 1e-9))
    ended = really(training, options, cloud.profile, cloud.stack, episode_steps=lambda _: steps)
    both = ((found.minutes, ended.minutes), (found.dollars, ended.usd))
    return [(bool(band.p10 <= true <= band.p90), abs(band.p50 / true - 1.0)) for band, true in both]


@pytest.mark.slow
def test_jobs_whose_learners_are_functions_end_where_they_were_forecast() -> None:
    """Time and bill are inside the interval in nine of ten."""
    inside = []
    for number, (changes, bought) in enumerate(JOBS_WITH_LEARNERS_THAT_ARE_FUNCTIONS):
        training = spec(**HOPPER | changes)
        options = SimulatedOptions(seed=100 + number, **bought)
        found = forecast(training, options, PLENTY)
        scene = configuration_of(training, options)
        ended = really(training, options, scene.profile, scene.stack, episode_steps=lambda _: 300)
        for band, true in ((found.minutes, ended.minutes), (found.dollars, ended.usd)):
            inside.append(band.p10 <= true <= band.p90)
        if options.profile == "lambda" and training.loop.where == "actor":
            assert found.parts["gradients"].p50 > 0
    assert sum(inside) >= 0.9 * len(inside)


def test_a_job_whose_learners_are_functions_is_forecast_with_their_bill() -> None:
    training = spec(**HOPPER | IN_WAVES | {"stop": {"env_steps": 20_000}})
    options = SimulatedOptions(seed=1)
    found = forecast(training, options, PLENTY)
    scene = configuration_of(training, options)
    ended = really(training, options, scene.profile, scene.stack, episode_steps=lambda _: 300)
    assert found.minutes.p10 <= ended.minutes <= found.minutes.p90
    assert found.dollars.p10 <= ended.usd <= found.dollars.p90
    assert found.parts["gradients"].p50 > 0
    assert first_round_picodollars(training, options) > 0


@pytest.mark.slow
def test_without_uncertainty_it_is_the_run_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is chance: rare failures and stragglers in rounds that were not tried."""
    monkeypatch.setattr(Configuration, "uncertain", lambda self: {})
    errors = []
    for number, (changes, bought) in enumerate(A_JOB_OF_EACH_KIND):
        training = spec(**HOPPER | changes)
        options = SimulatedOptions(seed=number, **bought)
        expected = expectation_of(training.environment.id)
        if expected.shortest < expected.longest:
            # Only the length of evaluated episodes is still unknown.
            training = training.model_copy(
                update={
                    "evaluation": training.evaluation.model_copy(
                        update={"every_rounds": 100_000, "episodes": 1}
                    )
                }
            )
        found: Forecast = forecast(training, options, PLENTY)
        scene = configuration_of(training, options)
        ended = really(
            training, options, scene.profile, scene.stack, episode_steps=lambda _, steps=expected.usual: steps
        )
        errors += [abs(found.minutes.p50 / ended.minutes - 1.0), abs(found.dollars.p50 / ended.usd - 1.0)]
    assert np.median(errors) < 0.02
    assert max(errors) < 0.1
