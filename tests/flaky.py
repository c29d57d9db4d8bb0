"""Finds tests that fail by luck: `python -m tests.flaky [ROUNDS] [--quick]`, or `make check-flaky`.

Each round runs all tests of several processes or a browser, in another random order, while two programs burn all the
CPU they get; with --quick it runs everything that `make test` does. A test that failed in any round is listed with its
rounds; then the exit status is 1.
"""

import argparse
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from rig.servers import ROOT, server_process

BURNERS = 2
_SEVERAL_PROCESSES = "(stack or browser) and not endurance"
_QUICK = "not slow"
_BURN = [sys.executable, "-c", "while True: pass"]


def main(rounds: int, chosen: str) -> int:
    folder = ROOT / "var" / "check" / "flaky"
    folder.mkdir(parents=True, exist_ok=True)
    failed_in: dict[str, list[int]] = defaultdict(list)
    with ExitStack() as burning:
        for _ in range(BURNERS):
            burning.enter_context(server_process(_BURN))
        for number in range(1, rounds + 1):
            began = time.monotonic()
            failed = _round(number, folder, chosen)
            for test in failed:
                failed_in[test].append(number)
            print(f"round {number}: {len(failed)} failed, {time.monotonic() - began:.0f} s", flush=True)
    for test, numbers in sorted(failed_in.items()):
        print(f"{test}: failed in {len(numbers)} of {rounds} rounds ({', '.join(map(str, numbers))})")
    return 1 if failed_in else 0


def _round(number: int, folder: Path, chosen: str) -> list[str]:
    """The names of the tests that failed; a run that could not even begin counts as one."""
    report, log = folder / f"{number}.xml", folder / f"{number}.log"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-m", chosen, "-n", "2", "--dist", "worksteal"]
    command += ["--random-files", "-p", "randomly", f"--randomly-seed={number * 7919}"]
    command += ["--longest-test", "3600"]
    with open(log, "wb") as output:
        ended = subprocess.run(
            [*command, f"--junit-xml={report}"], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
    if not report.exists():
        return [f"the run itself (exit {ended.returncode}, see {log})"]
    return failed_tests(report)


def failed_tests(report: Path) -> list[str]:
    """Return the names of the tests that failed in a run, from its JUnit report."""
    return [
        f"{case.get('classname')}::{case.get('name')}"
        for case in ElementTree.parse(report).getroot().iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Find tests that fail by luck.")
    parser.add_argument("rounds", nargs="?", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="all that `make test` runs")
    given = parser.parse_args()
    sys.exit(main(given.rounds, _QUICK if given.quick else _SEVERAL_PROCESSES))
