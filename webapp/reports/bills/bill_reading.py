"""Clouds' bills handed over by people: kept until the worker has read them, each line stored once.

Reading the same file again changes nothing, and a later file replaces the lines that an earlier one had.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from django.db import transaction

from cloud.register import TAG_RUN, is_ours, run_of
from webapp.accounts.models import Project
from webapp.celery import app as celery_app
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import Job
from webapp.money.models import Charge, ChargeState
from webapp.reports.bills.bill_lines import BillLine, BillRefused, Layout, open_bill, read_lines
from webapp.reports.bills.difference import tell_if_far
from webapp.reports.building import ASK_AGAIN_AFTER, SILENT_FOR, folder
from webapp.reports.models import BilledLine, CloudBill, FileState, MatchedBy

log = logging.getLogger(__name__)

MOST_UPLOADED_BYTES = 200_000_000
_LINES_AT_ONCE = 1000
_SAID = ("bill", "day", "provider", "service", "what", "resource", "job", "matched_by", "picodollars")
_one_at_a_time = threading.Lock()


class NotTaken(ValueError):
    """The file is not taken; the text says why and what to do."""


def hand_over(
    *, project: Project, user: Any, name: str, file: BinaryIO, size: int, clock: Clock = SYSTEM_CLOCK
) -> CloudBill:
    """Keep the file for the worker. One that was read already is not read again. Raises NotTaken."""
    if size > MOST_UPLOADED_BYTES:
        limit = MOST_UPLOADED_BYTES // 1_000_000
        raise NotTaken(f"The file has more than {limit} MB. Pack it with gzip, or export less at a time.")
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    path = _path(digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        while piece := file.read(1 << 20):
            out.write(piece)
    with transaction.atomic():
        bill, fresh = CloudBill.objects.get_or_create(
            project=project,
            sha256=digest,
            defaults={"name": name[:200], "imported_by": user, "since": clock.now()},
        )
        if not fresh and bill.state == FileState.READY:
            path.unlink(missing_ok=True)
            raise NotTaken(f"This very file was read already, as {bill.name}. Its lines are below.")
        CloudBill.objects.filter(pk=bill.pk).update(state=FileState.QUEUED, reason="", since=clock.now())
        transaction.on_commit(lambda: _ask_worker(bill.pk), robust=True)
    bill.refresh_from_db()
    return bill


def read_bill(bill_id: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Read what is queued under that number. Harmless if it is not, or if another is being read."""
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        queued = CloudBill.objects.filter(pk=bill_id, state=FileState.QUEUED)
        if queued.update(state=FileState.BUILDING, since=clock.now()):
            _read(CloudBill.objects.get(pk=bill_id), clock)
    finally:
        _one_at_a_time.release()


def _read(bill: CloudBill, clock: Clock) -> None:
    mine = CloudBill.objects.filter(pk=bill.pk)
    path = _path(bill.sha256)
    try:
        with open_bill(path) as text:
            layout, lines = read_lines(text)
            rows, kept = _store(bill, layout, lines, clock)
    except BillRefused as error:
        mine.update(state=FileState.FAILED, reason=str(error), since=clock.now())
    except (OSError, UnicodeDecodeError, EOFError) as error:
        words = f"The file cannot be read ({type(error).__name__}). Export it again and hand that over."
        mine.update(state=FileState.FAILED, reason=words, since=clock.now())
    except Exception as error:
        log.exception("bill %s", bill.pk)
        words = f"It could not be read ({type(error).__name__}). The worker's log says more."
        mine.update(state=FileState.FAILED, reason=words, since=clock.now())
    else:
        done: dict[str, Any] = {"layout": layout.key, "row_count": rows, "kept_count": kept}
        mine.update(state=FileState.READY, reason="", since=clock.now(), **done)
        tell_if_far(bill, clock)
    path.unlink(missing_ok=True)


def _store(
    bill: CloudBill, layout: Layout, lines: Iterator[BillLine | None], clock: Clock
) -> tuple[int, int]:
    """All lines or, if one of them cannot be read, none: half a bill would be taken for a small one."""
    jobs = _Jobs(bill.project_id)
    rows = kept = 0
    with transaction.atomic():
        while batch := list(islice(lines, _LINES_AT_ONCE)):
            rows += len(batch)
            stored = [row for line in batch if line is not None and (row := jobs.row(bill, line))]
            kept += len(stored)
            BilledLine.objects.bulk_create(
                stored,
                update_conflicts=True,
                unique_fields=["project", "key"],
                update_fields=_SAID,
            )
        _match_by_day(bill)
    return rows, kept


class _Jobs:
    """The project's jobs, by what a bill's tags say of them."""

    def __init__(self, project_id: int) -> None:
        self._ids = set(Job.objects.filter(project_id=project_id).values_list("pk", flat=True))

    def row(self, bill: CloudBill, line: BillLine) -> BilledLine | None:
        """The line as it is stored; None for what is neither Starling's nor of a service that we use."""
        run = run_of(line.tags.get(TAG_RUN, ""))
        job_id = run[0] if run and run[0] in self._ids else None
        ours = is_ours(line.tags) or run is not None or "starling" in line.resource.lower()
        if not ours and not line.service:
            return None
        matched = MatchedBy.TAG if job_id else MatchedBy.OURS if ours else MatchedBy.NOTHING
        return BilledLine(
            bill=bill,
            project_id=bill.project_id,
            key=line.key,
            day=line.day,
            provider=line.provider,
            service=line.service or line.told_service,
            what=line.what,
            resource=line.resource,
            job_id=job_id,
            matched_by=matched,
            picodollars=line.picodollars,
        )


def _match_by_day(bill: CloudBill) -> None:
    """Where no line of a service's day is tagged, all of it stands against what we metered that day."""
    lines = BilledLine.objects.filter(project_id=bill.project_id, bill=bill)
    days = lines.values_list("day", "provider", "service").distinct().order_by()
    tagged = set(lines.filter(matched_by__in=(MatchedBy.TAG, MatchedBy.OURS)).values_list("day", "service"))
    for day, provider, service in list(days):
        metered = _ran_on(bill.project_id, day)
        matched = MatchedBy.DAY if metered and (day, service) not in tagged else MatchedBy.NOTHING
        untagged = lines.filter(day=day, provider=provider, service=service)
        untagged.filter(matched_by__in=(MatchedBy.DAY, MatchedBy.NOTHING)).update(matched_by=matched)


def _ran_on(project_id: int, day: Any) -> bool:
    """Whether something that is paid was settled that day."""
    real = {"account__job__simulated": False, "account__job__emulated": False}
    charges = Charge.objects.filter(account__job__project_id=project_id, state=ChargeState.SETTLED, **real)
    return charges.filter(resolved_at__date=day, settled_picodollars__gt=0).exists()


def look_after_bills(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Read again what a worker left behind, and ask again for what waits."""
    now = clock.now()
    lost = CloudBill.objects.filter(state=FileState.BUILDING, since__lt=now - 10 * SILENT_FOR)
    lost.update(state=FileState.QUEUED, since=now - ASK_AGAIN_AFTER)
    waiting = CloudBill.objects.filter(state=FileState.QUEUED, since__lte=now - ASK_AGAIN_AFTER)
    for bill_id in waiting.order_by("since").values_list("pk", flat=True)[:10]:
        if not _ask_worker(bill_id):
            break


def _path(digest: str) -> Path:
    return folder() / "bills" / f"{digest}.csv"


def _ask_worker(bill_id: int) -> bool:
    try:
        celery_app.send_task("webapp.reports.tasks.read_cloud_bill", args=[bill_id])
    except Exception as error:  # whatever the broker's client raises: the next look sends it again
        log.warning("bill %s waits for the next look, no message could be sent: %s", bill_id, error)
        return False
    return True
