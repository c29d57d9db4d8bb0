"""If this server dies now: worked by hand."""

from __future__ import annotations

import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.money.unattended_cost import (
    BillingResource,
    ReservedCalls,
    UnattendedCost,
    deadline_s,
    unattended_cost,
)
from cloud.platforms.aws_lambda import LambdaOptions
from tests.cloud import calls

NOW = 10_000.0


def test_nothing_is_under_way() -> None:
    assert unattended_cost(NOW, [], 0, []) == UnattendedCost(0.0, 0, 0, 0)


def test_calls_end_at_their_deadlines() -> None:
    """Three calls, the last sent 10 s ago for at most 40 s; two older ones for at most 120 s, sent 100 s ago."""
    in_flight = [ReservedCalls(3, NOW - 10, 40.0, 7), ReservedCalls(2, NOW - 100, 120.0, 11)]
    assert unattended_cost(NOW, in_flight, 0, []) == UnattendedCost(30.0, 3 * 7 + 2 * 11, 0, 0)


def test_container_groups_end_at_their_dead_man_times_and_what_is_kept_ready_does_not() -> None:
    in_flight = [ReservedCalls(1, NOW - 5, 15.0, 100)]
    things = [
        BillingResource(NOW + 55.0, 9),
        BillingResource(NOW + 20.0, 4),
        BillingResource(None, 600, 2),
        BillingResource(None, 300),
    ]
    assert unattended_cost(NOW, in_flight, 50, things) == UnattendedCost(55.0, 100 + 50 + 9 + 4, 3, 900)


def test_what_should_have_ended_already_ends_at_once() -> None:
    assert (
        unattended_cost(NOW, [ReservedCalls(1, NOW - 100, 60.0, 5)], 0, [BillingResource(NOW - 1)]).within_s
        == 0.0
    )


@pytest.mark.parametrize("provisioned", [0, 2])
@pytest.mark.parametrize("deadline", [0.5, 12.345, 60.0, 870.0])
def test_a_deadline_is_read_from_what_was_reserved_for_it(deadline: float, provisioned: int) -> None:
    options = LambdaOptions(provisioned=provisioned)
    price = options.tariff(PriceBook.load(), 1769).actor
    assert price is not None
    reserved = price.worst_case(calls.rollout("a", None, deadline_s=deadline))
    assert deadline_s(price, 1769, reserved) == pytest.approx(deadline, abs=0.0011)
    assert (
        price.worst_case(calls.rollout("a", None, deadline_s=deadline_s(price, 1769, reserved))) >= reserved
    )
