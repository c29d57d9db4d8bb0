"""Clouds' bills that people upload: kept until the worker has read them.

Reading the same file again changes nothing. A later file replaces all lines of its accounts and billing periods.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO

from django.db import transaction

from webapp.accounts.models import Project, User
from webapp.background import Attempt, LifeCycle, WorkRefused, send_on_commit
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.storage_faults import storage_fault
from webapp.reports.bills.bill_file import open_bill
from webapp.reports.bills.bill_lines import Layout, read_lines
from webapp.reports.bills.bill_storing import BillAttempt, survey_lines, tidy
from webapp.reports.bills.difference import report_if_far
from webapp.reports.models import BilledLine, CloudBill, FileState
from webapp.reports.report_builds import SILENT_FOR, folder

MOST_UPLOADED_BYTES = 200_000_000


class NotTaken(ValueError):
    """The file is not taken; the text says why and what to do."""


def accept_bill(
    *,
    project: Project,
    user: User,
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
            send_on_commit(bill)
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


class BillReading(LifeCycle[CloudBill]):
    model = CloudBill
    working = FileState.BUILDING
    silent_for = SILENT_FOR
    resumes = "It is read once the disk can be written."
    unforeseen = "It could not be read ({}). The worker's log says more."

    def may_begin(self, row: CloudBill, clock: Clock) -> bool:
        """Not while another bill of the project is read: both may share lines."""
        Project.objects.select_for_update().filter(pk=row.project_id).first()
        return not self.rows.filter(project_id=row.project_id, state=FileState.BUILDING).exists()

    def do(self, attempt: Attempt[CloudBill]) -> None:
        bill = attempt.row
        try:
            layout, row_count = _store(BillAttempt(attempt), _path(bill))
        except (OSError, UnicodeDecodeError, EOFError) as error:
            if storage_fault(error) is not None:
                raise
            raise WorkRefused(
                f"The file cannot be read ({type(error).__name__}). Export it again and upload that file."
            ) from None
        kept_count = BilledLine.every.filter(period__bill=bill).count()
        done = {"layout": layout.key, "row_count": row_count, "kept_count": kept_count}
        attempt.write(state=FileState.READY, reason="", **done)
        _path(bill).unlink(missing_ok=True)
        report_if_far(bill, attempt.clock)

    def fail(self, attempt: Attempt[CloudBill], reason: str) -> None:
        # Before the row says failed: from then on the file may be uploaded again.
        attempt.write()
        _path(attempt.row).unlink(missing_ok=True)
        super().fail(attempt, reason)

    def finish(self, pk: Any) -> None:
        """Remove what an earlier reading left behind."""
        if (bill := self.rows.filter(pk=pk).first()) is not None:
            tidy(bill)

    def due(self, now: datetime) -> list[Any]:
        untidy = self.rows.filter(state=FileState.FAILED, periods__isnull=False)
        outdated = self.rows.filter(state=FileState.READY, replaced__lines__isnull=False)
        keys = [bills.distinct().values_list("pk", flat=True)[:10] for bills in (untidy, outdated)]
        return [*super().due(now), *keys[0], *keys[1]]


BILL_READING = BillReading()


def _store(attempt: BillAttempt, path: Path) -> tuple[Layout, int]:
    """Read the file twice: once to see that all of it can be read, then to write its lines."""
    with open_bill(path) as text:
        layout, lines = read_lines(text)
        survey = survey_lines(attempt.keep_alive(lines))
    with open_bill(path) as text:
        _, lines = read_lines(text)
        attempt.store(attempt.keep_alive(lines), survey)
    return layout, survey.row_count


def _folder() -> Path:
    return folder() / "bills"


def _path(bill: CloudBill) -> Path:
    """One path for each bill: two projects may upload the same file."""
    return _folder() / f"{bill.pk}.csv"
