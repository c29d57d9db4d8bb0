"""Forecasts against hand-worked cases, against whole jobs that were simulated, and against the clock."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import price_line
from cloud.platforms.local import LocalOptions
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import NoForecast, configuration_of, first_round_picodollars, forecast, forecast_in
from cloud.timing.forecasting.configuration import Configuration
from cloud.timing.forecasting.plan import plan_of
from cloud.timing.forecasting.workload import Workload, spaces_of
from cloud.timing.numbers.quantity import Quantity
from tests.cloud import clouds
from tests.cloud.unlearned import really
from tests.work import calls_in
from training.calls.rollout import RolloutRequest
from training.engine.messages import BlobRef, Call
from training.engine.reports import RoundReport
from training.functions.body import WarmCache
from training.functions.run import execute
from training.scaling.fixed import Fixed
from training.scaling.plan import Bounds, Plan
from training.spec import TrainingSpec
from training.tasks.score import Score

PLENTY = 10**15
LAMBDA = SimulatedOptions()
HOPPER: dict[str, Any] = {"environment": {"id": "Hopper-v5"}}


def spec(**changes: Any) -> TrainingSpec:
    return TrainingSpec.model_validate(changes)


def fixed(actors: int) -> dict[str, Any]:
    return {"kind": "fixed", "actors": actors}


def certain(model: Any) -> Any:
    """The same with numbers that are known for sure."""
    if isinstance(model, Quantity):
        return model.model_copy(update={"low": model.value, "high": model.value})
    if isinstance(model, BaseModel):
        names = type(model).model_fields
        return model.model_copy(update={name: certain(getattr(model, name)) for name in names})
    return {name: certain(one) for name, one in model.items()} if isinstance(model, dict) else model


def round_numbers(
    memory_mb: int = 1000, *, options: SimulatedOptions = LAMBDA, **changes: float
) -> Configuration:
    profile = clouds.profile(actor_mbit_per_s=8e9, coordinator_mbit_per_s=8e9, **changes)
    tariff = options.tariff(PriceBook.load(), memory_mb)
    return Configuration(certain(profile), certain(clouds.stack(**changes)), options.setting(), tariff)


SMALL = {
    "environment": {"id": "Pendulum-v1"},
    "algorithm": {"kind": "ppo", "epochs": 1, "minibatch_size": 1000},
    "scaling": fixed(2),
    "rollout": {"steps_per_call": 10, "memory_mb": 1000},
    "evaluation": {"every_rounds": 5, "episodes": 1},
    "stop": {"env_steps": None, "rounds": 10},
}


def exactly(found: Any) -> float:
    assert found.p10 == pytest.approx(found.p50, rel=1e-9)
    assert found.p90 == pytest.approx(found.p50, rel=1e-9)
    return float(found.p50)


def test_a_synchronous_job_to_the_nanosecond() -> None:
    """The server is there after 60 s, the first update takes 0.1 s. Then a round is 0.5 s of hand-over, 10 steps of
    0.1 s, 0.25 s of round trip and 0.1 s of update; each evaluation is 200 steps, its hand-over and its round trip.
    """
    found = forecast_in(round_numbers(), spec(**SMALL), PLENTY)
    assert exactly(found.minutes) * 60 == pytest.approx(60.1 + 9 * 1.85 + 2 * 20.75)
    assert exactly(found.rounds) == 10
    assert exactly(found.steps) == 200
    assert exactly(found.calls) == 10 * 3 + 2
    assert exactly(found.cold_starts) == 2
    assert found.ends_by == "rounds"


def test_its_bill_by_part() -> None:
    found = forecast_in(round_numbers(), spec(**SMALL), PLENTY)
    book = PriceBook.load()
    duration = book.row("lambda.duration.x86", "us-east-1")
    per_request = book.row("lambda.request", "us-east-1")
    rollouts_ms, evaluations_ms = 2 * 3000 + 18 * 1500, 2 * 20_500

    def usd(row: Any, quantity: int, per: int = 1) -> float:
        return price_line(row, quantity, per).picodollars / 1e12

    assert exactly(found.parts["actors"]) == pytest.approx(usd(duration, rollouts_ms * 1000, 1000 * 1024))
    assert exactly(found.parts["evaluation"]) == pytest.approx(
        usd(duration, evaluations_ms * 1000, 1000 * 1024)
    )
    assert exactly(found.parts["requests"]) == pytest.approx(usd(per_request, 22))
    rent = next(one for one in round_numbers().tariff.rents if one.resource == "learner")
    whole_ns = round(exactly(found.minutes) * 60 * 1e9)
    assert exactly(found.parts["learner"]) == pytest.approx(
        sum(line.picodollars for line in rent.lines(whole_ns)) / 1e12
    )
    parts = sum(band.p50 for band in found.parts.values())
    assert exactly(found.dollars) == pytest.approx(parts)


def test_pipelined_rounds_overlap() -> None:
    """The first update waits for the server beside the second sampling; later ones take 0.1 s of a round's 1.75 s."""
    found = forecast_in(round_numbers(), spec(**SMALL, loop={"kind": "pipelined"}), PLENTY)
    assert exactly(found.minutes) * 60 == pytest.approx(60.1 + 9 * 1.75 + 2 * 20.75)


def test_an_asynchronous_job_goes_at_the_pace_of_its_actors() -> None:
    """Per version each actor samples once, which takes it 1.75 s."""
    loop = {"kind": "asynchronous", "staleness_limit": 4}
    scene = round_numbers(server_start_s=0.0)
    training = spec(**SMALL | {"stop": {"env_steps": None, "rounds": 1000}, "loop": loop})
    found = forecast_in(scene, training, PLENTY)
    assert exactly(found.minutes) * 60 == pytest.approx(1000 * 1.75 + 20.75, rel=0.01)


def test_time_stops_it() -> None:
    """After 60.1 s + 4 · 1.85 s + 20.75 s and five more of 1.85 s and another evaluation it is beyond two minutes."""
    training = spec(**SMALL | {"stop": {"env_steps": None, "minutes": 2}})
    found = forecast_in(round_numbers(), training, PLENTY)
    assert found.ends_by == "minutes"
    assert exactly(found.rounds) == 11
    assert exactly(found.minutes) * 60 == pytest.approx(60.1 + 10 * 1.85 + 3 * 20.75)


def test_a_budget_caps_dollars_and_says_how_likely_it_is_met() -> None:
    training = spec(**HOPPER, stop={"env_steps": 1_000_000})
    free = forecast(training, LAMBDA, PLENTY)
    capped = forecast(training, LAMBDA, round((free.dollars.p50 + free.kept_back) * 1e12))
    assert free.budget_share == 0
    assert 0.3 < capped.budget_share < 0.7
    assert capped.dollars.p90 <= free.dollars.p50
    assert capped.whole_dollars == free.whole_dollars


def test_a_budget_ends_a_job_where_its_ledger_does() -> None:
    """Rent ahead and worst cases of calls in flight must fit too, so it ends before all is spent."""
    training = spec(
        **HOPPER, scaling=fixed(8), evaluation={"every_rounds": 20}, stop={"env_steps": 4_000_000}
    )
    budget = 4 * 10**10
    found, scene = forecast(training, LAMBDA, budget), configuration_of(training, LAMBDA)
    ended = really(
        training,
        LAMBDA,
        scene.profile,
        scene.stack,
        episode_steps=lambda _: 400,
        budget_picodollars=budget,
    )
    assert (found.ends_by, ended.reason_code) == ("budget", "budget")
    assert found.dollars.p50 == pytest.approx(ended.usd, rel=0.1)
    assert found.minutes.p50 == pytest.approx(ended.minutes, rel=0.1)


def test_a_budget_below_the_first_rounds_worst_case_begins_nothing() -> None:
    training = spec(**HOPPER, scaling=fixed(64))
    scene = configuration_of(training, LAMBDA)
    least = first_round_picodollars(training, LAMBDA)
    assert forecast(training, LAMBDA, least - 1).rounds.p90 == 0
    assert forecast(training, LAMBDA, least).rounds.p10 > 0
    ended = really(
        training,
        LAMBDA,
        scene.profile,
        scene.stack,
        episode_steps=lambda _: 400,
        budget_picodollars=least,
    )
    assert ended.rounds > 0


def test_what_only_ends_when_it_has_learned_cannot_be_told_where_nothing_is_paid() -> None:
    training = spec(stop={"env_steps": None, "target_return": 475})
    with pytest.raises(NoForecast, match="Set steps"):
        forecast(training, LocalOptions(), PLENTY)
    assert forecast(training, LAMBDA, 10**10).ends_by == "budget"


def test_calls_that_never_come_back_are_said() -> None:
    training = spec(rollout={"steps_per_call": 65_536, "deadline_s": 1.0, "memory_mb": 128})
    with pytest.raises(NoForecast, match="1 s"):
        forecast(training, LAMBDA, PLENTY)


def test_this_machine_costs_nothing_unless_it_has_a_price() -> None:
    training = spec(**HOPPER, stop={"env_steps": 200_000})
    found = forecast(training, LocalOptions(workers=2), PLENTY)
    assert found.costs_nothing
    assert not found.simulated
    assert found.minutes.p10 < found.minutes.p50 < found.minutes.p90
    rented = forecast(
        training, LocalOptions.model_validate({"workers": 2, "learner_usd_per_hour": "3"}), PLENTY
    )
    assert rented.dollars.p50 == pytest.approx(rented.minutes.p50 / 60 * 3, rel=0.01)


class ByReturn(Fixed):
    """A policy that goes by what only training can tell."""

    def decide(self, history: Any, bounds: Bounds, seed: int, score: Score) -> Plan:
        if history and history[-1].score > 3:
            return Plan(2, bounds.memory_mb, "it learns")
        return Plan(self.actors, bounds.memory_mb, "it does not")


def test_a_policy_that_reads_returns_is_given_its_whole_range() -> None:
    usual = spec(**HOPPER, scaling=fixed(64), stop={"env_steps": 500_000})
    training = usual.model_copy(update={"scaling": ByReturn(actors=64)})
    found, certainly = forecast(training, LAMBDA, PLENTY), forecast(usual, LAMBDA, PLENTY)
    assert any(
        "from 1 to 64" in sentence and "depends on score" in sentence for sentence in found.assumptions
    )
    assert found.rounds.p90 > 4 * certainly.rounds.p90
    assert found.minutes.p90 > certainly.minutes.p90


def test_a_ramp_is_asked_round_by_round() -> None:
    ramp = {"kind": "ramp", "actors_first": 4, "actors_last": 40, "over_rounds": 36}
    training = spec(**HOPPER, scaling=ramp)
    plan = plan_of(training, 500)
    history: list[RoundReport] = []
    requested = []
    for round_no in range(60):
        requested.append(training.scaling.decide(history[-64:], Bounds(), 0, training.score).actors)
        history.append(RoundReport.model_construct(round_no=round_no + 1, actors=requested[-1]))
    stretch = np.searchsorted(plan.begins, np.arange(60), side="right") - 1
    assert plan.actors[stretch].tolist() == requested


@pytest.mark.parametrize(("name", "copies"), [("CartPole-v1", 1), ("Hopper-v5", 2)])
def test_bytes_are_about_those_of_real_calls(name: str, copies: int) -> None:
    training = spec(
        environment={"id": name},
        algorithm={"kind": "ppo", "normalise_observations": True},
        rollout={"environments_per_actor": copies},
    )
    spaces, known = spaces_of(training)
    assert known
    sizes = Workload(training).sizes
    state = training.algorithm.initial_state(training.network, spaces, 1)
    weights = state.actor_weights(training.network)
    request = RolloutRequest(
        environment=training.environment, environments=copies, steps=256, slot=0, discount=0.99
    )
    ref = BlobRef(version=0, sha256="0" * 64, byte_count=len(weights))
    call = Call(
        id="a-a1",
        request=request,
        where="actor",
        round_no=1,
        seed=3,
        deadline_s=60,
        memory_mb=1024,
        weights=ref,
    )
    result = execute(call, weights, WarmCache())
    assert sizes.weights == pytest.approx(len(weights), rel=0.02)
    assert sizes.learner == pytest.approx(len(state.encode()), rel=0.02)
    assert sizes.trajectory == pytest.approx(len(result.payload), rel=0.05)
    assert sizes.state == pytest.approx(len(result.slot_state or b""), rel=0.25)
    assert (sizes.policy_macs, sizes.pictures) == (result.usage.macs, result.usage.pictures)


@pytest.mark.parametrize("loop", ["synchronous", "pipelined", "asynchronous"])
def test_a_thousand_actors_for_a_thousand_rounds_take_no_more_work_than_a_second_allows(loop: str) -> None:
    training = spec(
        **HOPPER, scaling=fixed(1000), stop={"env_steps": None, "rounds": 1000}, loop={"kind": loop}
    )
    forecast(spec(), LAMBDA, PLENTY)
    forecasts = []
    calls = calls_in(lambda: forecasts.append(forecast(training, LAMBDA, PLENTY)))
    assert calls < 5_000_000  # about 3.5 million now, in 0.8 s
    (found,) = forecasts
    assert found.steps.p50 == pytest.approx(256_000_000, rel=0.01)


def test_odd_specs_are_as_quick() -> None:
    few = {"kind": "asynchronous", "trajectories_per_update": 4096, "staleness_limit": 1000}
    ramp = {"kind": "ramp", "actors_first": 1, "actors_last": 1024, "over_rounds": 100_000}
    for changes in ({"loop": few, "scaling": fixed(1)}, {"scaling": ramp, "stop": {"env_steps": 10**11}}):
        training = spec(**HOPPER | changes)
        calls = calls_in(partial(forecast, training, LAMBDA, PLENTY))
        assert calls < 6_000_000


def test_the_same_spec_has_the_same_forecast() -> None:
    training = spec(**HOPPER)
    assert forecast(training, LAMBDA, PLENTY) == forecast(training, LAMBDA, PLENTY)


def test_assumptions_give_values_and_ranges() -> None:
    training = spec(**HOPPER, stop={"env_steps": 100_000, "target_return": 2000})
    reported = forecast(training, LAMBDA, PLENTY).assumptions
    text = " ".join(reported)
    assert "0.12 s (0.05–0.2 s)" in text
    assert "1,000 functions at once" in text
    assert "2000 is reached" in text
    assert all(sentence.endswith(".") for sentence in reported)
