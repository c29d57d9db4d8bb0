"""Five hundred people watch ten jobs that tell of five events a second each, all served by one web process."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.watching.own_process import measured
from rig.figures import Figure

_VIEWERS, _JOBS, _EVENTS_A_SECOND, _SECONDS = 500, 10, 5, 20


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """From an event's commit to its arrival at each viewer; memory is the web process's own."""
    seconds = 6 if quick else _SECONDS
    figures = measured("viewers", _VIEWERS, _JOBS, _EVENTS_A_SECOND, seconds)
    load = f"{_VIEWERS} viewers, {_JOBS} jobs, {_EVENTS_A_SECOND} events/s each"
    yield Figure(f"{load}: committed to received, p99", figures["p99_ms"], "ms", at_most=500)
    yield Figure("the same, median", figures["p50_ms"], "ms")
    yield Figure("events that a viewer missed or got out of order", figures["missed"], "", at_most=0)
    yield Figure("events received, all viewers together", figures["received"], "")
    yield Figure("memory of the web process for each viewer", figures["kb_a_viewer"], "kB", at_most=150)
    yield Figure("processor time of the web process (a core: 100)", figures["cpu_percent"], "%")
    yield Figure("sent to each viewer a second", figures["kb_a_second"], "kB")
