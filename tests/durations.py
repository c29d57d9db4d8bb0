"""Records how long every test and every fixture took, and says at the end where the time went.

Each run writes `var/check/durations.json`. Seconds are wall seconds in the process that ran the test.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from rig.servers import ROOT

RECORD = ROOT / "var" / "check" / "durations.json"
_SLOWEST = 20
_FIXTURES = 10

Phases = dict[str, float]
"""Seconds of a test's set-up, call and teardown."""


class Durations:
    """One run's record. With pytest-xdist every process sends its fixtures' seconds along with its tests' reports."""

    def __init__(self) -> None:
        self._being_set_up: list[float] = []  # one entry a fixture: seconds of the fixtures that it asked for
        self._fixtures_of_this_test: Counter[str] = Counter()
        self._tests: dict[str, Phases] = {}
        self._fixtures: Counter[str] = Counter()
        self._times: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        """A fixture's own seconds are those without the fixtures that it asked for."""
        began = time.perf_counter()
        self._being_set_up.append(0.0)
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - began
            own = seconds - self._being_set_up.pop()
            if self._being_set_up:
                self._being_set_up[-1] += seconds
            self._fixtures_of_this_test[fixturedef.argname] += own

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[Any]:
        report = yield
        report.fixture_seconds = dict(self._fixtures_of_this_test)
        self._fixtures_of_this_test.clear()
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        phases = self._tests.setdefault(report.nodeid, {})
        phases[report.when] = phases.get(report.when, 0.0) + report.duration
        for name, seconds in getattr(report, "fixture_seconds", {}).items():
            self._fixtures[name] += seconds
            self._times[name] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._tests and not hasattr(terminalreporter.config, "workerinput"):
            self._write()
            terminalreporter.section(f"where the time went (all of it: {RECORD.relative_to(ROOT)})")
            for line in self._summary():
                terminalreporter.write_line(line)

    def _write(self) -> None:
        fixtures = {name: {"seconds": s, "times": self._times[name]} for name, s in self._fixtures.items()}
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(
            json.dumps({"tests": self._tests, "fixtures": fixtures}, indent=1), encoding="utf-8"
        )

    def _summary(self) -> Iterator[str]:
        tests = Counter({test: sum(phases.values()) for test, phases in self._tests.items()})
        folders: Counter[str] = Counter()
        for file, seconds in seconds_by_file(self._tests).items():
            folders[os.path.dirname(file)] += seconds
        for rows, word in ((tests.most_common(_SLOWEST), ""), (folders.most_common(), "all of ")):
            yield from (f"{seconds:8.1f} s  {word}{name}" for name, seconds in rows)
        for name, seconds in self._fixtures.most_common(_FIXTURES):
            yield f"{seconds:8.1f} s  fixture {name}, set up {self._times[name]} times"


def seconds_by_file(tests: dict[str, Phases]) -> Counter[str]:
    """What the tests of each file took together."""
    files: Counter[str] = Counter()
    for test, phases in tests.items():
        files[test.partition("::")[0]] += sum(phases.values())
    return files
