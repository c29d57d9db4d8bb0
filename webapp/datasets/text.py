"""Texts about data sets: their states, their columns and the balance of their classes."""

from __future__ import annotations

from typing import NamedTuple

from training.data.readers.survey import ColumnSurvey, TableSurvey
from webapp.datasets.models import DataSet, DataState
from webapp.formatting import Status, Tone, bar_share, format_count, format_percent, plural

_STATUSES: dict[DataState, tuple[Tone, str, str]] = {
    DataState.QUEUED: ("waiting", "hourglass-split", "Waiting"),
    DataState.READING: ("running", "arrow-repeat", "Reading"),
    DataState.CHOOSING: ("warning", "crosshair", "Choose the target"),
    DataState.READY: ("ok", "check-circle-fill", "Ready"),
    DataState.FAILED: ("failed", "x-octagon-fill", "Not read"),
    DataState.DELETING: ("waiting", "trash", "Being deleted"),
}
_COLUMNS_SHOWN = 60
_VALUES_SHOWN = 4
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class ColumnRow(NamedTuple):
    """A column as people read it."""

    name: str
    type: str
    missing: str
    values: str
    problem: str
    may_be_text: bool
    picked_out: bool
    picked_text: bool


class ClassRow(NamedTuple):
    """A class of the target: its rows to learn from and held out, and its share of all rows as a bar."""

    name: str
    rows: int
    held_out: int
    share: str
    words: str


def status_of(data_set: DataSet) -> Status:
    tone, icon, word = _STATUSES[DataState(data_set.state)]
    waiting = data_set.state in (DataState.QUEUED, DataState.READING)
    return Status(tone, icon, word, _sentence(data_set), waiting)


def _sentence(data_set: DataSet) -> str:
    match data_set.state:
        case DataState.QUEUED:
            return data_set.reason or "The worker reads one table at a time."
        case DataState.READING:
            doing = (
                "Its rows are being divided into shards" if data_set.choice else "Its columns are being read"
            )
            return f"{doing}. The page updates itself."
        case DataState.CHOOSING:
            return data_set.reason or "Choose the column to predict."
        case DataState.READY:
            return "Jobs of this project can learn from it."
    return data_set.reason


def table_words(table: TableSurvey) -> str:
    """The table in one sentence."""
    size = f"{plural(table.rows, 'row')} of {plural(len(table.columns), 'column')}"
    if table.format == "npz":
        return f"{size}, an archive of NumPy."
    named = "" if table.named else " Its first row holds numbers, so columns are numbered."
    return f"{size}, divided by {_DELIMITERS.get(table.delimiter, table.delimiter)}.{named}"


def column_rows(
    table: TableSurvey, leave_out: set[str], as_text: set[str], *, decided: bool
) -> tuple[list[ColumnRow], list[ColumnRow]]:
    """The columns that are shown at once, and the others. `decided`: what is left out and taken as text is final."""
    rows = [_column_row(one, one.name in leave_out, one.name in as_text, decided) for one in table.columns]
    return rows[:_COLUMNS_SHOWN], rows[_COLUMNS_SHOWN:]


def _column_row(column: ColumnSurvey, picked_out: bool, picked_text: bool, decided: bool) -> ColumnRow:
    missing = "none"
    if column.missing:
        missing = f"{column.missing:,} ({format_percent(column.missing / max(1, column.rows))})"
    type_words = _type_words(column) + (", as text" if decided and picked_text else "")
    return ColumnRow(
        name=column.name,
        type="left out" if decided and picked_out else type_words,
        missing=missing,
        values=_values_words(column),
        problem="" if decided else column.problem,
        may_be_text=column.type == "number" and column.width == 1,
        picked_out=picked_out,
        picked_text=picked_text,
    )


def _type_words(column: ColumnSurvey) -> str:
    match column.type:
        case "unusable":
            return "not usable"
        case "words":
            return "text of words"
        case "text":
            return "text"
    kind = "whole number" if column.whole else "number"
    if column.picture:
        return f"picture, {column.picture[0]} × {column.picture[1]}"
    return kind if column.width == 1 else f"{column.width:,} {kind}s"


def _values_words(one: ColumnSurvey) -> str:
    """What is in the column: its most frequent values with their shares, or its range."""
    if one.type == "unusable":
        return ""
    if one.values:
        shown = [
            f"{_short(name)} {format_percent(count / max(1, one.rows - one.missing))}"
            for name, count in one.values
        ]
        more = len(shown) - _VALUES_SHOWN
        return " · ".join(shown[:_VALUES_SHOWN]) + (f" · {more} more" if more > 0 else "")
    if one.low is not None and one.high is not None and one.mean is not None:
        return f"{_number(one.low)} to {_number(one.high)}, mean {_number(one.mean)}"
    return (
        f"{format_count(one.distinct)} different" if one.distinct is not None else "more than 1,000 different"
    )


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 or value == int(value) else f"{value:.4g}"


def class_rows(data_set: DataSet) -> list[ClassRow]:
    """The balance of the target, in the order of the classes."""
    facts = data_set.facts
    whole = facts["rows"] + facts["held_out_rows"]
    counts = zip(facts["classes"], facts["class_counts"], facts["held_out_class_counts"], strict=True)
    return [
        ClassRow(
            name, rows, held_out, bar_share(rows + held_out, whole), format_percent((rows + held_out) / whole)
        )
        for name, rows, held_out in counts
    ]


def feature_words(data_set: DataSet) -> str:
    """The features in a few words."""
    facts = data_set.facts
    if facts["picture"]:
        return f"pictures of {facts['picture'][0]} × {facts['picture'][1]}"
    if facts["kind"] == "sparse":
        return f"{facts['width']:,} hashed"
    return plural(facts["width"], "number")
