"""What a person chose to learn from a table, and why that cannot be learned, field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from training.base_model import FrozenModel
from training.data.dataset import MOST_NAME_LETTERS
from training.data.readers.survey import MOST_VALUES, ColumnSurvey, TableSurvey

FEWEST_ROWS = 10
MOST_TEXT_CLASSES = 100
ColumnName = Annotated[str, Field(max_length=MOST_NAME_LETTERS)]
MOST_NUMBERS = 20_000
"""Of a row, where they are no picture: each is named in the manifest."""


class Choice(FrozenModel):
    """`as_text`: columns of numbers that are names of categories. `place_bits`: text is hashed into 2^b places."""

    target: ColumnName
    leave_out: tuple[ColumnName, ...] = Field((), max_length=2000)
    as_text: tuple[ColumnName, ...] = Field((), max_length=2000)
    held_out_share: float = Field(0.2, ge=0.01, le=0.9)
    seed: int = Field(0, ge=0, le=2**31 - 1)
    place_bits: int = Field(16, ge=8, le=22)


@dataclass(frozen=True)
class ChoiceProblem:
    """`field` is one of the choice's."""

    field: str
    sentence: str


def features(table: TableSurvey, choice: Choice) -> list[ColumnSurvey]:
    """Return the columns that are learned from."""
    return [one for one in table.columns if one.name != choice.target and one.name not in choice.leave_out]


def check(table: TableSurvey, choice: Choice) -> list[ChoiceProblem]:
    """Return why this cannot be learned; empty if it can."""
    known = {column.name for column in table.columns}
    found = [
        ChoiceProblem(field, f"The table has no column “{name}”.")
        for field, names in (("leave_out", choice.leave_out), ("as_text", choice.as_text))
        for name in names
        if name not in known
    ]
    target = table.column(choice.target)
    if target is None:
        words = f"The table has no column “{choice.target}”." if choice.target else "Choose the target."
        return [*found, ChoiceProblem("target", words)]
    if sentence := _target_problem(target):
        found.append(ChoiceProblem("target", sentence))
    chosen = features(table, choice)
    if not chosen:
        found.append(ChoiceProblem("leave_out", "No column is left to learn from. Leave out fewer."))
    picture = len(chosen) == 1 and chosen[0].picture is not None and chosen[0].bytes_exactly
    numbers = 0 if picture else sum(column.width for column in chosen)
    if numbers > MOST_NUMBERS:
        words = f"A row would have {numbers:,} numbers; at most {MOST_NUMBERS:,} are allowed, except in one picture."
        found.append(ChoiceProblem("leave_out", words))
    for column in chosen:
        if sentence := _feature_problem(column, target, column.name in choice.as_text):
            found.append(ChoiceProblem("leave_out", sentence))
    return found


def _target_problem(target: ColumnSurvey) -> str:
    name = f"“{target.name}”"
    if target.type == "unusable":
        return f"{name} cannot be the target: {target.problem}."
    if target.problem:
        return f"{target.problem} Every row needs its class in the target."
    if target.missing:
        return (
            f"Row {target.first_missing:,}, column {name} has no value ({_rows(target.missing)} without one). Every row"
            " needs its class: remove such rows, or choose another target."
        )
    if target.rows < FEWEST_ROWS:
        return f"The table has {_rows(target.rows)}; at least {FEWEST_ROWS} are needed."
    if target.width != 1:
        return f"{name} has {target.width:,} numbers a row. A target has one class a row."
    if target.distinct == 1:
        value = f" ({target.values[0][0]})" if target.values else ""
        return f"{name} has the same value{value} in every row. A target needs two classes or more."
    if target.type in ("text", "words") and (target.distinct is None or target.distinct > MOST_TEXT_CLASSES):
        count = f"more than {MOST_VALUES:,}" if target.distinct is None else f"{target.distinct:,}"
        return (
            f"{name} is text with {count} different values. A target holds classes: numbers, or at most"
            f" {MOST_TEXT_CLASSES} names."
        )
    if target.type == "number" and not target.whole and (target.distinct or MOST_VALUES) > 2:
        return f"{name} holds fractions. A target holds classes, such as 0 and 1: divide its numbers into classes."
    if target.distinct is None:
        return (
            f"{name} has more than {MOST_VALUES:,} different values. A target holds at most so many classes."
        )
    return ""


def _feature_problem(one: ColumnSurvey, target: ColumnSurvey, as_text: bool) -> str:
    name = f"“{one.name}”"
    if one.type == "unusable":
        return f"{name} cannot be learned from: {one.problem}. Leave it out."
    if one.rows != target.rows:
        return (
            f"{name} has {_rows(one.rows)} and the target “{target.name}” has {target.rows:,}. Leave it out, or choose"
            " another target."
        )
    if one.problem and not as_text:
        return f"{one.problem} Correct it, leave the column out, or take it as text."
    if as_text and one.width != 1:
        return f"{name} has {one.width:,} numbers a row, so it cannot be taken as text."
    return ""


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
