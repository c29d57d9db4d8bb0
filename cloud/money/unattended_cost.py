"""The cost of a run that is not attended from now on: when the last of it stops, and what it may still cost.

Functions end by themselves at their deadlines, container groups when their dead-man timer runs out. Provisioned
capacity does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cloud.money.pricing import CallPrice
from training.engine.messages import Call

_LONGEST_MS = 900_000


@dataclass(frozen=True)
class ReservedCalls:
    """Calls with equal reservations: how many, when the last was reserved, and the most that each may take and cost."""

    count: int
    last_opened_unix_s: float
    longest_s: float
    picodollars_each: int


@dataclass(frozen=True)
class BillingResource:
    """Resources in an account. They end by themselves at `ends_unix_s`, None: never.

    `picodollars`: what they cost until then beyond what is reserved; of those that never end, what they cost an hour.
    """

    ends_unix_s: float | None
    picodollars: int = 0
    count: int = 1


@dataclass(frozen=True)
class UnattendedCost:
    """Everything that ends by itself has ended within `within_s`, at no more than `picodollars` from now on.

    `endless` resources cost `endless_per_hour` until a person ends them.
    """

    within_s: float
    picodollars: int
    endless: int
    endless_per_hour: int


def unattended_cost(
    now_unix_s: float,
    calls: Iterable[ReservedCalls],
    rent_picodollars: int,
    things: Iterable[BillingResource],
) -> UnattendedCost:
    """Return the cost. `rent_picodollars`: what is reserved for slices of rent; they are booked in full."""
    calls, things = list(calls), list(things)
    ends = [call.last_opened_unix_s + call.longest_s for call in calls]
    ends += [thing.ends_unix_s for thing in things if thing.ends_unix_s is not None]
    late = sum(thing.picodollars for thing in things if thing.ends_unix_s is not None)
    endless = [thing for thing in things if thing.ends_unix_s is None]
    return UnattendedCost(
        within_s=max([0.0, *(end - now_unix_s for end in ends)]),
        picodollars=rent_picodollars + late + sum(call.count * call.picodollars_each for call in calls),
        endless=sum(thing.count for thing in endless),
        endless_per_hour=sum(thing.picodollars for thing in endless),
    )


def deadline_s(price: CallPrice, memory_mb: int, reserved: int) -> float:
    """Return the deadline of a call from its reservation: the shortest, to a millisecond, that explains the amount."""
    construct: Any = Call.model_construct  # a price depends on nothing else of a call
    low, high = 0, _LONGEST_MS
    while low < high:
        middle = (low + high) // 2
        call = construct(where="actor", memory_mb=memory_mb, deadline_s=middle / 1000)
        if price.worst_case(call) >= reserved:
            high = middle
        else:
            low = middle + 1
    return low / 1000
