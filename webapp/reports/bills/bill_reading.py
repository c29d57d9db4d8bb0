"""Clouds' bills that people upload: kept until the worker has read them.

Reading the same file again changes nothing. A later file replaces all lines of its accounts and billing periods.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO

from django.db import transaction

from webapp.accounts.models import Project
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.reports.bills.bill_file import BillRefused, open_bill
from webapp.reports.bills.bill_lines import Layout, read_lines
from webapp.reports.bills.bill_storing import Attempt, TakenOver, survey_lines, tidy
from webapp.reports.bills.difference import report_if_far
from webapp.reports.models import BilledLine, CloudBill, FileState
from webapp.reports.report_builds import RESEND_AFTER, SILENT_FOR, folder
from webapp.storage_faults import storage_fault

log = logging.getLogger(__name__)

MOST_UPLOADED_BYTES = 200_000_000
_READ = "webapp.reports.tasks.read_cloud_bill"
_one_at_a_time = threading.Lock()


class NotTaken(ValueError):
    """The file is not taken; the text says why and what to do."""


def accept_bill(
    *,
    project: Project,
    user: Any,
    name: str,
    file: BinaryIO,
    size: int,
    replace_anyway: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> CloudBill:
    """Store the file for the worker and return its row. Raises NotTaken, also for a file that was read already.

    `replace_anyway`: also if it is older than what is stored, or looks like a part of a bill.
    """
    if size > MOST_UPLOADED_BYTES:
        raise _too_large()
    kept, digest = _keep(project, file)
    try:
        with transaction.atomic():
            defaults = {"name": name[:200], "imported_by": user, "since": clock.now()}
            defaults["replace_anyway"] = replace_anyway
            bill, fresh = CloudBill.objects.get_or_create(project=project, sha256=digest, defaults=defaults)
            if bill.state == FileState.READY:
                raise NotTaken(f"This file was read already, as {bill.name}.")
            kept.replace(_path(bill))
            if not fresh:
                failed = CloudBill.objects.filter(pk=bill.pk, state=FileState.FAILED)
                failed.update(
                    state=FileState.QUEUED, reason="", since=clock.now(), replace_anyway=replace_anyway
                )
            transaction.on_commit(lambda: send_hint(_READ, bill.pk), robust=True)
    finally:
        kept.unlink(missing_ok=True)
    bill.refresh_from_db()
    return bill


def _keep(project: Project, file: BinaryIO) -> tuple[Path, str]:
    """A copy of the file under a unique name, and its hash. Raises NotTaken."""
    _folder().mkdir(parents=True, exist_ok=True)
    digest, byte_count = hashlib.sha256(), 0
    descriptor, name = mkstemp(dir=_folder(), prefix=f"{project.pk}-", suffix=".part")
    path = Path(name)
    try:
        with open(descriptor, "wb") as part:  # its end writes, too
            while piece := file.read(1 << 20):
                byte_count += len(piece)
                if byte_count > MOST_UPLOADED_BYTES:
                    raise _too_large()
                digest.update(piece)
                part.write(piece)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path, digest.hexdigest()


def _too_large() -> NotTaken:
    limit = MOST_UPLOADED_BYTES // 1_000_000
    return NotTaken(f"The file has more than {limit} MB. Pack it with gzip, or export less at a time.")


def read_bill(bill_id: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Read the bill if it is queued, and remove what an earlier reading left behind.

    Does nothing while this worker reads another bill.
    """
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        if attempt := Attempt.begin(bill_id, clock):
            _read(attempt)
        if bill := CloudBill.objects.filter(pk=bill_id).first():
            tidy(bill)
    except TakenOver:
        log.warning("bill %s is read by another worker now", bill_id)
    finally:
        _one_at_a_time.release()


def _read(attempt: Attempt) -> None:
    path = _path(attempt.bill)
    try:
        layout, row_count = _store(attempt, path)
        kept_count = BilledLine.every.filter(period__bill=attempt.bill).count()
    except TakenOver:
        raise
    except BillRefused as error:
        words = str(error)
    except Exception as error:
        if (fault := storage_fault(error)) is not None:
            log.warning("bill %s is read again later: %s", attempt.bill.pk, error)
            attempt.write(
                state=FileState.QUEUED, reason=f"{fault.why} It is read once the disk can be written."
            )
            return
        if isinstance(error, OSError | UnicodeDecodeError | EOFError):
            words = f"The file cannot be read ({type(error).__name__}). Export it again and upload that file."
        else:
            log.exception("bill %s", attempt.bill.pk)
            words = f"It could not be read ({type(error).__name__}). The worker's log says more."
    else:
        done = {"layout": layout.key, "row_count": row_count, "kept_count": kept_count}
        attempt.write(state=FileState.READY, reason="", **done)
        path.unlink(missing_ok=True)
        report_if_far(attempt.bill, attempt.clock)
        return
    # Before the row says failed: from then on the file may be uploaded again.
    path.unlink(missing_ok=True)
    attempt.write(state=FileState.FAILED, reason=words)


def _store(attempt: Attempt, path: Path) -> tuple[Layout, int]:
    """Read the file twice: once to see that all of it can be read, then to write its lines."""
    with open_bill(path) as text:
        layout, lines = read_lines(text)
        survey = survey_lines(attempt.keep_alive(lines))
    with open_bill(path) as text:
        _, lines = read_lines(text)
        attempt.store(attempt.keep_alive(lines), survey)
    return layout, survey.row_count


def look_after_bills(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Queue bills that a dead worker left behind, and send lost messages again."""
    now = clock.now()
    lost = CloudBill.objects.filter(state=FileState.BUILDING, since__lt=now - SILENT_FOR)
    lost.update(state=FileState.QUEUED, since=now - RESEND_AFTER)
    if _one_at_a_time.locked():
        return
    waiting = CloudBill.objects.filter(state=FileState.QUEUED, since__lte=now - RESEND_AFTER)
    untidy = CloudBill.objects.filter(state=FileState.FAILED, periods__isnull=False)
    outdated = CloudBill.objects.filter(state=FileState.READY, replaced__lines__isnull=False)
    for found in (waiting.order_by("since"), untidy.distinct(), outdated.distinct()):
        for bill_id in found.values_list("pk", flat=True)[:10]:
            if not send_hint(_READ, bill_id):
                return


def _folder() -> Path:
    return folder() / "bills"


def _path(bill: CloudBill) -> Path:
    """One path for each bill: two projects may upload the same file."""
    return _folder() / f"{bill.pk}.csv"
