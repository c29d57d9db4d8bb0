"""A profile of an account from its calls: samples whose numbers are known give those numbers back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import pytest

from cloud.money.billing.work import CallRecord
from cloud.timing.calibration.account import ENVIRONMENT, CallSample
from cloud.timing.calibration.account_profile import CalibratedAccount, account_profile, billed_beside_s
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Functions
from cloud.timing.simulation.draws import Draws
from cloud.timing.simulation.speed import Speeds
from training.engine.reports import Usage

BASE, STACK = profiles.load("lambda"), stacks.load("starling-stack")
ACCOUNT = CalibratedAccount("eu-central-1", 64, emulated=False)
TODAY = date(2026, 11, 21)
CORE, ROUND_TRIP_S, MBIT_PER_S, COLD_S = 0.5, 0.02, 400.0, 0.3
FRESH_S = (STACK.import_s.value + STACK.first_environment_s.value) / CORE


def _sample(memory_mb: int, steps: int, *, cold: bool = False, run_factor: float = 1.0) -> CallSample:
    """A call in an account whose numbers are those above."""
    ratio = BASE.core_ratio.model_copy(update={"value": CORE, "low": CORE, "high": CORE})
    work = CallRecord(
        id=f"c{memory_mb}-{steps}",
        name="c",
        kind="rollout",
        where="actor",
        stepped=ENVIRONMENT.id,
        steps=steps,
        inferences=steps,
        macs=50_000,
        bytes_in=100_000,
        bytes_out=1_500 * steps,
        memory_mb=memory_mb,
    )
    speeds = Speeds(BASE.model_copy(update={"core_ratio": ratio}), STACK)
    run_s = speeds.run_ns(work, Draws(0.0, 0.0, 1.0, 1.0, 1.0)) / 1e9 * run_factor
    startup_s = COLD_S + FRESH_S if cold else 0.0
    usage = Usage(
        cold_start=cold,
        startup_s=startup_s,
        run_s=run_s,
        transfer_s=ROUND_TRIP_S + (work.bytes_in + work.bytes_out) * 8e-6 / MBIT_PER_S,
        billed_s=run_s + startup_s,
        memory_mb=memory_mb,
        steps=steps,
    )
    return CallSample(work, usage)


def measured_samples() -> list[CallSample]:
    found = []
    for size in (1024, 1769, 3008):
        found += [_sample(size, 64, cold=True) for _ in range(4)]
        found += [_sample(size, 64) for _ in range(6)]
        found += [_sample(size, 1536) for _ in range(4)]
    return found


def _profile(samples: Sequence[CallSample]) -> tuple[float, ...]:
    found = account_profile(samples, ACCOUNT, BASE, STACK, TODAY)
    assert isinstance(found.actors, Functions)
    return (
        found.core_ratio.value,
        found.actors.cold_s.value,
        found.network.round_trip_s.value,
        found.network.actor_mbit_per_s.value,
    )


def test_what_calls_are_made_of_is_found_again() -> None:
    assert _profile(measured_samples()) == pytest.approx((CORE, COLD_S, ROUND_TRIP_S, MBIT_PER_S), rel=1e-3)


def test_all_other_numbers_stay_and_say_where_they_are_from() -> None:
    found = account_profile(measured_samples(), ACCOUNT, BASE, STACK, TODAY)
    assert found.title == "AWS Lambda, measured on 2026-11-21"
    assert found.region == "eu-central-1"
    assert isinstance(found.actors, Functions)
    assert found.actors.concurrent.value == 64
    assert found.chance.failure_share == BASE.chance.failure_share
    assert found.learner == BASE.learner
    assert found.actors.cold_s.kind == found.core_ratio.kind == "measured"
    assert "; 42 calls in" in found.core_ratio.source
    assert "eu-central-1, 21 November 2026" in found.core_ratio.source


def test_one_that_was_disturbed_changes_little() -> None:
    samples = measured_samples()
    disturbed = samples.index(next(one for one in samples if one.work.steps == 1536))
    samples[disturbed] = _sample(1024, 1536, run_factor=5.0)
    core, *_ = _profile(samples)
    assert core == pytest.approx(CORE, rel=0.02)


def test_a_spread_is_reported_as_one() -> None:
    samples = measured_samples()
    for at, one in enumerate(samples):
        if not one.cold:
            slower = one.usage.run_s * (1.2 if at % 2 else 1.0)
            samples[at] = replace(one, usage=one.usage.model_copy(update={"run_s": slower}))
    found = account_profile(samples, ACCOUNT, BASE, STACK, TODAY)
    # Half of them 1.2 times the other half: the middle half spans at most ln 1.2 / 1.349.
    assert 0.05 < found.chance.straggler_sigma.value <= 0.136
    assert (
        account_profile(measured_samples(), ACCOUNT, BASE, STACK, TODAY).chance.straggler_sigma.value < 0.001
    )


def test_an_emulated_account_is_never_mistaken_for_a_real_one() -> None:
    found = account_profile(measured_samples(), replace(ACCOUNT, emulated=True), BASE, STACK, TODAY)
    assert found.title.startswith("AWS Lambda, emulated")
    assert "an emulated account" in found.core_ratio.source
    assert "this machine's" in found.words


def test_what_is_billed_beyond_the_body_is_reported() -> None:
    samples = [
        replace(
            one,
            usage=one.usage.model_copy(update={"billed_s": one.usage.run_s + one.usage.startup_s + 0.002}),
        )
        for one in measured_samples()
    ]
    assert billed_beside_s(samples) == pytest.approx(0.002)
