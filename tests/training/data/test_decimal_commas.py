"""Numbers with decimal commas in a table: read, or asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.data.readers.opening import open_table
from training.data.readers.survey import survey
from training.data.readers.tables import TableFile


def _written(folder: Path, lines: list[str]) -> Path:
    path = folder / "table.csv"
    path.write_text("\n".join(lines))
    return path


def decimal_commas(tmp_path: Path, cells: list[str], delimiter: str = ";") -> TableFile:
    quoted = [f'"{cell}"' if delimiter == "," else cell for cell in cells]
    lines = [f"name{delimiter}price{delimiter}y"]
    lines += [
        f"{'Ada, the first' if delimiter != ',' else 'Ada'}{delimiter}{one}{delimiter}1" for one in quoted
    ]
    return open_table(_written(tmp_path, lines))


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_decimal_commas_are_numbers(tmp_path: Path, delimiter: str) -> None:
    table = decimal_commas(tmp_path, ["1,5", "-0,25", "1,234", "2e1", "3", ""], delimiter)
    found = survey(table)
    price = found.column("price")
    assert price is not None
    assert (price.type, price.low, price.high, price.missing, price.problem) == ("number", -0.25, 20.0, 1, "")
    if delimiter != ",":
        assert found.first_rows[0][0] == "Ada, the first"
    numbers = next(iter(table.pieces(["price"]))).columns[0]
    assert [float(one or "nan") for one in numbers][:3] == [1.5, -0.25, 1.234]


def test_a_file_of_decimal_commas_is_read_at_once_too(tmp_path: Path) -> None:
    lines = ["a;b;y", *(f"{at},5;-{at},25;{at % 2}" for at in range(50))]
    table = open_table(_written(tmp_path, lines))
    piece = next(iter(table.pieces(table.names)))
    assert [float(one) for one in piece.columns[0]] == [at + 0.5 for at in range(50)]
    found = survey(table)
    assert [one.type for one in found.columns] == ["number"] * 3
