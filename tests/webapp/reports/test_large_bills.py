"""Large bills: no one waits for them, all of one counts at once or none, whatever becomes of its worker."""

from __future__ import annotations

import gc
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from tests.factories import make_project
from tests.webapp.bill_lines import CUR, FOCUS, cur_line, focus_line, hand_over, read
from webapp.background import TakenOver
from webapp.clock import SYSTEM_CLOCK
from webapp.reports.bills.bill_lines import CloudCharge
from webapp.reports.bills.bill_reading import BILL_READING
from webapp.reports.bills.bill_storing import BillAttempt, Survey, survey_lines, tidy
from webapp.reports.models import BilledLine, CloudBill, FileState


def amounts(project: Any) -> dict[str, int]:
    """What counts, by the resource that each line is for."""
    lines = BilledLine.objects.filter(project=project)
    return {resource: amount // 10**12 for resource, amount in lines.values_list("resource", "picodollars")}


def line(key: str, usd: int, account: str = "") -> CloudCharge:
    """A line of the first of the month: all of them cover the same days."""
    fields: dict[str, Any] = {
        "provider": "AWS",
        "service": "AWS Lambda",
        "billed_service_name": "AWSLambda",
        "what": "",
    }
    fields |= {"account": account, "period": date(2026, 11, 1), "day": date(2026, 11, 1)}
    return CloudCharge(resource=key, tags={}, picodollars=usd * 10**12, **fields)


def begin(bill_id: int) -> BillAttempt | None:
    attempt = BILL_READING.begin(bill_id, SYSTEM_CLOCK)
    return BillAttempt(attempt) if attempt is not None else None


def stored(
    project: Any,
    lines: list[CloudCharge],
    bill: CloudBill | None = None,
    passing: Callable[[CloudCharge], object] = lambda line: None,
) -> BillAttempt:
    """A worker that has written the lines of a bill, and not said yet how that ended."""
    fields = {"name": "", "imported_by": project.people.get(), "since": SYSTEM_CLOCK.now()}
    fields["replace_anyway"] = True
    bill = bill or CloudBill.objects.create(project=project, sha256=secrets.token_hex(32), **fields)
    attempt = begin(bill.pk)
    assert attempt is not None
    attempt.store((line for line in lines if not passing(line)), survey_lines(lines))
    return attempt


@contextmanager
def writes_watched(held_s: list[float]) -> Iterator[None]:
    """How much work each transaction does while it has the lock; not what it waits for the machine."""
    began_s = 0.0

    def note(statement: str) -> None:
        nonlocal began_s
        if statement.startswith(("BEGIN", "SAVEPOINT")):
            began_s = time.thread_time()
        elif statement.startswith(("COMMIT", "RELEASE")):
            held_s.append(time.thread_time() - began_s)

    connection.ensure_connection()
    connection.connection.set_trace_callback(note)
    gc.freeze()  # what all the other tests left in this process is not looked through while the lock is held
    try:
        yield
    finally:
        gc.unfreeze()
        connection.connection.set_trace_callback(None)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="others write beside each other on PostgreSQL")
@pytest.mark.django_db
def test_no_write_of_a_bill_holds_the_lock_for_long() -> None:
    project = make_project()
    held_s: list[float] = []
    for usd, count in (("0.01", 5000), ("0.2", 500)):
        bill = hand_over(project, [CUR, *(cur_line(at, usd) for at in range(count))])
        with writes_watched(held_s):
            BILL_READING.run(bill.pk)
    assert BilledLine.objects.filter(project=project, period__bill=bill).count() == 500
    assert BilledLine.every.filter(project=project).count() == 500
    assert len(held_s) > 10
    assert max(held_s) <= 0.2


@pytest.mark.django_db
def test_a_bill_counts_once_all_of_it_is_written() -> None:
    project = make_project()
    stored(project, [line(key, 1) for key in "abc"]).write(state=FileState.READY)
    seen = []
    lines = [line("a" if number == 0 else str(number), 5) for number in range(500)]
    attempt = stored(project, lines, passing=lambda one: seen.append(amounts(project)))
    assert BilledLine.every.filter(period__bill=attempt.bill).count() == 500
    seen.append(amounts(project))
    assert len(seen) == 501
    assert all(one == {"a": 1, "b": 1, "c": 1} for one in seen)
    attempt.write(state=FileState.READY)
    assert amounts(project) == {"a": 5} | {str(number): 5 for number in range(1, 500)}


@pytest.mark.django_db
def test_two_projects_may_hand_over_the_same_file() -> None:
    first, second = make_project(), make_project()
    pieces = [CUR, cur_line("a", 3)]
    bills = [hand_over(project, pieces) for project in (first, second)]
    for bill in bills:
        BILL_READING.run(bill.pk)
    assert amounts(first) == amounts(second) == {"arn:a": 3}


@pytest.mark.django_db
def test_a_file_handed_over_while_it_is_read_is_read_once() -> None:
    project = make_project()
    pieces = [CUR, cur_line("a", 3)]
    bill = hand_over(project, pieces)
    assert begin(bill.pk)
    again = hand_over(project, pieces)
    assert (again.pk, again.state) == (bill.pk, FileState.BUILDING)
    assert begin(bill.pk) is None


@pytest.mark.django_db
def test_bills_of_one_project_are_read_one_after_the_other() -> None:
    """Both may have the same line, and which of the two counts is for the later one to say."""
    project = make_project()
    first, second = (hand_over(project, [CUR, cur_line("a", usd)]) for usd in (1, 2))
    attempt = begin(first.pk)
    assert attempt
    assert begin(second.pk) is None
    attempt.write(state=FileState.FAILED)
    assert begin(second.pk)


@pytest.mark.django_db
def test_a_worker_that_was_thought_dead_writes_nothing_more() -> None:
    project = make_project()
    bill = hand_over(project, [CUR, cur_line("a", 3)])
    slow = begin(bill.pk)
    assert slow
    CloudBill.objects.update(since=SYSTEM_CLOCK.now() - timedelta(hours=1))
    BILL_READING.recover()
    BILL_READING.run(bill.pk)
    with pytest.raises(TakenOver):
        slow.store([], Survey())
    with pytest.raises(TakenOver):
        slow.store([line("b", 9)], survey_lines([line("b", 9)]))
    with pytest.raises(TakenOver):
        slow.write(state=FileState.FAILED)
    assert amounts(project) == {"arn:a": 3}


@pytest.mark.django_db
def test_one_id_twice_in_a_file_counts_twice() -> None:
    """AWS's ids are unique within a part of a report only, and parts may be joined to one file."""
    project = make_project()
    bill = read(project, [CUR, cur_line("a", 1), cur_line("b", 1), "\ufeff" + CUR, cur_line("a", 2)])
    found = BilledLine.objects.filter(project=project).values_list("resource", "picodollars")
    assert sorted(found) == [("arn:a", 10**12), ("arn:a", 2 * 10**12), ("arn:b", 10**12)]
    assert (bill.row_count, bill.kept_count) == (3, 3)


@pytest.mark.django_db
def test_lines_alike_are_as_many_as_the_file_has() -> None:
    project = make_project()
    pieces = [FOCUS, focus_line("x"), focus_line("y"), focus_line("x")]
    read(project, pieces)
    read(project, [*pieces, focus_line("z")])
    lines = BilledLine.objects.filter(project=project).values_list("resource", flat=True)
    assert sorted(lines) == ["x", "x", "y", "z"]


BILL = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9), min_size=1, max_size=6)
ENDS = st.sampled_from(["read", "dies", "fails", "dies tidying up"])


def _account(key: str) -> str:
    return "first" if key < "d" else "second"


class BillsInAnyOrder(TestCase):
    """Whatever becomes of the workers that read them, the bills that were read to their end are what counts."""

    @given(st.lists(st.tuples(BILL, ENDS, st.integers(0, 6)), min_size=1, max_size=6))
    @settings(max_examples=25)
    def test_what_counts_is_the_last_bill_of_each_account(
        self, bills: list[tuple[dict[str, int], str, int]]
    ) -> None:
        """A line's account is in the first half of the letters or in the second."""
        project = make_project()
        counted: dict[str, int] = {}
        for said, end, after in bills:
            rows = [line(key, usd, account=_account(key)) for key, usd in said.items()]
            bill = None
            if end == "dies":
                bill = stored(project, rows[:after]).bill
                CloudBill.objects.filter(pk=bill.pk).update(state=FileState.QUEUED)
                assert amounts(project) == counted
            attempt = stored(project, rows[: after if end == "fails" else None], bill)
            assert amounts(project) == counted
            attempt.write(state=FileState.FAILED if end == "fails" else FileState.READY)
            if end != "fails":
                replaced = {_account(key) for key in said}
                counted = {key: usd for key, usd in counted.items() if _account(key) not in replaced} | said
            assert amounts(project) == counted
            if end != "dies tidying up":
                tidy(CloudBill.objects.get(pk=attempt.bill.pk))
                assert amounts(project) == counted
        for found in CloudBill.objects.filter(project=project):
            tidy(found)
        assert amounts(project) == counted
        assert BilledLine.every.filter(project=project).count() == len(counted)
