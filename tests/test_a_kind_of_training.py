"""A kind of training is one file and one row: one for tests alone passes everything that a real one has to."""

from pathlib import Path

import pytest

from tests.copied_code import run_in_copy
from tests.quadratic.copied import copy_with_quadratics


@pytest.mark.parametrize("what", ["in_copy", pytest.param("pages_in_copy", marks=pytest.mark.slow)])
def test_one_file_and_one_row_are_a_kind_of_training(what: str, tmp_path: Path) -> None:
    copy_with_quadratics(tmp_path)
    run_in_copy(tmp_path, f"tests/quadratic/{what}.py")
