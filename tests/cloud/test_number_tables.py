"""What is written about the simulated cloud is what it calculates with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cloud.money.billing.parts import bill_parts
from cloud.money.billing.round_times import PAPERS
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.as_tables import markdown, rows
from cloud.timing.numbers.quantity import quantities

DOCS = Path(__file__).resolve().parents[2] / "docs"
WORDS = (DOCS / "simulated-cloud.md").read_text("utf-8")


def test_the_table_of_numbers_is_that_of_the_files() -> None:
    assert (DOCS / "simulated-cloud-numbers.md").read_text("utf-8") == markdown(), (
        "write it again: python -m cloud.timing.numbers.as_tables docs/simulated-cloud-numbers.md"
    )


@pytest.mark.parametrize("name", ["lambda", "aci-today"])
def test_every_number_is_a_row_with_its_source(name: str) -> None:
    model = profiles.load(name)
    assert [row.source for row in rows(model)] == [one.source for one in quantities(model).values()]
    assert {row.unit for row in rows(model) if row.name.endswith("mbit_per_s")} == {"Mbit/s"}


def test_every_number_is_explained_in_words() -> None:
    models = [profiles.load(name) for name in profiles.names()] + [
        stacks.load(name) for name in stacks.names()
    ]
    names = {
        path[-1] if path[0] != "environment_step_us" else path[0]
        for model in models
        for path in quantities(model)
    }
    explained = set(re.findall(r"`([a-z_]+)`", WORDS))
    assert names - explained == set()


def test_every_part_of_the_bill_and_every_formula_is_explained() -> None:
    for part in bill_parts():
        assert f"| {part.title} |" in WORDS
    for name in PAPERS:
        assert f"`{name}`" in WORDS


def test_the_commands_exist() -> None:
    commands = set(re.findall(r"manage\.py ([a-z-]+)", WORDS))
    assert commands == {"train", "retime", "calibrate"}
    folder = Path(__file__).resolve().parents[2] / "webapp"
    for command in commands:
        assert list(folder.glob(f"**/commands/{command}.py"))
