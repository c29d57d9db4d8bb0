"""A large bill beside runs that write all the time: none of them waits so long that it matters."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import pairwise

import pytest
from django.db import connection

from rig.servers import server_process, wait_until
from tests.factories import make_job, make_project, make_spec
from tests.webapp.bill_lines import CUR, cur_line, hand_over
from tests.work import repeated
from webapp.database.leases import RENEW_EVERY
from webapp.jobs.models import Job
from webapp.reports.bills.bill_reading import BILL_READING
from webapp.reports.models import FileState

pytestmark = [pytest.mark.stack, pytest.mark.django_db(transaction=True)]
LOOK_EVERY_S = 0.2


@contextmanager
def leases_watched(seen: dict[str, list[datetime]]) -> Iterator[None]:
    """Each job's lease as it is renewed, until the block is over."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_EVERY_S):
            for job_id, expires_at in Job.objects.values_list("pk", "lease_expires_at"):
                if expires_at and expires_at not in seen[job_id][-1:]:
                    seen[job_id].append(expires_at)
        connection.close()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@repeated(60_000, endurance=500_000)
def test_no_lease_is_renewed_late_while_a_large_bill_is_read(
    service_environment: dict[str, str], times: int
) -> None:
    project = make_project()
    spec = make_spec(
        "cartpole", platform={"kind": "simulated"}, training__stop={"rounds": 1_000_000}, budget_usd="1000"
    )
    jobs = [make_job(project, spec=spec) for _ in range(3)]
    bill = hand_over(project, (CUR, *map(cur_line, range(times))))
    seen: dict[str, list[datetime]] = {job.pk: [] for job in jobs}
    with ExitStack() as stack:
        for job in jobs:
            command = [sys.executable, "manage.py", "run-job", job.pk, "--owner", f"owner-{job.pk}"]
            stack.enter_context(server_process(command, environment=service_environment))
        wait_until(
            lambda: Job.objects.filter(events__round_no__isnull=False).distinct().count() == len(jobs),
            within_s=300,
            what="all three run",
        )
        stack.enter_context(leases_watched(seen))
        BILL_READING.run(bill.pk)
    bill.refresh_from_db()
    assert (bill.state, bill.kept_count) == (FileState.READY, times)
    renewed = [later - earlier for times in seen.values() for earlier, later in pairwise(times)]
    late_s = max(renewed).total_seconds() - RENEW_EVERY.total_seconds()
    print(f"{len(renewed)} renewals, the latest {late_s:.2f} s after it was due")
    assert min(map(len, seen.values())) > 3
    assert late_s <= 3
    assert sum(Job.objects.values_list("crashes", flat=True)) == 0
