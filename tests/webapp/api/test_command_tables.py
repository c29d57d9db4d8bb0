"""What the command shows: tables, and figures as people read them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from client.tables import TablePart, shown, usd


class TestShowing:
    def test_numbers_stand_to_the_right_with_their_units(self) -> None:
        rows = [
            {"id": "job_a", "spent": "12.5", "steps": 1234567, "s": 90.0, "inner": {"mb": 512}},
            {"id": "job_bcd", "spent": "0.000123456", "steps": 5, "s": 7200.0, "inner": None},
        ]
        part = TablePart("job=id spent:usd steps:whole took=s:seconds missing of_memory=inner.mb:mb")
        assert shown(rows, [part]).splitlines() == [
            f"job          spent{'steps':>11}     took  of memory",
            "job_a       $12.50  1,234,567  1.5 min     512 MB",
            "job_bcd  $0.000123          5    2.0 h          –",
        ]

    def test_names_of_others_move_no_cursor(self) -> None:
        name = "a\x1b[2Jb\x9b31mc\r\nd\x7f"
        parts = [TablePart("name"), TablePart("name", tall=True), TablePart(at="name")]
        for part in parts:
            (line,) = (one for one in shown({"name": name}, [part]).split("\n") if "a" in one and "b" in one)
            assert line.split("name")[-1].strip() == "a [2Jb 31mc  d"

    def test_one_thing_and_lines_and_what_is_not_there(self) -> None:
        answer = {"name": "x", "why": "", "words": ["One.", "Two."], "rows": []}
        parts = [
            TablePart("name the_reason=why", tall=True),
            TablePart(at="words"),
            TablePart("a", at="rows"),
        ]
        assert shown(answer, parts).splitlines() == ["name        x", "the reason  –", "", "One.", "Two."]

    @pytest.mark.parametrize(
        ("text", "read"),
        [("0", "$0.00"), ("1234.567", "$1,234.57"), ("0.5", "$0.500"), ("0.0312", "$0.0312")],
    )
    def test_dollars_are_as_on_pages(self, text: str, read: str) -> None:
        from webapp.formatting import display_usd
        from webapp.money.amounts import picodollars

        assert usd(text) == read == display_usd(picodollars(Decimal(text)))
