"""What is wrong with a table is said in one sentence with its row and column, before anything is made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.training.data.refused_tables import BODY, prepared
from training.data.readers.choice import Choice, check
from training.data.readers.opening import open_table
from training.data.readers.survey import survey


def test_a_column_with_a_fault_may_be_left_out_or_taken_as_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(BODY + "x,2,red,1\n")
    found = survey(open_table(path))
    assert found.columns[0].problem.startswith("Row 102, column “a”: ")
    for choice in (Choice(target="y", leave_out=("a",)), Choice(target="y", as_text=("a",))):
        made = prepared(path, choice)
        assert made.rows + made.held_out_rows == 101


def test_a_table_of_few_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,0\n2,1\n")
    (problem,) = check(survey(open_table(path)), Choice(target="y"))
    assert problem.field == "target"
    assert "at least 10 " in problem.sentence


@pytest.mark.parametrize("number", ["1e300", "-1.7e308", "3.5e38"])
@pytest.mark.parametrize("other", ["1", "red"])
def test_a_number_that_no_feature_can_hold_is_named(tmp_path: Path, number: str, other: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + f"3e38,{other},1\n" * 20 + f"{number},{other},0\n" * 20)
    found = survey(open_table(path))
    (problem,) = check(found, Choice(target="y"))
    assert problem.sentence.startswith(f"Row 22, column “a”: “{number}” ")
    np.savez(tmp_path / "t.npz", a=[float(number)] * 20, y=np.arange(20) % 2)
    (problem,) = check(survey(open_table(tmp_path / "t.npz")), Choice(target="y"))
    assert problem.sentence.startswith("Row 1, column “a”: ")


def test_numbers_that_are_not_finite_may_be_taken_as_text(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, a=[np.inf, np.nan] * 10, y=np.arange(20) % 2)
    choice = Choice(target="y", as_text=("a",))
    made = prepared(path, choice)
    assert {one.type for one in made.columns} == {"number indicator"}
