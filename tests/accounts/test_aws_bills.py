"""Bills of one month as AWS wrote them on two consecutive days: the later one replaces the earlier one.

The environment names the two files of a real account, the earlier first. Without them two are written as AWS's are.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.webapp.reports.test_cloud_bills import Scene
from tests.webapp.reports.test_later_bills import billed, cur
from webapp.reports.models import BilledLine, FileState

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bills() -> tuple[bytes, bytes]:
    """Both files, plain or packed by gzip."""
    if "STARLING_TEST_AWS_BILLS" in os.environ:
        earlier, later = os.environ["STARLING_TEST_AWS_BILLS"].split(os.pathsep)
        return Path(earlier).read_bytes(), Path(later).read_bytes()
    days = ((1, "1.20"), (2, "1.80")), ((1, "1.20"), (2, "1.85"), (3, "0.05"))
    earlier_file, later_file = (
        Scene().file(*(cur(day, usd, printed=printed) for day, usd in lines)).getvalue()
        for printed, lines in zip((3, 4), days, strict=True)
    )
    return earlier_file, later_file


def test_the_later_of_two_bills_of_a_month_counts_alone(bills: tuple[bytes, bytes]) -> None:
    both, later_alone = Scene(), Scene()
    for number, bill in enumerate(bills):
        read = both.read_text(bill, name=f"bill-{number}.csv")
        assert read.state == FileState.READY, read.reason
    later_alone.read_text(bills[1], name="bill-1.csv")
    assert billed(both) == billed(later_alone)
    lines = [BilledLine.objects.filter(project=scene.project).count() for scene in (both, later_alone)]
    assert lines[0] == lines[1] > 0
