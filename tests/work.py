"""How much work something is, however slow or busy the machine is. Seconds are for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable
from cProfile import Profile
from typing import Any

import pytest

_USUAL_S = 0.02


def repeated(times: int, *, endurance: int) -> pytest.MarkDecorator:
    """Give a slow test its number of `times`: as `make check-all` has minutes for, and for `make test-endurance`."""
    marked = (
        pytest.param(times, marks=pytest.mark.slow),
        pytest.param(endurance, marks=pytest.mark.endurance),
    )
    return pytest.mark.parametrize("times", marked)


def calls_in(act: Callable[[], Any]) -> int:
    """Return how many functions it calls, those written in C included."""
    profile = Profile()
    profile.runcall(act)
    return sum(entry.callcount for entry in profile.getstats())


def slowness() -> float:
    """Return how many times as long as on a usual machine a piece of work takes this thread here; at least 1.

    For bounds of seconds on work that calls do not show, as it is done inside of one.
    """
    took_s = []
    for _ in range(3):
        began_s = time.thread_time()
        sum(range(1_000_000))
        took_s.append(time.thread_time() - began_s)
    return max(1.0, min(took_s) / _USUAL_S)
