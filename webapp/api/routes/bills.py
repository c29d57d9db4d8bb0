"""Clouds' bills: uploaded, read by the worker, and compared with metered costs."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from django.urls import reverse
from ninja import File, Form, UploadedFile
from pydantic import AliasPath, BaseModel, Field

from webapp.api.auth import Token
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.router import ApiRouter, OwnersProject, Person, ViewersProject
from webapp.api.routes.money import question_of
from webapp.api.schemas import Shape, Usd
from webapp.reports import queries
from webapp.reports.bills.bill_reading import accept_bill
from webapp.reports.bills.difference import compare_bills
from webapp.reports.models import CloudBill

router = ApiRouter(tags=["money"])
_File = Annotated[
    UploadedFile, File(description="A bill as CSV, packed with gzip or not, of at most 200 MB.")
]


class BillPeriodShape(Shape):
    """A billing period of an account on a bill."""

    provider: str
    account: str = Field(description="Empty if the bill does not name it.")
    first_day: date
    lines: int = Field(validation_alias="line_count")
    billed_usd: Usd = Field(validation_alias="picodollars")
    replaced_by: int | None = Field(
        validation_alias="replaced_by_id", description="The bill that replaces it once that is ready."
    )


class BillShape(Shape):
    """An uploaded bill of a cloud."""

    id: int
    name: str
    layout: str = Field(description="Its format; empty until it is read.")
    state: Literal["queued", "building", "ready", "failed"]
    reason: str
    lines: int = Field(validation_alias="row_count")
    lines_kept: int = Field(
        validation_alias="kept_count", description="Lines of services that are used here."
    )
    periods: list[BillPeriodShape]
    handed_over_by: str = Field(validation_alias=AliasPath("imported_by", "email"))
    since: datetime


def _bill(bill: CloudBill) -> BillShape:
    return BillShape.of(bill, periods=[BillPeriodShape.of(period) for period in bill.periods.all()])


class BilledRow(Shape):
    """One service on one day; without either, the whole bill."""

    day: date | None
    service: str
    metered_usd: Usd = Field(validation_alias="ours")
    billed_usd: Usd | None = Field(
        validation_alias="theirs", description="Null: not on a bill that was read."
    )
    off_usd: Usd | None = Field(
        validation_alias="error", description="How much too high the metered cost is."
    )
    off_percent: float | None = Field(validation_alias="error_percent")
    unmatched_usd: Usd = Field(
        validation_alias="unmatched", description="On the bill, without metered usage."
    )
    unmatched_lines: int = Field(validation_alias="unmatched_count")


class BilledDifference(BaseModel):
    """Metered costs compared with clouds' bills."""

    first_day: date
    last_day: date
    rows: list[BilledRow] = Field(description="Newest first.")
    total: BilledRow


@router.get("/projects/{slug}/bills", summary="Uploaded bills of clouds")
def list_bills(project: ViewersProject, after: After = 0, limit: Limit = 50) -> NumberedPage[BillShape]:
    """In order of their upload."""
    return oldest_first(queries.bills_of(project), after, limit, _bill)


@router.post("/projects/{slug}/bills", auth=Token("manage"), response=202, summary="Upload a cloud's bill")
def upload_bill(
    project: OwnersProject,
    person: Person,
    response: HttpResponse,
    file: _File,
    replace_anyway: Form[bool] = False,
) -> BillShape:
    """As multipart/form-data, with the file as `file`. The worker reads it: poll Location until its state is ready.
    It replaces all that is stored of its accounts and billing periods. A file that is older than that, or looks like a
    part of a bill, fails without `replace_anyway`."""
    taken: dict[str, Any] = {"name": file.name or "bill.csv", "file": file.file, "size": file.size or 0}
    bill = accept_bill(project=project, user=person, replace_anyway=replace_anyway, **taken)
    response["Location"] = reverse("api_v1:get_bill", args=[project.slug, bill.pk])
    return _bill(bill)


@router.get("/projects/{slug}/bills/{bill_id}", summary="One cloud's bill")
def get_bill(project: ViewersProject, bill_id: RowId) -> BillShape:
    return _bill(queries.bill_in(project, bill_id))


@router.get("/projects/{slug}/difference", summary="Metered costs compared with clouds' bills")
def get_billed_difference(project: ViewersProject, first_day: date, last_day: date) -> BilledDifference:
    """By day and service. Bills contain only real money."""
    rows, total = compare_bills(question_of(project, first_day=first_day, last_day=last_day))
    return BilledDifference(
        first_day=first_day,
        last_day=last_day,
        rows=[BilledRow.of(row) for row in rows],
        total=BilledRow.of(total),
    )
