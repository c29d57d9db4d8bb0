"""Records how long every test took and what its fixtures cost: a pytest plugin.

Each run writes `var/check/durations.json` (or $STARLING_DURATIONS) and prints the slowest tests, the sum per folder and
what the fixtures cost. Seconds are wall seconds in the process that ran the test.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SLOWEST = 20


class Durations:
    """One run's record. With pytest-xdist every process reports fixtures along with its tests' reports."""

    def __init__(self) -> None:
        self._open: list[
            list[float]
        ] = []  # one entry a fixture being set up: seconds of the fixtures it asked for
        self._fixtures_of_this_test: Counter[str] = Counter()
        self.phases: dict[str, dict[str, float]] = {}
        self.fixtures: Counter[str] = Counter()
        self.fixture_set_ups: Counter[str] = Counter()
        self.processes: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """A fixture's own seconds: without those of the fixtures it asked for while it was set up."""
        started_s = time.perf_counter()
        self._open.append([])
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - started_s
            inner = sum(self._open.pop())
            if self._open:
                self._open[-1].append(seconds)
            self._fixtures_of_this_test[fixturedef.argname] += seconds - inner

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[Any]:
        report = yield
        if self._fixtures_of_this_test:
            report.starling_fixtures = dict(self._fixtures_of_this_test)
            self._fixtures_of_this_test.clear()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        phases = self.phases.setdefault(report.nodeid, {})
        phases[report.when] = phases.get(report.when, 0.0) + report.duration
        self.processes[report.nodeid] = getattr(report, "worker_id", "main")
        for name, seconds in getattr(report, "starling_fixtures", {}).items():
            self.fixtures[name] += seconds
            self.fixture_set_ups[name] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.phases:
            return
        path = Path(os.environ.get("STARLING_DURATIONS", ROOT / "var" / "check" / "durations.json"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps(
                {
                    "tests": self.phases,
                    "fixtures": self.fixtures,
                    "fixture_set_ups": self.fixture_set_ups,
                    "processes": self.processes,
                },
                indent=1,
            )
        )
        write = terminalreporter.write_line
        terminalreporter.section("durations")
        sums = {node: sum(phases.values()) for node, phases in self.phases.items()}
        for node, seconds in sorted(sums.items(), key=lambda row: -row[1])[:SLOWEST]:
            write(f"{seconds:8.1f} s  {node}")
        folders: Counter[str] = Counter()
        for node, seconds in sums.items():
            folders[os.path.dirname(node.partition("::")[0])] += seconds
        for folder, seconds in folders.most_common():
            write(f"{seconds:8.1f} s  in {folder}")
        for name, seconds in self.fixtures.most_common(SLOWEST):
            write(f"{seconds:8.1f} s  fixture {name}, set up {self.fixture_set_ups[name]} times")
