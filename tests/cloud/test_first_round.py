"""A budget of exactly what the first round may come to at worst: the round ends, whatever the cloud does meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cloud.platforms.hosts import HostsOptions
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import configuration_of, first_round_picodollars, forecast
from cloud.timing.forecasting.first_round import first_round
from tests.cloud.unlearned import Ended, really
from tests.work import repeated
from training.engine.seeds import derive
from training.scaling.plan import Bounds
from training.spec import TrainingSpec

A_SLICE = (680_000_000_000 + 17_920_000_000_000 // 720) // 60
"""A minute of the learner's machine with its address and disk, in picodollars, but for rounding."""


def spec(**changes: Any) -> TrainingSpec:
    return TrainingSpec.model_validate({"stop": {"env_steps": None, "rounds": 1}, **changes})


def fixed(actors: int) -> dict[str, Any]:
    return {"kind": "fixed", "actors": actors}


def launched(training: TrainingSpec, options: SimulatedOptions, budget: int) -> Ended:
    scene = configuration_of(training, options)
    return really(
        training,
        options,
        scene.profile,
        scene.stack,
        episode_steps=lambda _: 50,
        budget_picodollars=budget,
    )


def test_rent_that_falls_due_in_the_first_round_counts() -> None:
    """The learner takes a minute to be ready, so its second minute falls due before the first round is over."""
    training = spec(
        environment={"id": "CartPole-v1"}, scaling=fixed(4), stop={"env_steps": None, "rounds": 6}
    )
    options = SimulatedOptions()
    found = first_round(configuration_of(training, options), training, 4)
    assert found.longest_s > 60
    assert found.rent == pytest.approx(2 * A_SLICE, abs=2)
    assert first_round_picodollars(training, options) == found.picodollars
    assert launched(training, options, found.picodollars).rounds >= 1


def test_a_learner_that_is_a_function_must_fit_beside_what_the_actors_cost() -> None:
    training = spec(environment={"id": "CartPole-v1"}, scaling=fixed(4))
    options = SimulatedOptions(learner="function")
    assert launched(training, options, first_round_picodollars(training, options)).rounds == 1


@pytest.mark.parametrize("kind", ["pipelined", "asynchronous"])
def test_loops_that_sample_beside_the_first_update_pay_for_that_too(kind: str) -> None:
    training = spec(
        environment={"id": "Humanoid-v5"},
        scaling=fixed(4),
        loop={"kind": kind},
        rollout={"steps_per_call": 2048, "deadline_s": 30, "memory_mb": 1024},
    )
    for options in (SimulatedOptions(), SimulatedOptions(learner="function")):
        assert launched(training, options, first_round_picodollars(training, options)).rounds == 1


def test_calls_that_hardly_end_before_their_deadline_are_paid_until_one_in_so_many_does() -> None:
    """A round of ten minutes, as most fragments are cut off after two seconds and sampled again."""
    training = spec(
        environment={"id": "Hopper-v5"},
        scaling=fixed(16),
        loop={"kind": "asynchronous", "staleness_limit": 1},
        rollout={"steps_per_call": 1024, "memory_mb": 1024, "deadline_s": 2.0, "attempts": 3},
    )
    options = SimulatedOptions(stack="paper-stack", seed=1)
    found = first_round(configuration_of(training, options), training, 16)
    ended = launched(training, options, found.picodollars)
    assert ended.rounds == 1
    assert 600 < ended.minutes * 60 < found.longest_s


def test_the_forecast_and_the_launch_ask_for_the_same() -> None:
    ramp = {"kind": "ramp", "actors_first": 2, "actors_last": 40, "over_rounds": 40}
    training = spec(environment={"id": "CartPole-v1"}, scaling=ramp, stop={"env_steps": 100_000})
    least = first_round_picodollars(training, SimulatedOptions())
    enough, too_little = (forecast(training, SimulatedOptions(), budget) for budget in (least, least - 1))
    assert round(enough.least_budget * 10**12) == round(too_little.least_budget * 10**12) == least
    assert enough.rounds.p10 >= 1
    assert too_little.rounds.p90 == 0


def test_machines_of_ones_own_are_paid_until_every_deadline_is_over() -> None:
    """It is not known what calls take there: three attempts of a minute each, before the learner has even begun."""
    training = spec(scaling=fixed(2), rollout={"deadline_s": 60, "attempts": 3})
    options = HostsOptions.model_validate({"machines": 2, "machine_usd_per_hour": "6"})
    found = first_round(configuration_of(training, options), training, 2)
    assert found.longest_s > 3 * 60
    assert found.rent >= 4 * 2 * 10**11


ENVIRONMENTS = ["CartPole-v1", "Pendulum-v1", "Hopper-v5", "Humanoid-v5", "Swimmer-v5"]
MACHINES = ["aci-paper", "aci-today", "one-machine-spot", "minionsrl-cluster", "nitro-cluster", "ray-nodes"]
LOOPS = st.one_of(
    st.just({"kind": "synchronous"}),
    st.just({"kind": "pipelined"}),
    st.builds(
        lambda limit, number: {
            "kind": "asynchronous",
            "staleness_limit": limit,
            "trajectories_per_update": number,
        },
        st.integers(1, 6),
        st.one_of(st.none(), st.integers(1, 40)),
    ),
)
ROLLOUTS = st.fixed_dictionaries(
    {
        "steps_per_call": st.sampled_from([1, 64, 256, 1024]),
        "environments_per_actor": st.sampled_from([1, 1, 4]),
        "memory_mb": st.sampled_from([128, 1024, 1769, 8192]),
        "deadline_s": st.sampled_from([2.0, 10.0, 60.0, 300.0]),
        "attempts": st.integers(1, 4),
    }
)
CLOUDS = st.one_of(
    st.builds(
        SimulatedOptions,
        learner=st.sampled_from(["server", "function"]),
        provisioned=st.sampled_from([0, 0, 3]),
        cache_sku=st.sampled_from([None, "c5.4xlarge"]),
        stack=st.sampled_from(["starling-stack", "paper-stack"]),
        seed=st.integers(0, 10_000),
    ),
    st.builds(
        SimulatedOptions,
        profile=st.sampled_from(MACHINES),
        learner=st.sampled_from(["server", "function"]),
        seed=st.integers(0, 10_000),
    ),
)
ACTORS = st.sampled_from([1, 2, 4, 7, 16])


def _holds(training: TrainingSpec, options: SimulatedOptions) -> None:
    least = first_round_picodollars(training, options)
    ended = launched(training, options, least)
    # Calls that never come back within their deadline end a job whatever money there is.
    assume(ended.rounds or launched(training, options, 10**15).rounds)
    assert ended.rounds == 1, ended


@given(st.sampled_from(ENVIRONMENTS), ACTORS, LOOPS, ROLLOUTS, CLOUDS)
def _is_enough(environment: str, actors: int, loop: Any, rollout: Any, options: SimulatedOptions) -> None:
    _holds(spec(environment={"id": environment}, scaling=fixed(actors), loop=loop, rollout=rollout), options)


def test_the_least_budget_is_enough_for_the_first_round() -> None:
    settings(max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))(_is_enough)()


@repeated(600, endurance=3_000)
def test_the_least_budget_is_enough_for_the_first_round_however_it_is_drawn(times: int) -> None:
    settings(max_examples=times, suppress_health_check=list(HealthCheck))(_is_enough)()


def test_the_first_decision_is_asked_of_the_scaling_policy() -> None:
    training = spec(scaling={"kind": "ramp", "actors_first": 3, "actors_last": 30, "over_rounds": 9})
    options = SimulatedOptions()
    first = training.scaling.decide((), Bounds(), derive(training.seed, "scaling", 1), training.score).actors
    assert first_round_picodollars(training, options) == first_round_picodollars(training, options, first)
    assert first_round_picodollars(training, options) < first_round_picodollars(training, options, 30)
