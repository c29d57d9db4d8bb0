"""Clouds' bills: uploaded, read by the worker, and compared with metered costs."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from django.http import HttpResponse
from django.urls import reverse
from ninja import File, UploadedFile

from webapp.api.auth import Token
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.problems import Refused
from webapp.api.router import ApiRouter, OwnersProject, Person, ViewersProject
from webapp.api.routes.money import question_of
from webapp.api.schemas.reports import BilledDifference, BilledRow, BillShape
from webapp.money.amounts import exact_usd
from webapp.reports import queries
from webapp.reports.bills.bill_reading import NotTaken, accept_bill
from webapp.reports.bills.reconciling import Compared, compare_bills
from webapp.reports.models import CloudBill

router = ApiRouter(tags=["money"])
_File = Annotated[
    UploadedFile, File(description="A bill as CSV, packed with gzip or not, of at most 200 MB.")
]


@router.get("/projects/{slug}/bills", response=NumberedPage[BillShape], summary="Uploaded bills of clouds")
def list_bills(project: ViewersProject, after: After = 0, limit: Limit = 50) -> NumberedPage[BillShape]:
    """In order of their upload."""
    return oldest_first(queries.bills_of(project), after, limit, _bill)


@router.post(
    "/projects/{slug}/bills",
    auth=Token("manage"),
    response={202: BillShape},
    summary="Upload a cloud's bill",
)
def hand_bill_over(project: OwnersProject, person: Person, response: HttpResponse, file: _File) -> BillShape:
    """As multipart/form-data, with the file as `file`. The worker reads it: poll Location until its state is ready.
    The same file or line twice changes nothing."""
    taken: dict[str, Any] = {"name": file.name or "bill.csv", "file": file.file, "size": file.size or 0}
    try:
        bill = accept_bill(project=project, user=person, **taken)
    except NotTaken as refusal:
        why, fix = str(refusal), "List the bills that were read."
        raise Refused(409, "bill", "The bill was not accepted.", why, fix) from None
    response["Location"] = reverse("api_v1:get_bill", args=[project.slug, bill.pk])
    return _bill(bill)


@router.get(
    "/projects/{slug}/bills/{bill_id}", response=BillShape, url_name="get_bill", summary="One cloud's bill"
)
def get_bill(project: ViewersProject, bill_id: RowId) -> BillShape:
    return _bill(queries.bill_in(project, bill_id))


@router.get(
    "/projects/{slug}/difference",
    response=BilledDifference,
    summary="Metered costs compared with clouds' bills",
)
def get_difference(project: ViewersProject, first_day: date, last_day: date) -> BilledDifference:
    """By day and service. Bills contain only real money."""
    rows, total = compare_bills(question_of(project, first_day=first_day, last_day=last_day))
    return BilledDifference(
        first_day=first_day, last_day=last_day, rows=[_row(one) for one in rows], total=_row(total)
    )


def _bill(one: CloudBill) -> BillShape:
    return BillShape(
        id=one.pk,
        name=one.name,
        layout=one.layout,
        state=one.state,
        reason=one.reason,
        lines=one.row_count,
        lines_kept=one.kept_count,
        handed_over_by=one.imported_by.email,
        since=one.since,
    )


def _row(one: Compared) -> BilledRow:
    return BilledRow(
        day=one.day,
        service=one.service,
        metered_usd=exact_usd(one.ours),
        billed_usd=None if one.theirs is None else exact_usd(one.theirs),
        off_usd=None if one.error is None else exact_usd(one.error),
        off_percent=one.error_percent,
        unmatched_usd=exact_usd(one.unmatched),
        unmatched_lines=one.unmatched_count,
    )
