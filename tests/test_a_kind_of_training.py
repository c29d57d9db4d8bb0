"""A kind of training is one file and one row: one for tests alone passes everything that a real one has to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quadratic.copied import copy_with_quadratics


@pytest.mark.parametrize("what", ["in_copy", pytest.param("pages_in_copy", marks=pytest.mark.slow)])
def test_one_file_and_one_row_are_a_kind_of_training(what: str, tmp_path: Path) -> None:
    copy_with_quadratics(tmp_path)
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/quadratic/{what}.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
