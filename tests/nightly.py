"""Runs whole what CI does not, and writes a report: `make nightly`, or `python -m tests.nightly`.

Every tier runs to its end, also after one that failed. The exit status is 1 if any failed.
"""

import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

from rig.servers import ROOT
from tests.flaky import failed_tests

TIERS = ("coverage", "test-slow", "test-postgres")
"""Targets of the Makefile."""
FOLDER = ROOT / "var" / "check" / "nightly"


def main(tiers: Sequence[str], folder: Path = FOLDER) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    lines = [f"# Nightly checks of {commit.stdout.strip()}, {time.strftime('%Y-%m-%d %H:%M %Z')}"]
    passed = True
    for tier in tiers:
        report, log = folder / f"{tier}.xml", folder / f"{tier}.log"
        report.unlink(missing_ok=True)
        began = time.monotonic()
        with open(log, "wb") as output:
            command = ["make", tier, f"ARGS=--junit-xml={report}"]
            ended = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        passed &= ended.returncode == 0
        lines += ["", *tier_lines(tier, ended.returncode, time.monotonic() - began, report, log)]
        (folder / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 0 if passed else 1


def tier_lines(tier: str, status: int, seconds: float, report: Path, log: Path) -> list[str]:
    """What the report says of a tier: tests, failures by name, and the last line it wrote."""
    heading = f"## make {tier}: {'passed' if status == 0 else 'failed'} in {seconds / 60:.0f} min"
    last = (log.read_text("utf-8", errors="replace").splitlines() or [""])[-1].strip()
    if not report.exists():
        return [heading, "", f"No test ran, see {log}. It ended with: `{last}`"]
    tests = sum(1 for _ in ElementTree.parse(report).getroot().iter("testcase"))
    failed = failed_tests(report)
    counted = f"{tests} tests, {len(failed)} failed. It ended with: `{last}`"
    return [heading, "", counted, *(f"- {name}" for name in failed)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or TIERS))
