"""A test that waits for ever costs its own place in the run, and says where it waits."""

import subprocess
import sys
from pathlib import Path

from tests.servers import ROOT

_TESTS = """
import threading

def test_waits():
    threading.Event().wait()

def test_passes():
    pass
"""


def test_a_test_that_waits_for_ever_fails_with_its_stack_and_the_others_run(tmp_path: Path) -> None:
    file = tmp_path / "test_both.py"
    file.write_text(_TESTS)
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), "-o", "faulthandler_timeout=5", str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 1
    assert "1 failed, 1 passed" in ended.stdout
    assert "crashed while running" in ended.stdout
    assert "in test_waits" in ended.stderr
