"""A network is one file and one row: one for tests alone learns, acts, is exported, billed and shown as all others."""

from pathlib import Path

import pytest

from tests.copied_code import copy_with, run_in_copy

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
    run_in_copy(tmp_path, "tests/squares/in_copy.py")
