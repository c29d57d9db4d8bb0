"""What is said of a cloud bill that cannot be read."""

from __future__ import annotations

import pytest

from tests.factories import make_project
from tests.webapp.bill_lines import CUR, cur_line, read

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (cur_line(2, usd="a lot"), "Line 3 costs 'a lot', which is no number that a line costs."),
        (cur_line(2, usd="1e900000"), "Line 3 costs '1e900000', which is no number that a line costs."),
        (cur_line(2, day="9" * 20), f"Line 3 has the date '{'9' * 20}"),
    ],
)
def test_a_line_that_is_none(line: str, sentence: str) -> None:
    assert read(make_project(), [CUR, cur_line(1), line]).reason.startswith(sentence)
