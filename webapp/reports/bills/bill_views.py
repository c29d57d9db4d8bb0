"""The page that compares clouds' own bills with what Starling metered, and the form that uploads them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK
from webapp.reports import queries
from webapp.reports.access import address
from webapp.reports.bills.bill_lines import layouts
from webapp.reports.bills.bill_reading import NotTaken, accept_bill
from webapp.reports.bills.difference import difference_warning, far_off, format_difference
from webapp.reports.bills.reconciling import Compared, compare_bills
from webapp.reports.forms import BillForm
from webapp.reports.models import FileState
from webapp.reports.period import PRESETS
from webapp.reports.query_params import parse_query
from webapp.reports.table import Costs

_BILLS_SHOWN = 12


@project_page()
@require_safe
@never_cache
def bills(request: HttpRequest, project: Project) -> HttpResponse:
    parsed = parse_query({**request.GET.dict(), "prices": "actual"}, project, SYSTEM_CLOCK.now().date())
    rows, total = compare_bills(parsed.question)
    found = list(queries.bills_of(project)[:_BILLS_SHOWN])
    titles = {layout.key: layout.title for layout in layouts()}
    context = {
        "section": "reports",
        "asked": parsed,
        "question": parsed.question,
        "ranges": PRESETS,
        "rows": [_with_error(row) for row in rows],
        "total": _with_error(total),
        "warning": difference_warning(far_off(Costs(parsed.question, with_services=True).parts)),
        "bills": [(bill, titles.get(bill.layout, "")) for bill in found],
        "unfinished": any(bill.state in (FileState.QUEUED, FileState.BUILDING) for bill in found),
        "layouts": layouts(),
        "form": BillForm(),
    }
    return render(request, "reports/bills.html", context)


def _with_error(row: Compared) -> dict[str, Any]:
    words = "" if row.theirs is None else format_difference(row.ours, row.theirs)
    return {"row": row, "error": words}


@project_page(needs="owner")
@require_POST
def hand_over_bill(request: HttpRequest, project: Project) -> HttpResponse:
    form = BillForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, "Choose the file of a bill first.")
        return redirect(address("bills", project))
    uploaded = form.cleaned_data["file"]
    try:
        accept_bill(
            project=project, user=request.user, name=uploaded.name, file=uploaded.file, size=uploaded.size
        )
        messages.success(request, "The bill is being read. It is below in a few seconds.")
    except NotTaken as problem:
        messages.error(request, str(problem))
    return redirect(address("bills", project))
