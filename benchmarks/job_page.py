"""The page of a job with 100,000 rounds in a real browser: how soon it is drawn, how smoothly it moves, its weight."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.watching.own_process import measured
from rig.figures import Figure

_ROUNDS, _UPDATES_A_SECOND, _SECONDS = 100_000, 10, 10


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """A round has 13 lines and 9 parts; the page gets at most 400 points, with the least and most of each line."""
    rounds = 5_000 if quick else _ROUNDS
    figures = measured("page", rounds, _UPDATES_A_SECOND, _SECONDS)
    what = f"{rounds:,} rounds"
    yield Figure(f"{what}: data here to charts drawn", figures["drawn_ms"], "ms", at_most=300)
    yield Figure(f"{what}: data here to charts painted", figures["painted_ms"], "ms")
    yield Figure(
        f"frames a second while {_UPDATES_A_SECOND} updates a second come", figures["fps"], "/s", at_least=30
    )
    yield Figure("the slowest of twenty frames meanwhile", figures["frame_p95_ms"], "ms")
    yield Figure("JavaScript heap after that", figures["heap_mb"], "MB", at_most=100)
    yield Figure("weight of a first visit, as sent, without fonts", figures["weight_kb"], "kB", at_most=250)
    yield Figure("the same, its scripts, styles and page alone", figures["static_kb"], "kB")
    yield Figure("requests to other hosts", figures["other_hosts"], "", at_most=0)
    yield Figure(f"{what}: the server's first look, all events read", figures["first_look_s"], "s")
    yield Figure(f"{what}: part of the run on zoom, requested and received", figures["zoom_ms"], "ms")
