"""A kind of training is one file and one row: one for tests alone passes everything that a real one has to."""

import os
import subprocess
import sys
from pathlib import Path

from tests.quadratic.copied import copy_with_quadratics

_TESTS = ("tests/quadratic/in_copy.py", "tests/quadratic/pages_in_copy.py")


def test_one_file_and_one_row_are_a_kind_of_training(tmp_path: Path) -> None:
    copy_with_quadratics(tmp_path)
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_TESTS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
