"""The order of the tests: files that take longest come first, so that no process ends long after the others.

pytest-xdist gives each process a part of the list, and those that are done take tests from the ends of the others'
parts. So files are dealt out, the longest first, and each process begins with long ones.

`durations.json` beside this file holds what tests took on a quiet machine. `python -m tests.longest_first` adds the
last run's record to it. Within a file the order is random; with `--random-files` files are in random order too.
"""

import json
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from tests.durations import RECORD

_KNOWN = Path(__file__).with_name("durations.json")
_WORTH_KNOWING_S = 1.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--random-files", action="store_true", help="leave files in random order")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--random-files"):
        known: dict[str, float] = json.loads(_KNOWN.read_text(encoding="utf-8"))
        seconds: Counter[str] = Counter()
        for item in items:
            seconds[_file(item)] += known.get(item.nodeid, 0.0)
        items.sort(key=lambda item: -seconds[_file(item)])
        process: dict[str, int] = getattr(config, "workerinput", {})
        items[:] = dealt(items, int(process.get("workercount", 1)))


def dealt(items: list[pytest.Item], processes: int) -> list[pytest.Item]:
    """The same tests, dealt file by file to whichever process has the fewest, one process's after another's."""
    parts: list[list[pytest.Item]] = [[] for _ in range(processes)]
    for _, file in groupby(items, key=_file):
        min(parts, key=len).extend(file)
    return [item for part in parts for item in part]


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


if __name__ == "__main__":
    known = json.loads(_KNOWN.read_text(encoding="utf-8"))
    for test, phases in json.loads(RECORD.read_text(encoding="utf-8"))["tests"].items():
        took_s = sum(phases.values())
        known.pop(test, None)
        if took_s >= _WORTH_KNOWING_S:
            known[test] = round(took_s)
    _KNOWN.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
