"""A bill whose lines find no room in the database is read again, and its file is kept until then."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from tests.webapp.reports.test_cloud_bills import Scene
from tests.webapp.spoiled_database import fill
from webapp.database.storage_faults import FULL
from webapp.reports.bills import bill_reading
from webapp.reports.models import BilledLine, CloudBill, FileState

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite's size can be limited from within")
def test_a_bill_whose_lines_find_no_room_waits_until_there_is_some(settings: Any, tmp_path: Any) -> None:
    settings.STARLING_DATA = tmp_path
    scene = Scene()
    lines = [scene.cur("0.01", **{"identity/LineItemId": f"line {number}"}) for number in range(2000)]
    file = scene.file(*lines)
    size = len(file.getvalue())
    bill = bill_reading.accept_bill(
        project=scene.project, user=scene.owner, name="bill.csv", file=file, size=size
    )
    mend = fill()
    bill_reading.BILL_READING.run(bill.pk)
    bill.refresh_from_db()
    assert bill.state == FileState.QUEUED
    assert bill.reason.startswith(FULL.why)
    assert list(tmp_path.rglob(f"{bill.pk}.csv"))
    assert not BilledLine.objects.exists()
    mend()
    bill_reading.BILL_READING.run(bill.pk)
    bill.refresh_from_db()
    assert (bill.state, bill.reason, bill.row_count) == (FileState.READY, "", 2000)
    assert CloudBill.objects.count() == 1
