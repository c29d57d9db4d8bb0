"""The calls of a memory profile: on the simulated cloud and in an emulated account, within their ledger."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest
from pydantic import ValidationError

from cloud.accounts.profiling import choice, sizes_of
from cloud.accounts.profiling_runs import (
    ProfilingPlan,
    first_weights,
    likely_picodollars,
    measure_runs,
    most_picodollars,
)
from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws_lambda import LambdaOptions, LambdaPlatform
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.quantity import Quantity
from cloud.workers.executor import LocalExecutor
from cloud.workers.learner_thread import NoLearner
from tests.cloud import calls
from tests.cloud.aws import lambdas
from tests.cloud.emulated_bills import executions, picodollars_of_calls
from training.rl.environments.model import EnvironmentSpec

PLAN = ProfilingPlan(environment=calls.CARTPOLE, memory_mb=(2048, 512), steps=64, calls=3)
LAMBDA = LambdaOptions()


@cache
def _weights() -> bytes:
    return first_weights(calls.CARTPOLE)


def test_the_simulated_clouds_sizes_are_as_its_profile_says() -> None:
    options = SimulatedOptions(learner="function")
    tariff = options.tariff(PriceBook.load(), 1024)
    ledger = MemoryLedger(most_picodollars(PLAN, tariff))
    inner = SimulatedPlatform(options, executor=LocalExecutor(1, learner=NoLearner))
    platform = MeteredPlatform(inner, ledger, tariff)
    try:
        small, large = sizes_of(measure_runs(PLAN, platform, _weights()))
    finally:
        platform.close()
    assert (small.failure, large.failure) == ("", "")
    # 512 MB are 0.29 of a core: 3.5 times as long, within the spread of two calls' times.
    assert 2.5 < small.seconds_per_million / large.seconds_per_million < 4.8
    assert small.start_s is not None
    assert small.start_s > 0.1
    found = choice([small, large])
    assert found is not None
    assert found.memory_mb == 2048


def test_an_account_bills_what_the_table_says_and_the_ledger_holds_it() -> None:
    tariff = LAMBDA.tariff(PriceBook.load(), 1024)
    ledger = MemoryLedger(most_picodollars(PLAN, tariff))
    with lambdas.account(at_once=2) as (aws, demo):
        lambdas.set_up(demo, PLAN.memory_mb)
        platform = MeteredPlatform(
            LambdaPlatform(LAMBDA, demo.by_role.open(), learner=NoLearner), ledger, tariff
        )
        try:
            runs = list(measure_runs(PLAN, platform, _weights(), name="p1"))
        finally:
            platform.close()
        spent = ledger.spend().spent_picodollars
        assert (
            spent
            == picodollars_of_calls(aws.meter, PriceBook.load(), "us-east-1")
            == sum(r.picodollars for r in runs)
        )
        assert [run.billed_s for run in runs] == [one.billed_ms / 1000 for one in aws.meter.invocations]
        assert [run.cold for run in runs] == [True, False, False] * 2
        assert set(executions(aws.meter).values()) == {1}
    assert 0 < spent < most_picodollars(PLAN, tariff)


def test_a_size_that_is_too_small_is_reported_and_the_next_one_is_measured() -> None:
    plan = PLAN.model_copy(update={"memory_mb": (128, 1024), "steps": 4096})
    tariff = LAMBDA.tariff(PriceBook.load(), 1024)
    with lambdas.account(at_once=2) as (aws, demo):
        lambdas.set_up(demo, plan.memory_mb)
        aws.faults.order("crash", 1)  # as a process ends that wants more memory than there is
        platform = MeteredPlatform(
            LambdaPlatform(LAMBDA, demo.by_role.open(), learner=NoLearner),
            MemoryLedger(most_picodollars(plan, tariff)),
            tariff,
        )
        try:
            small, good = sizes_of(measure_runs(plan, platform, _weights()))
        finally:
            platform.close()
    assert "lack of memory" in small.failure
    assert good.failure == ""


def test_nothing_runs_without_room_in_the_ledger() -> None:
    tariff = LAMBDA.tariff(PriceBook.load(), 1024)
    with lambdas.account(at_once=2) as (aws, demo):
        lambdas.set_up(demo, PLAN.memory_mb)
        platform = MeteredPlatform(
            LambdaPlatform(LAMBDA, demo.by_role.open(), learner=NoLearner), MemoryLedger(1_000_000), tariff
        )
        try:
            runs = list(measure_runs(PLAN, platform, _weights()))
        finally:
            platform.close()
        assert ["of the budget" in run.failure for run in runs] == [True, True]
        assert aws.meter.invocations == []


def test_what_it_may_cost_is_said_before_and_is_far_above_what_it_likely_does() -> None:
    tariff = LAMBDA.tariff(PriceBook.load(), 1024)
    most, likely = (
        most_picodollars(PLAN, tariff),
        likely_picodollars(PLAN, tariff, stacks.load("starling-stack")),
    )
    # 3 calls of (30 + 60) s at 0.5 GB and at 2 GB, and 6 requests: 675 GB-s.
    assert most == pytest.approx(675 * 0.0000166667e12 + 6 * 0.0000002e12, rel=1e-6)
    assert 0 < likely < most / 10


def test_copies_of_an_environment_share_the_cores_of_a_large_function() -> None:
    tariff, environment = LAMBDA.tariff(PriceBook.load(), 1024), EnvironmentSpec(id="Hopper-v5")
    share = Quantity(value=0.5, low=0.5, high=0.5, source="made up", kind="assumed")
    stack = stacks.load("starling-stack")
    plan = ProfilingPlan(environment=environment, memory_mb=(3538,), environments_per_actor=4)
    request = plan.call(3538, 0).request
    assert (request.environments, request.steps) == (4, plan.steps)  # type: ignore[union-attr]
    threads = stack.model_copy(update={"further_core_share": share})
    assert likely_picodollars(plan, tariff, threads) < 0.8 * likely_picodollars(plan, tariff, stack)
    alone = plan.model_copy(update={"environments_per_actor": 1})
    assert likely_picodollars(alone, tariff, threads) == likely_picodollars(alone, tariff, stack)


@pytest.mark.parametrize("sizes", [(), (64,), (20_000,), tuple(range(128, 137))])
def test_sizes_that_no_function_has_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError):
        ProfilingPlan(environment=calls.CARTPOLE, memory_mb=sizes)


def test_a_profile_loads_nothing_that_learns() -> None:
    script = (
        "import sys; from cloud.accounts import profiling_runs; from cloud.workers.executor import LocalExecutor;"
        "from cloud.workers.learner_thread import NoLearner; LocalExecutor(1, learner=NoLearner).close();"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
