"""A test that waits for ever ends its process, which says first where each thread waits.

With pytest-xdist that test fails, and another process runs the rest. The limit is for a test with its set-up and
teardown. It is a thread's, as Python's own timer of stacks belongs to the watchdog of functions (cloud/actor).
"""

import faulthandler
import os
import threading
from collections.abc import Iterator

# By their own names: tests put other clocks into the module.
from time import monotonic, sleep

import pytest

_LOOK_EVERY_S = 1.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--longest-test",
        type=float,
        default=900.0,
        metavar="SECONDS",
        help="end the process of a test that takes longer (900); 0: never",
    )


def pytest_configure(config: pytest.Config) -> None:
    limit_s: float = config.getoption("--longest-test")
    if limit_s:
        # Nothing is captured yet: this is where the run writes.
        config.pluginmanager.register(_Limit(limit_s, os.dup(2)), "starling-limit-of-a-test")


class _Limit:
    def __init__(self, limit_s: float, output: int) -> None:
        self._limit_s = limit_s
        self._output = output
        self._running: tuple[str, float] | None = None
        threading.Thread(target=self._watch, name="limit of a test", daemon=True).start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[object]:
        self._running = (item.nodeid, monotonic() + self._limit_s)
        try:
            return (yield)
        finally:
            self._running = None

    def _watch(self) -> None:
        while True:
            sleep(_LOOK_EVERY_S)
            running = self._running
            if running is not None and monotonic() > running[1]:
                said = f"\n{running[0]} has not ended after {self._limit_s:g} s. Its threads:\n"
                os.write(self._output, said.encode())
                faulthandler.dump_traceback(self._output)
                os._exit(1)
