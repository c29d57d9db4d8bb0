"""The order of the tests: files that take longest come first, so that no process ends long after the others.

`durations.json` beside this file holds what files took on a quiet machine. `python -m tests.longest_first` writes it
from the last run's record. Within a file the order is random; with `--random-files` files are in random order too.
"""

import json
from pathlib import Path

import pytest

from tests.durations import RECORD, seconds_by_file

_KNOWN = Path(__file__).with_name("durations.json")
_WORTH_KNOWING_S = 2.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--random-files", action="store_true", help="leave files in random order")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--random-files"):
        known: dict[str, float] = json.loads(_KNOWN.read_text(encoding="utf-8"))
        items.sort(key=lambda item: -known.get(item.nodeid.partition("::")[0], 0.0))


if __name__ == "__main__":
    found = json.loads(RECORD.read_text(encoding="utf-8"))["tests"]
    worth = {file: round(s) for file, s in seconds_by_file(found).most_common() if s >= _WORTH_KNOWING_S}
    _KNOWN.write_text(json.dumps(worth, indent=1) + "\n", encoding="utf-8")
