"""A network is one file and one row: one for tests alone learns, acts, is exported, billed and shown as all others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quadratic.copied import copy_with

_HERE = Path(__file__).resolve().parent
_ROW = {
    "training/rl/networks/__init__.py": [
        ("MLP | CNN,", "MLP | CNN | Squares,"),
        (
            "from training.rl.networks.network import Network\n",
            "from training.rl.networks.network import Network\nfrom training.rl.networks.squares import Squares\n",
        ),
    ]
}


@pytest.mark.slow
def test_one_file_and_one_row_are_a_network(tmp_path: Path) -> None:
    copy_with(tmp_path, {_HERE / "squares" / "network.py": "training/rl/networks/squares.py"}, _ROW)
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/squares/in_copy.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
