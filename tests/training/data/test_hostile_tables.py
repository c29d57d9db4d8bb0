"""What is wrong with a table is said in one sentence with its row and column, before anything is made of it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.data.refused_tables import BODY, prepared, refusal
from training.data.readers.choice import Choice, check
from training.data.readers.survey import survey
from training.data.readers.tables import TableRefused, open_table
from training.data.store import MemoryStore


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "The file is empty."),
        ("\n\n\n", "The first row has one column."),
        ("a b c\n1 2 3\n", "The first row has one column."),
        ("a,b\n", "The table has no rows below its names."),
        ("a,b,a\n1,2,3\n", "Row 1: columns 1 and 3 are both named “a”."),
        (BODY + "1,2\n", "Row 102 has 2 cells, and the first row has 4. Column 3 is where they differ"),
        (
            BODY + "1,2,red,1,5\n",
            "Row 102 has 5 cells, and the first row has 4. Column 5 is where they differ",
        ),
        (BODY + '1,2,"red,1\n', "Row 102 cannot be read (unexpected end of data)."),
        (BODY.encode() + b"1,2,r\xe9d,1\n", "Line 102 is not UTF-8 text (byte 0xE9 at letter 6)."),
        (BODY.encode("utf-16"), "The file is UTF-16 text."),
        (BODY.encode("utf-16-le"), "This is no text: it holds NUL characters."),
        (
            ",".join(f"x{at}" for at in range(2001)) + "\n",
            "The table has 2,001 columns; at most 2,000 are allowed.",
        ),
        (gzip.compress(BODY.encode())[:-100], "The packed file is damaged or incomplete"),
        (b"PK\x03\x04 and no more", "The archive cannot be read"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: str | bytes, words: str) -> None:
    assert refusal(tmp_path, content).startswith(words)


@pytest.mark.parametrize(
    ("row", "choice", "words"),
    [
        ("", {"target": "z"}, "The table has no column “z”."),
        ("", {"target": ""}, "Choose the target."),
        ("", {"target": "b"}, "“b” holds fractions."),
        ("", {"target": "y", "leave_out": ["a", "b", "colour"]}, "No column is left to learn from."),
        ("", {"target": "y", "leave_out": ["other"]}, "The table has no column “other”."),
        ("1,2,red,\n", {"target": "y"}, "Row 102, column “y” has no value (1 row without one)."),
        ("x,2,red,1\n", {"target": "y"}, "Row 102, column “a”: “x” is not a number."),
        ("nan,2,red,1\n", {"target": "y"}, "Row 102, column “a”: “nan” is not a finite number."),
        ("1,-Infinity,red,1\n", {"target": "y"}, "Row 102, column “b”: “-Infinity” is not a finite number."),
        (
            "1,2,red,maybe\n",
            {"target": "y"},
            "Row 102, column “y”: “maybe” is not a number. Every row needs its class",
        ),
    ],
)
def test_a_choice_that_cannot_be_learned_is_refused(
    tmp_path: Path, row: str, choice: dict[str, Any], words: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(BODY + row)
    found = survey(open_table(path))
    problems = check(found, Choice.model_validate(choice))
    assert problems[0].sentence.startswith(words)
    store = MemoryStore()
    with pytest.raises(TableRefused, match=problems[0].sentence[:20].replace("(", r"\(")):
        prepared(path, Choice.model_validate(choice), store)
    assert not store._contents


def test_a_column_with_a_fault_may_be_left_out_or_taken_as_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(BODY + "x,2,red,1\n")
    found = survey(open_table(path))
    assert found.columns[0].problem == "Row 102, column “a”: “x” is not a number."
    for choice in (Choice(target="y", leave_out=("a",)), Choice(target="y", as_text=("a",))):
        made = prepared(path, choice)
        assert made.rows + made.held_out_rows == 101


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("constant", "“constant” has the same value (3) in every row."),
        ("name", "“name” is text with 200 different values."),
        ("id", "“id” has more than 1,000 different values."),
    ],
)
def test_a_target_needs_two_classes_or_more_and_not_too_many(tmp_path: Path, target: str, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "x,constant,name,id\n" + "".join(f"{at},3,person {at % 200},{at}\n" for at in range(1200))
    )
    (problem,) = check(survey(open_table(path)), Choice(target=target))
    assert problem.field == "target"
    assert problem.sentence.startswith(words)


def test_a_table_of_few_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,0\n2,1\n")
    (problem,) = check(survey(open_table(path)), Choice(target="y"))
    assert problem.sentence == "The table has 2 rows; at least 10 are needed."


@pytest.mark.parametrize("number", ["1e300", "-1.7e308", "3.5e38"])
@pytest.mark.parametrize("other", ["1", "red"])
def test_a_number_that_no_feature_can_hold_is_named(tmp_path: Path, number: str, other: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + f"3e38,{other},1\n" * 20 + f"{number},{other},0\n" * 20)
    found = survey(open_table(path))
    (problem,) = check(found, Choice(target="y"))
    assert problem.sentence.startswith(f"Row 22, column “a”: “{number}” is too large a number.")
    np.savez(tmp_path / "t.npz", a=[float(number)] * 20, y=np.arange(20) % 2)
    (problem,) = check(survey(open_table(tmp_path / "t.npz")), Choice(target="y"))
    assert "is too large a number." in problem.sentence


def test_numbers_that_are_not_finite_may_be_taken_as_text(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, a=[np.inf, np.nan] * 10, y=np.arange(20) % 2)
    choice = Choice(target="y", as_text=("a",))
    made = prepared(path, choice)
    assert {one.type for one in made.columns} == {"number indicator"}
