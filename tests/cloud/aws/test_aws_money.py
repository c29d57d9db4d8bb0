"""Our books against the emulator's own meter, on bad days: equal to the last digit, and never below it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.money.pricing import total
from cloud.platforms.aws import log as aws_log
from cloud.platforms.aws.functions import function_name
from cloud.platforms.aws_lambda import LambdaOptions
from emulator.aws.demo import DemoAccount, furnish
from emulator.aws.server import AwsEmulator
from emulator.aws.stub_functions import StubFunction
from emulator.faults import AwsFaults
from tests.cloud import calls
from tests.cloud.aws import lambdas
from tests.cloud.emulated_bills import executions, picodollars_of_call, picodollars_of_calls
from tests.cloud.test_memory_plans import ByTurns
from tests.training.runs import events_of
from tests.training.specs import tiny
from training.engine.messages import Call
from training.engine.ports import Control, Settlement
from training.engine.reports import Usage
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from training.scaling.plan import Bounds

BOOK = PriceBook.load()
REGION = "us-east-1"
NAME = function_name("starling", lambdas.MEMORY_MB)
CALLS = 40


@dataclass
class Day:
    """One run with faults: what the ledger booked and what the meter says."""

    settlements: dict[str, Settlement]
    reserved: dict[str, int]
    spent: int
    overrun: int


@pytest.fixture(scope="module")
def cloud() -> Iterator[tuple[AwsEmulator, DemoAccount]]:
    with AwsEmulator() as aws:
        demo = furnish(aws)
        lambdas.set_up(demo)
        yield aws, demo


def _result() -> Result:
    """What a call of the kind that is sent really gives."""
    return execute(calls.rollout("any", None), calls.weights(), WarmCache())


def _day(aws: AwsEmulator, demo: DemoAccount, seed: int) -> Day:
    luck = random.Random(seed)
    shares = ("throttle", "service_error", "error_after", "lost_request", "lost_reply")
    fresh = AwsFaults(seed=seed, shares={kind: luck.uniform(0.0, 0.12) for kind in shares})  # type: ignore[misc]
    aws.faults.shares, aws.faults._chance = fresh.shares, fresh._chance
    aws.meter.invocations.clear()
    aws.invocations.stubs[NAME] = StubFunction(luck.uniform(0.001, 0.02), _result())
    options = LambdaOptions()
    tariff = options.tariff(BOOK, lambdas.MEMORY_MB)
    ledger = MemoryLedger(10**12)
    platform = MeteredPlatform(options.open(demo.by_keys), ledger, tariff)
    sent: list[Call] = []
    try:
        ref = platform.publish(0, calls.weights())
        for number in range(CALLS):
            sent.append(calls.rollout(f"day{seed}-c{number}", ref, deadline_s=10.0))
            platform.submit(sent[-1])
        heard = 0
        while heard < CALLS:
            heard += platform.next(10.0) is not None
    finally:
        platform.close()
        aws.faults.end()
    settlements = {one.id: one for one in ledger.settlements()}
    reserved = {call.id: tariff.worst_case(call) for call in sent}
    return Day(settlements, reserved, ledger.spend().spent_picodollars, ledger.overrun_picodollars)


# A few always, all fifty in the slow run.
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 50))]


@pytest.mark.parametrize("seed", SEEDS)
def test_books_equal_the_meter_on_fifty_bad_days(seed: int, cloud: tuple[AwsEmulator, DemoAccount]) -> None:
    aws, demo = cloud
    began_unix_s = time.time() - 5.0
    day = _day(aws, demo, seed)
    executed = executions(aws.meter)
    assert set(executed.values()) <= {1}, "no call ran twice"
    known = {name: one for name, one in day.settlements.items() if one.basis == "metered"}
    unknown = {name: one for name, one in day.settlements.items() if one.basis == "assumed"}
    assert len(day.settlements) == CALLS
    for name, one in known.items():
        assert one.picodollars == picodollars_of_call(aws.meter, name, BOOK, REGION)
    for name, one in unknown.items():
        assert one.picodollars == day.reserved[name]
        assert one.picodollars >= picodollars_of_call(aws.meter, name, BOOK, REGION)
    assert day.overrun == 0
    assert day.spent >= picodollars_of_calls(aws.meter, BOOK, REGION)
    # What is not known is found in the provider's log, by the line that the actor wrote.
    log = demo.by_keys.open().client("logs")
    reports = aws_log.reports_of(log, NAME, sorted(unknown), began_unix_s)
    tariff = LambdaOptions().tariff(BOOK, lambdas.MEMORY_MB)
    assert tariff.actor is not None
    found = 0
    for name in unknown:
        call = calls.rollout(name, None, deadline_s=10.0)
        for report in reports.get(name, []):
            found += total(tariff.actor.lines(call, Usage(billed_s=report.billed_s)) or ())
    settled = sum(one.picodollars for one in known.values())
    assert settled + found == picodollars_of_calls(aws.meter, BOOK, REGION)


def test_bad_days_are_bad(cloud: tuple[AwsEmulator, DemoAccount]) -> None:
    """The fifty days hold every kind of fault, so their equality means something."""
    aws, demo = cloud
    before = dict(aws.faults.struck)
    unknown = 0
    for seed in (1001, 1002, 1003):
        unknown += sum(one.basis == "assumed" for one in _day(aws, demo, seed).settlements.values())
    assert unknown > 0
    assert all(
        aws.faults.struck[kind] > before.get(kind, 0) for kind in ("throttle", "lost_reply", "error_after")
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_processes_that_are_killed_in_the_middle_are_billed_to_the_digit(seed: int) -> None:
    """Real handlers this time: kills, broken connections and throttling; a failed call has its price too."""
    faults = AwsFaults(seed=seed, shares={"crash": 0.25, "lost_reply": 0.1, "throttle": 0.1})
    faults.order("crash")
    with lambdas.opened(faults=faults) as (inner, aws):
        tariff = LambdaOptions().tariff(BOOK, lambdas.MEMORY_MB)
        ledger = MemoryLedger(10**12)
        platform = MeteredPlatform(inner, ledger, tariff)
        ref = platform.publish(0, calls.weights())
        for number in range(12):
            platform.submit(calls.rollout(f"c{number}", ref, steps=2000, slot=number, deadline_s=20.0))
        statuses = [platform.next(60.0) for _ in range(12)]
        platform.close()
        assert faults.struck["crash"] > 0
        assert {one.status for one in statuses if one is not None} <= {"done", "failed"}
        booked = {one.id: one for one in ledger.settlements()}
        assert set(executions(aws.meter).values()) == {1}
        for name, one in booked.items():
            metered = picodollars_of_call(aws.meter, name, BOOK, REGION)
            assert one.picodollars == metered if one.basis == "metered" else one.picodollars >= metered
        assert ledger.overrun_picodollars == 0


def test_sizes_change_between_rounds_and_each_call_is_billed_at_its_own() -> None:
    """A training with real handlers, by turns on functions with little and with much memory."""
    sizes = (512, 3008)
    options = LambdaOptions(memory_ladder_mb=sizes, function_timeout_s=120)
    spec = tiny(stop={"rounds": 4}).model_copy(update={"scaling": ByTurns(actors=2)})
    spec = spec.model_copy(update={"rollout": spec.rollout.model_copy(update={"memory_mb": 512})})
    with lambdas.account() as (aws, demo):
        lambdas.set_up(demo, sizes)
        ledger = MemoryLedger(10**12)
        platform = MeteredPlatform(options.open(demo.by_role), ledger, options.tariff(BOOK, 512))
        bounds = Bounds(memory_sizes_mb=options.memory_sizes_mb(512))
        try:
            events = events_of(spec, platform, control=lambda: Control(bounds=bounds))
        finally:
            platform.close()
        reports = [event.report for event in events if event.kind == "round"]
        assert [report.memory_mb for report in reports] == [512, 3008, 512, 3008]
        assert {one.memory_mb for one in aws.meter.invocations} == set(sizes)
        booked = {one.id: one for one in ledger.settlements() if one.id in executions(aws.meter)}
        assert len(booked) == 12
        for name, one in booked.items():
            assert one.picodollars == picodollars_of_call(aws.meter, name, BOOK, REGION)


def test_functions_kept_ready_have_both_their_prices_on_the_bill() -> None:
    """The rent from the first call on by started five minutes, and a price of its own for time run there."""
    options = LambdaOptions(provisioned=1, function_timeout_s=120)
    tariff = options.tariff(BOOK, lambdas.MEMORY_MB)
    ledger = MemoryLedger(10**12)
    with lambdas.account(at_once=102) as (aws, demo):
        lambdas.set_up(demo)
        platform = MeteredPlatform(options.open(demo.by_role), ledger, tariff)
        try:
            ref, end_s, ready = platform.publish(0, calls.weights()), time.monotonic() + 60, False
            while not ready and time.monotonic() < end_s:
                platform.submit(calls.rollout(f"c{len(aws.meter.invocations)}", ref))
                outcome = platform.next(10.0)
                assert outcome is not None
                ready = outcome.usage.provisioned
        finally:
            platform.close()
        assert ready
        (span,) = aws.meter.provisioned
        assert span.instances == 1
        booked = {one.id: one for one in ledger.settlements()}
        for one in aws.meter.invocations:
            assert one.call_id is not None
            lines = booked.pop(one.call_id).lines
            kind = "provisioned.duration" if one.provisioned else "duration"
            assert [line.sku for line in lines] == [f"lambda.{kind}.x86", "lambda.request"]
            assert total(lines) == picodollars_of_call(aws.meter, one.call_id, BOOK, REGION)
        lines = [line for settlement in booked.values() for line in settlement.lines]
        assert {line.sku for line in lines} == {"lambda.provisioned.x86"}
        # Some seconds are paid as 300: 300 s x 1,769 MB / 1,024 x 0.0000041667 USD.
        assert total(lines) == round(300 * 1769 / 1024 * 0.0000041667 * 10**12)
        assert ledger.spend().spent_picodollars == picodollars_of_calls(aws.meter, BOOK, REGION) + total(
            lines
        )
