"""Pieces of tariffs, each against a bill worked out by hand, and the free tier beside a bill."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cloud.money.billing import price_parts
from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import FunctionPrice, RunningPrice, Tariff, price_line, total
from tests.cloud import calls
from training.engine.messages import Outcome
from training.engine.reports import Usage

BOOK = PriceBook.load()
HOUR_NS = 3600 * 10**9
READY = price_parts.functions(BOOK, "us-east-1", 10.0, provisioned=True)
GPU_S = price_parts.machine_parts(BOOK, "p3.2xlarge", "us-east-1")


def used(billed_s: float | None, provisioned: bool = False) -> Usage:
    return Usage(billed_s=billed_s, provisioned=provisioned)


def test_time_on_an_instance_kept_ready_has_its_own_price() -> None:
    call = calls.rollout("c", None, memory_mb=1024)
    cold, ready = READY.lines(call, used(2.0)), READY.lines(call, used(2.0, provisioned=True))
    assert cold is not None
    assert ready is not None
    assert [(line.sku, line.picodollars) for line in cold] == [
        ("lambda.duration.x86", 33_333_400),
        ("lambda.request", 200_000),
    ]
    assert [(line.sku, line.picodollars) for line in ready] == [
        ("lambda.provisioned.duration.x86", 19_444_400),
        ("lambda.request", 200_000),
    ]
    plain = price_parts.functions(BOOK, "us-east-1", 10.0)
    assert plain.lines(call, used(2.0, provisioned=True)) == cold, "no price of its own"


def test_a_learner_as_a_function_pays_only_while_it_runs() -> None:
    """2 s of $3.06/h and of $17.92 a month of 720 h; a quarter of it where four share the machine."""
    call = calls.update("u", (), deadline_s=30.0)
    learner = price_parts.learner_function(GPU_S, start_cap_s=5.0)
    lines = learner.lines(call, used(2.0))
    assert lines is not None
    assert [(line.sku, line.picodollars) for line in lines] == [
        ("p3.2xlarge", 1_700_000_000),
        ("paper.vm_overhead", 13_827_160),
    ]
    quarter = price_parts.learner_function(GPU_S, 5.0, sharers=4).lines(call, used(2.0))
    assert quarter is not None
    assert total(quarter) == 425_000_000 + 3_456_790
    assert learner.worst_case(call) == total(
        price_parts.learner_function(GPU_S, 0).lines(call, used(35.0)) or ()
    )
    assert learner.lines(call, used(None)) is None
    assert learner.lines(call, used(0.0)) == ()


def test_a_cache_is_a_machine_that_stands() -> None:
    cache = price_parts.cache_host(BOOK, "m4.large", "us-east-1")
    assert [(line.sku, line.picodollars) for line in cache.lines(HOUR_NS)] == [
        ("m4.large", 100_000_000_000),
        ("paper.vm_overhead", 24_888_888_889),
    ]
    assert cache.skus == "m4.large + paper.vm_overhead"


def test_quantities_are_shown_as_decimals() -> None:
    row = BOOK.row("c5.4xlarge")
    ratios = ((3, 1), (0, 7), (1, 1024), (60, 3600), (5, 4), (10, 5))
    shown = [price_line(row, quantity, per).quantity for quantity, per in ratios]
    assert shown == ["3", "0", "0.0009765625", "0.016666666667", "1.25", "2"]


@given(
    price=st.sampled_from(["function", "ready", "learner"]),
    memory_mb=st.integers(128, 10_240),
    deadline_s=st.floats(0.001, 900),
    share=st.floats(0, 1),
    provisioned=st.booleans(),
)
def test_no_bill_of_any_place_is_above_its_worst_case(
    price: str, memory_mb: int, deadline_s: float, share: float, provisioned: bool
) -> None:
    place: FunctionPrice | RunningPrice = {
        "function": replace(READY, provisioned=None),
        "ready": READY,
        "learner": price_parts.learner_function(GPU_S, 10.0, sharers=4),
    }[price]  # type: ignore[assignment]
    call = calls.rollout("c", None, memory_mb=memory_mb, deadline_s=deadline_s)
    lines = place.lines(call, used(share * (10.0 + deadline_s), provisioned))
    assert lines is not None
    assert total(lines) <= place.worst_case(call)


def test_a_tariff_asks_the_place_of_the_call() -> None:
    tariff = Tariff(actor=READY, learner=price_parts.learner_function(GPU_S, 5.0))
    outcome = Outcome(call_id="c", status="done", started_s=0, finished_s=0, usage=Usage(billed_s=2.0))
    skus = [
        [line.sku for line in tariff.lines(call, outcome) or ()]
        for call in (calls.rollout("c", None), calls.evaluation("c", None), calls.update("c", ()))
    ]
    assert skus == [
        ["lambda.duration.x86", "lambda.request"],
        ["lambda.duration.x86", "lambda.request"],
        ["p3.2xlarge", "paper.vm_overhead"],
    ]
