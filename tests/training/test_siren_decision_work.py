"""How much work a decision of Siren's agent is: a fixed number of calls and little memory, nothing outside of it."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.training.test_siren_agent import CLOUD, DOLLAR, spec, weights_of
from training.engine.reports import RoundReport
from training.scaling.agent_weights import as_text
from training.scaling.plan import Bounds
from training.scaling.siren import Siren
from training.scheduling.siren.arithmetic_cloud import rounds_of
from training.tasks.supervised_spec import Supervised

MOST_CALLS = 600
"""A Python call takes about a microsecond, one of numpy a few: a millisecond holds them all."""
MOST_BYTES = 400_000
OUTSIDE = {"io", "_io", "posix", "_socket", "select", "time", "_random", "_ssl", "_sqlite3", "subprocess"}
ANY_SIZE = range(128, 10_241)


@pytest.fixture(scope="module")
def policy() -> Siren:
    of = spec(memory_min_mb=128, memory_max_mb=10_240, actors_max=3000)
    found = of.policy(as_text(weights_of(of)), explore=True)
    found.decide([], Bounds(), 0, Supervised.score)  # reads the weights
    return found


def epochs(count: int) -> list[RoundReport]:
    return rounds_of(CLOUD, [(8, 1024)] * count, budget_picodollars=DOLLAR)


def calls_of(policy: Siren, history: Sequence[RoundReport], bounds: Bounds) -> Counter[str]:
    """Return how often each function was called in a decision, those of C among them, by its module."""
    found: Counter[str] = Counter()

    def count(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            found[f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"] += 1
        elif event == "c_call":
            found[f"{argument.__module__}.{argument.__name__}"] += 1

    gc.disable()  # or a collection calls those who watch them
    sys.setprofile(count)
    try:
        policy.decide(history, bounds, 1, Supervised.score)
    finally:
        sys.setprofile(None)
        gc.enable()
    return found


@pytest.mark.parametrize("seen", [0, 1, 64])
@pytest.mark.parametrize("sizes", [(1024,), (512, 1769, 3008), ANY_SIZE], ids=len)
def test_a_decision_is_a_few_hundred_calls_whatever_it_has_seen(
    policy: Siren, seen: int, sizes: Sequence[int]
) -> None:
    found = calls_of(policy, epochs(seen), Bounds(actors_max=3000, memory_sizes_mb=sizes))
    assert found["training.scaling.siren.decide"] == 1
    assert found.total() <= MOST_CALLS


def test_more_epochs_make_no_more_work(policy: Siren) -> None:
    bounds = Bounds(memory_sizes_mb=ANY_SIZE)
    few, many = (calls_of(policy, epochs(count), bounds) for count in (2, 64))
    assert few == many


def test_a_decision_touches_nothing_outside_of_it(policy: Siren) -> None:
    history = epochs(3)
    before = [one.model_dump_json() for one in history]
    found = calls_of(policy, history, Bounds(memory_sizes_mb=ANY_SIZE))
    assert {name.split(".")[0] for name in found} & OUTSIDE == set()
    assert [one.model_dump_json() for one in history] == before


def test_a_decision_takes_little_memory(policy: Siren) -> None:
    history, bounds = epochs(64), Bounds(memory_sizes_mb=ANY_SIZE)
    tracemalloc.start()
    try:
        policy.decide(history, bounds, 1, Supervised.score)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= MOST_BYTES
