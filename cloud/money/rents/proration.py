"""Divides the time of one machine among the calls that ran on it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple


class Stretch(NamedTuple):
    """A period in which something ran."""

    begin_ns: int
    end_ns: int


def shares_of_time(stretches: Sequence[Stretch]) -> list[int]:
    """Return each stretch's share of the time in which anything ran: those that run at one moment share it equally.

    Whole nanoseconds, rounded down. So their sum is at most the time in which at least one of them ran.
    """
    order = sorted(range(len(stretches)), key=lambda at: stretches[at].begin_ns)
    # With k running, each share grows by 1/k a nanosecond: so one running sum serves any number of stretches.
    grown = Fraction(0)
    at_begin: dict[int, Fraction] = {}
    shares = [0] * len(stretches)
    running: list[tuple[int, int]] = []
    now_ns = 0

    def pass_until(moment_ns: int) -> None:
        nonlocal grown, now_ns
        while running and running[0][0] <= moment_ns:
            end_ns, number = running[0]
            grown += Fraction(end_ns - now_ns, len(running))
            now_ns = end_ns
            heapq.heappop(running)
            shares[number] = int(grown - at_begin[number])
        if running:
            grown += Fraction(moment_ns - now_ns, len(running))
        now_ns = moment_ns

    for number in order:
        begin_ns, end_ns = stretches[number]
        pass_until(begin_ns)
        at_begin[number] = grown
        heapq.heappush(running, (max(begin_ns, end_ns), number))
    while running:
        pass_until(running[0][0])
    return shares
