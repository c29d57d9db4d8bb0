"""Bills made to cost memory: refused early, and what they take at their peak is measured."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator

import pytest

from tests.factories import make_project
from tests.memory import memory_peak
from tests.webapp.bill_lines import CUR, FOCUS, cur_line, focus_line, hand_over, read
from tests.work import calls_in
from webapp.reports.bills import bill_reading
from webapp.reports.models import BilledLine, FileState

pytestmark = pytest.mark.django_db
MEGABYTE = 2**20
SLACK_BYTES = 32 * MEGABYTE


def endless(piece: str, megabytes: int) -> Iterator[str]:
    repeated = piece * (MEGABYTE // len(piece))
    return (repeated for _ in range(megabytes))


def one_line() -> Iterator[str]:
    yield CUR
    yield from endless("x", 150)


def one_record_of_many_lines() -> Iterator[str]:
    """Each cell ends within its line, but the record goes on."""
    yield CUR
    yield from endless('"a\n",', 100)


def one_header() -> Iterator[str]:
    yield CUR.strip()
    yield from endless(",resourceTags/user:a", 100)


def wide_lines() -> Iterator[str]:
    """Each below the limit of a line, and of one cell; a thousand of them are not."""
    tags = json.dumps({f"starling:{at}": "x" for at in range(5000)}).replace('"', '""')
    yield FOCUS
    for at in range(100):
        yield focus_line(f"starling-{at}", tags=f'"{tags}"')


def lines_without_names() -> Iterator[str]:
    """Each is another, and four kilobytes long: kept whole, they are what the file is."""
    yield FOCUS
    for at in range(20_000):
        yield focus_line(f"machine-{at}" + "m" * 4000).replace("AWS Lambda", "AmazonRDS")


BOMBS = [
    pytest.param(one_line, "more than 262,144 letters", id="one line"),
    pytest.param(one_record_of_many_lines, "more than 262,144 letters", id="one record of many lines"),
    pytest.param(one_header, "letters", id="one header"),
    pytest.param(
        lambda: iter([CUR, *endless(cur_line(1), 50)]), "200 times its size", id="lines that pack too well"
    ),
]


@pytest.mark.parametrize(("made", "words"), BOMBS)
def test_a_small_file_that_unpacks_without_end_is_refused_early(
    made: Callable[[], Iterator[str]], words: str
) -> None:
    bill = hand_over(make_project(), made(), packed=True)
    with memory_peak() as peak:
        calls = calls_in(lambda: bill_reading.BILL_READING.run(bill.pk))
    bill.refresh_from_db()
    assert bill.state == FileState.FAILED
    assert words in bill.reason
    assert peak.grown_bytes <= SLACK_BYTES
    assert calls <= 8_000_000  # 5.8 million at most now, in 0.9 s


@pytest.mark.parametrize("made", [wide_lines, pytest.param(lines_without_names, marks=pytest.mark.slow)])
def test_lines_are_not_kept_while_others_are_read(made: Callable[[], Iterator[str]]) -> None:
    bill = hand_over(make_project(), made())
    with memory_peak() as peak:
        bill_reading.BILL_READING.run(bill.pk)
    bill.refresh_from_db()
    assert (bill.state, bill.reason) == (FileState.READY, "")
    assert peak.grown_bytes <= SLACK_BYTES


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (cur_line(2, usd="1e900000"), "Line 3 costs '1e900000'"),
        (cur_line(2, usd="Infinity"), "Line 3 costs 'Infinity'"),
        (cur_line(2, usd="99999999999"), "Line 3 costs '99999999999'"),
        (cur_line("\0"), "NUL"),
        (cur_line(2, day="9" * 200), "3 has the date '9999999999"),
    ],
    ids=["digits without end", "no end at all", "more than money", "no text", "no date"],
)
def test_what_no_line_of_a_bill_says_is_refused_in_words(line: str, words: str) -> None:
    bill = read(make_project(), [CUR, cur_line(1), line])
    assert bill.state == FileState.FAILED
    assert words in bill.reason
    assert len(bill.reason) < 200


def test_tags_nested_without_end_are_no_tags() -> None:
    nested = '{""a"":' * 15_000
    bill = read(make_project(), [FOCUS, focus_line("a", tags=f'"{nested}"')])
    assert (bill.state, bill.kept_count) == (FileState.READY, 1)
    assert BilledLine.objects.get().matched_by == "nothing"


PACKED = gzip.compress((CUR + "".join(map(cur_line, range(5000)))).encode(), mtime=0)


@pytest.mark.parametrize(
    "damaged", [PACKED[:-100], PACKED[:10] + b"\xff" * 100, PACKED + b"\x1f\x8b\x08\x00"]
)
def test_a_packed_file_that_is_damaged_is_refused_in_words(damaged: bytes) -> None:
    bill = read(make_project(), [damaged])
    assert bill.state == FileState.FAILED
    assert "cannot be read" in bill.reason or "no CSV file" in bill.reason
