"""A loop is one file and one row: one for tests alone is run, forecast, billed, timed again and shown as all others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quadratic.copied import copy_with

_HERE = Path(__file__).resolve().parent
_ROW = {
    "training/loops/model.py": [
        ("Asynchronous | StalenessAware,", "Asynchronous | StalenessAware | Backup,"),
        (
            "from training.loops.epochs",
            "from training.loops.backup import Backup\nfrom training.loops.epochs",
        ),
    ]
}


@pytest.mark.slow
def test_one_file_and_one_row_are_a_loop(tmp_path: Path) -> None:
    copy_with(tmp_path, {_HERE / "backup_actors" / "loop.py": "training/loops/backup.py"}, _ROW)
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/backup_actors/in_copy.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
