"""How much memory an actor's function should have: from measured calls to a table and a choice with its reason.

Memory buys processor time, so more memory makes a call more expensive by the second and shorter. What counts is the
cost and the time of a step; both are given for a million steps.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cloud.formatting import format_percent

MILLION = 10**6
SLOWER_AT_MOST = 0.20
"""How much slower than the fastest size a choice may be: beyond that, waiting costs more than functions do."""


@dataclass(frozen=True)
class ProfiledCall:
    """One call, as the provider billed it. `failure` says why there is nothing to count."""

    memory_mb: int
    env_steps: int = 0
    billed_s: float = 0.0
    start_s: float = 0.0
    cold: bool = False
    picodollars: int = 0
    failure: str = ""


@dataclass(frozen=True)
class Size:
    """The results of one size of memory, without cold starts. `start_s`: that of the cold one; None if there was
    none.

    `failure`: why this size is not available, or cannot be judged.
    """

    memory_mb: int
    seconds_per_million: float = 0.0
    picodollars_per_million: int = 0
    start_s: float | None = None
    calls: int = 0
    failure: str = ""


@dataclass(frozen=True)
class MemoryChoice:
    memory_mb: int
    why: str


def sizes_of(runs: Iterable[ProfiledCall]) -> list[Size]:
    """Return the table, by memory. Times are the median call's, so that a disturbed one does not count."""
    by_memory: dict[int, list[ProfiledCall]] = {}
    for run in runs:
        by_memory.setdefault(run.memory_mb, []).append(run)
    return [_size(memory_mb, found) for memory_mb, found in sorted(by_memory.items())]


def _size(memory_mb: int, runs: Sequence[ProfiledCall]) -> Size:
    failed = next((run.failure for run in runs if run.failure), "")
    start_s = next((run.start_s for run in runs if run.cold and not run.failure), None)
    warm = [run for run in runs if not (run.cold or run.failure) and run.env_steps]
    if failed or not warm:
        return Size(memory_mb, start_s=start_s, failure=failed or "no call to a warm function came back")
    middle = sorted(warm, key=lambda run: run.billed_s / run.env_steps)[(len(warm) - 1) // 2]
    return Size(
        memory_mb,
        statistics.median(run.billed_s / run.env_steps for run in warm) * MILLION,
        _rounded(Fraction(middle.picodollars * MILLION, middle.env_steps)),
        start_s,
        len(warm),
    )


def _rounded(exact: Fraction) -> int:
    """Round half up, like all money here."""
    return int((2 * exact.numerator + exact.denominator) // (2 * exact.denominator))


def choice(sizes: Sequence[Size], slower_at_most: float = SLOWER_AT_MOST) -> MemoryChoice | None:
    """Return the cheapest by the step among those nearly as fast as the fastest; None if nothing was measured."""
    measured = [size for size in sizes if not size.failure]
    if not measured:
        return None
    fastest = min(measured, key=lambda size: (size.seconds_per_million, size.memory_mb))
    limit_s = fastest.seconds_per_million * (1 + slower_at_most)
    near = [size for size in measured if size.seconds_per_million <= limit_s]
    best = min(near, key=lambda size: (size.picodollars_per_million, size.seconds_per_million))
    return MemoryChoice(best.memory_mb, _why(best, fastest, measured, slower_at_most))


def _why(best: Size, fastest: Size, measured: Sequence[Size], slower_at_most: float) -> str:
    name = f"{best.memory_mb:,} MB"
    if len(measured) == 1:
        return f"{name}: the only size that could be measured."
    if best != fastest:
        less = 1 - best.picodollars_per_million / fastest.picodollars_per_million
        return (
            f"{name}: {format_percent(less)} cheaper per step than {fastest.memory_mb:,} MB"
            f" and within {format_percent(slower_at_most)} of its speed."
        )
    cheapest = min(measured, key=lambda size: size.picodollars_per_million)
    if cheapest.picodollars_per_million == best.picodollars_per_million:
        return f"{name}: the fastest, and none is cheaper per step."
    less = 1 - cheapest.picodollars_per_million / best.picodollars_per_million
    slower = cheapest.seconds_per_million / best.seconds_per_million - 1
    return (
        f"{name}: the fastest. {cheapest.memory_mb:,} MB would be {format_percent(less)} cheaper per step"
        f" and {format_percent(slower)} slower."
    )
