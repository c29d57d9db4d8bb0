"""A loop is one file and one row: one for tests alone is run, forecast, billed, timed again and shown as all others."""

from pathlib import Path

import pytest

from tests.copied_code import copy_with, run_in_copy

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
    run_in_copy(tmp_path, "tests/backup_actors/in_copy.py")
