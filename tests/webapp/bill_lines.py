"""Bills as clouds write them, of any length and without a job behind them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from typing import Any

from webapp.reports.bills import bill_reading
from webapp.reports.models import CloudBill

CUR = (
    "identity/LineItemId,identity/TimeInterval,lineItem/LineItemType,lineItem/UsageStartDate,lineItem/ProductCode,"
    "lineItem/UsageType,lineItem/ResourceId,lineItem/CurrencyCode,lineItem/UnblendedCost,resourceTags/user:app\r\n"
)
FOCUS = "ChargePeriodStart,BilledCost,ServiceName,ChargeCategory,BillingCurrency,ResourceId,Tags\r\n"


def cur_line(key: object, usd: object = "0.01", day: str = "2026-11-03", app: str = "") -> str:
    """A line of the Cost and Usage Report; `key` names it, so the same one may come again in a later file."""
    return f"{key},hour,Usage,{day}T10:00:00Z,AWSLambda,Lambda-GB-Second,arn:{key},USD,{usd},{app}\r\n"


def focus_line(resource: str, usd: object = "0.01", tags: str = "") -> str:
    """A line of FOCUS, which has no name of its own."""
    return f"2026-11-03T00:00:00Z,{usd},AWS Lambda,Usage,USD,{resource},{tags}\r\n"


def hand_over(project: Any, pieces: Iterable[str | bytes], *, packed: bool = False) -> CloudBill:
    """The bill as it waits for the worker. Pieces are packed one by one: the whole is never in memory."""
    file = io.BytesIO()
    out: Any = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if packed else file
    for piece in pieces:
        out.write(piece.encode() if isinstance(piece, str) else piece)
    if packed:
        out.close()
    size = file.tell()
    file.seek(0)
    user = project.people.first()
    return bill_reading.accept_bill(project=project, user=user, name="bill.csv", file=file, size=size)


def read(project: Any, pieces: Iterable[str | bytes], *, packed: bool = False) -> CloudBill:
    """The bill once the worker has read it."""
    bill = hand_over(project, pieces, packed=packed)
    bill_reading.BILL_READING.run(bill.pk)
    bill.refresh_from_db()
    return bill
