"""What is said of a cloud bill that cannot be read, and of a file that keeps no rules of FOCUS."""

from __future__ import annotations

import pytest

from tests.factories import make_project
from tests.webapp.bill_lines import CUR, cur_line, read
from tests.webapp.reports.test_focus import exported, problems_of, spoilt

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


def test_a_file_that_breaks_a_rule_of_focus() -> None:
    text = exported()
    for column, value, sentence in (
        ("BillingAccountName", "N/A", "BillingAccountName is 'N/A'; what is unknown is an empty cell."),
        (
            "ChargeCategory",
            "Cost",
            "ChargeCategory is 'Cost'; it may be Usage, Purchase, Tax, Credit, Adjustment.",
        ),
        (
            "ServiceSubcategory",
            "Object Storage",
            "ServiceSubcategory 'Object Storage' is not within Compute.",
        ),
        ("PricingUnit", "", "PricingUnit and PricingQuantity are both empty or neither is."),
    ):
        assert f"Line 2: {sentence}" in problems_of(text, spoilt(column, value))
    (category,) = problems_of(text, spoilt("ServiceCategory", "Computing"))
    assert category.startswith(
        "Line 2: ServiceCategory is 'Computing'; it may be AI and Machine Learning, Analytics, Business"
    )
