"""A test that waits for ever costs its own place in the run, and says where it waits."""

import subprocess
import sys
from pathlib import Path

from rig.servers import ROOT

_TESTS = """
import threading
import time
from cloud.actor.watchdog import Watchdog

def test_waits():
    with Watchdog(60):
        pass
    threading.Event().wait()

def test_moves_the_clock(monkeypatch):
    real_s, looks = time.monotonic, []
    monkeypatch.setattr(time, "monotonic", lambda: real_s() + 3600 * len(looks))
    monkeypatch.setattr(time, "sleep", looks.append)
    time.sleep(2)
    threading.Event().wait(2)
    assert looks == [2]
"""


def test_a_test_that_waits_for_ever_fails_with_its_stack_and_the_others_run(tmp_path: Path) -> None:
    """Also where it used the watchdog of functions, which has a timer of stacks too. A test may move the clock."""
    file = tmp_path / "test_both.py"
    file.write_text(_TESTS)
    options = ["-n", "1", "-p", "tests.time_limit", "--longest-test", "5", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", "pyproject.toml", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 1
    assert "1 failed, 1 passed" in ended.stdout
    assert "crashed while running" in ended.stdout
    assert "test_waits has not ended" in ended.stderr
    assert "in test_waits" in ended.stderr
