"""A job's bill as CSV, by round or by call: exact dollars, with sums equal to the ledger's.

Rows are read and sent in pieces, so a million calls need little memory. Reserved amounts are no cost yet;
only the file by call lists them.
"""

import csv
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from django.db.models import Count, Sum
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.http.responses import refused, unknown_words
from webapp.jobs.models import Job
from webapp.jobs.queries import job_in
from webapp.money.amounts import Prices, exact_usd
from webapp.money.models import RENT, Basis, Charge, ChargeState, charge_kinds

_FORMULA = re.compile(
    r"(^[;\t\r\n]?|[;\t\r\n])"  # a cell, or one where a list's separator is a semicolon; then what spreadsheets trim
    r"(?=[\s\x00-\x1f\x7f-\x9f\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212])"  # a sign, also full-width or small
)
_CONTROLS = ("\t", "\r", "\n")

_ROUND_BEGINS, _ROUND_ENDS = ["round", "calls"], ["cost [USD]", "of it assumed [USD]", "basis", "prices"]


class _Line:
    """A file object for csv.writer that keeps one line."""

    def write(self, text: str) -> str:
        return text


_writer = csv.writer(_Line())


def csv_line(cells: Iterable[Any]) -> str:
    """Return one line; marks text that a spreadsheet would run as a formula."""
    return str(_writer.writerow([harmless(cell) for cell in cells]))


def harmless(cell: Any) -> str:
    """Return the cell's text; marks text that a spreadsheet would run as a formula, and leaves numbers as they are.

    `harmless` in static/js/format.js does the same for files that pages write.
    """
    text = "" if cell is None else str(cell)
    if isinstance(cell, int | float | Decimal):
        return text
    marked = _FORMULA.sub(r"\1'", text)
    return f"'{marked}" if marked.startswith(_CONTROLS) else marked


def prices_of(job: Job) -> Prices:
    """Return whether the job's prices were charged, simulated or emulated."""
    return job.unreal or "actual"


async def by_round(job: Job) -> AsyncIterator[str]:
    """Yield a line for each round, with rent in the round in which it was reserved, then the total."""
    kinds = [kind for kind, _ in charge_kinds()]
    yield csv_line([*_ROUND_BEGINS, *(f"{kind} [USD]" for kind in kinds), *_ROUND_ENDS])
    settled = Charge.objects.filter(account__job=job, state=ChargeState.SETTLED)
    groups = (
        settled.values("round_no", "kind", "basis")
        .annotate(picodollars=Sum("settled_picodollars"), calls=Count("pk"))
        .order_by("round_no", "kind", "basis")
    )
    rows = [row async for row in groups.aiterator()]
    for round_no, parts in groupby(rows, key=lambda row: row["round_no"]):
        yield csv_line(_round_cells(round_no, list(parts), job))
    yield csv_line(_round_cells("total", rows, job))


def _round_cells(name: Any, parts: Sequence[Mapping[str, Any]], job: Job) -> list[Any]:
    def cost(**wanted: str) -> int:
        chosen = (part for part in parts if all(part[key] == value for key, value in wanted.items()))
        return sum(int(part["picodollars"]) for part in chosen)

    calls = sum(part["calls"] for part in parts if part["kind"] != RENT)
    by_kind = [exact_usd(cost(kind=kind)) for kind, _ in charge_kinds()]
    basis = " and ".join(sorted({part["basis"] for part in parts}))
    assumed = exact_usd(cost(basis=Basis.ASSUMED.value))
    return [name, calls, *by_kind, exact_usd(cost()), assumed, basis, prices_of(job)]


CALL_COLUMNS: dict[str, Callable[[Charge, Prices], Any]] = {
    "round": lambda charge, prices: charge.round_no,
    "epoch": lambda charge, prices: charge.epoch,
    "call": lambda charge, prices: charge.name,
    "kind": lambda charge, prices: charge.kind,
    "state": lambda charge, prices: charge.state,
    "reserved [USD]": lambda charge, prices: exact_usd(charge.reserved_picodollars),
    "cost [USD]": lambda charge, prices: _known_usd(charge.settled_picodollars),
    "basis": lambda charge, prices: charge.basis,
    "prices": lambda charge, prices: prices,
    "opened [UTC]": lambda charge, prices: charge.opened_at.isoformat(),
    "resolved [UTC]": lambda charge, prices: charge.resolved_at and charge.resolved_at.isoformat(),
    "environment steps": lambda charge, prices: charge.usage.get("env_steps"),
    "billed time [s]": lambda charge, prices: charge.usage.get("billed_s"),
    "memory [MB]": lambda charge, prices: charge.usage.get("memory_mb"),
    "price lines": lambda charge, prices: "; ".join(_price_line(line) for line in charge.lines),
}
"""The columns of the file by call, and what they read."""


async def by_call(job: Job) -> AsyncIterator[str]:
    """Yield a line for each call or slice of rent, in order of reservation, then the total."""
    yield csv_line(CALL_COLUMNS)
    reserved, cost, prices = 0, 0, prices_of(job)
    async for charge in Charge.objects.filter(account__job=job).order_by("pk").aiterator(chunk_size=1000):
        cost += charge.settled_picodollars or 0
        reserved += charge.reserved_picodollars if charge.state == ChargeState.OPEN else 0
        yield csv_line(read(charge, prices) for read in CALL_COLUMNS.values())
    total = {
        "round": "total",
        "reserved [USD]": exact_usd(reserved),
        "cost [USD]": exact_usd(cost),
        "prices": prices,
    }
    yield csv_line(total.get(name) for name in CALL_COLUMNS)


def _known_usd(picodollars: int | None) -> str | None:
    return None if picodollars is None else exact_usd(picodollars)


def _price_line(line: Mapping[str, Any]) -> str:
    return f"{line['quantity']} {line['unit']} {line['sku']} = {exact_usd(line['picodollars'])}"


_REPORTS = {"round": by_round, "call": by_call}


@project_page()
@require_safe
def cost_csv(request: HttpRequest, project: Project, job_id: str) -> HttpResponseBase:
    """Return the job's bill as a file, by round (or `?by=call`)."""
    job = job_in(project, job_id)
    by = request.GET.get("by", "round")
    if words := unknown_words(request, "by") or (
        "" if by in _REPORTS else f"by is {by}. It may be round or call."
    ):
        return refused(words)
    name = f"starling-{job.pk}-cost-by-{by}.csv"
    return StreamingHttpResponse(
        _REPORTS[by](job),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )
