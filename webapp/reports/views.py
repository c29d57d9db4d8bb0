"""Pages of reports and of clouds' bills, and their files: streamed while they are built, or built by the worker."""

from __future__ import annotations

import mimetypes
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import live_page, person_of, project_action, project_page, signed_in
from webapp.accounts.models import Project
from webapp.alerts.senders.mail import NO_SERVER
from webapp.clock import SYSTEM_CLOCK
from webapp.http.responses import refused, unknown_words
from webapp.reports import page as reports_page
from webapp.reports import queries, schedules
from webapp.reports.bills.bill_lines import layouts
from webapp.reports.bills.bill_reading import NotTaken, accept_bill
from webapp.reports.bills.difference import (
    Compared,
    compare_bills,
    difference_warning,
    far_off,
    format_difference,
    metered_sentence,
)
from webapp.reports.bills.replacement import period_sentences
from webapp.reports.cells import charge_count
from webapp.reports.files.formats import FORMATS, ReportFormat, make
from webapp.reports.forms import BillForm, ScheduleForm
from webapp.reports.models import FileState
from webapp.reports.query_params import NAMES, ParsedQuery, parse_query, refusal, too_large
from webapp.reports.report_builds import TooMany, folder, owner_name, request_file
from webapp.reports.report_query import BY, PRESETS, PRICES, Question
from webapp.reports.schedules import can_send
from webapp.reports.table import Costs, choices

View = Callable[..., HttpResponseBase]


def staff_page(view: View) -> View:
    """Decorate a view of the whole installation: people who are not staff get a 404."""

    @signed_in
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_staff:
            raise Http404("There is no such page.")
        return view(request, None, *args, **kwargs)

    return wrapped


def address(name: str, project: Project | None, *more: Any) -> str:
    """The address of a page of reports, the project's or the installation's."""
    if project is not None:
        return reverse(f"reports:{name}", args=[project.slug, *more])
    return reverse(f"reports:installation_{name}", args=list(more))


def _page(request: HttpRequest, project: Project | None) -> HttpResponse:
    today = SYSTEM_CLOCK.now().date()
    parsed = parse_query(request.GET, project, today)
    costs = Costs(parsed.question)
    table = costs.table()
    charges = charge_count(parsed.question)
    files = queries.files_of(project)
    context: dict[str, Any] = {
        "section": "reports",
        "project": project,
        "parsed": parsed,
        "question": parsed.question,
        "table": table,
        "rows": reports_page.rows(table),
        "total": reports_page.total(table),
        "left_out": reports_page.left_out(table),
        "chart": reports_page.chart(costs),
        "known": reports_page.certainty_parts(costs),
        "bill_warning": difference_warning(far_off(costs.parts)),
        "beside": metered_sentence(costs),
        "ranges": PRESETS,
        "groups": {key: word for key, word in BY.items() if key != "project" or project is None},
        "prices": PRICES,
        "filters": _filters(costs, parsed),
        "formats": [(kind, too_large(parsed.question, kind.key, charges)) for kind in FORMATS.values()],
        "charges": charges,
        "urls": _urls(project),
        "files": files,
        "unfinished": queries.unfinished(files),
    }
    if project is not None:
        context["schedules"] = queries.schedules_of(project, today)
        context["schedule_form"] = ScheduleForm(None, project=project, user=person_of(request))
        context["mail_problem"] = "" if can_send() else NO_SERVER
    return render(request, "reports/page.html", context)


def _urls(project: Project | None) -> dict[str, str]:
    return {name: address(name, project) for name in ("page", "file", "build", "files")}


def _filters(costs: Costs, parsed: ParsedQuery) -> list[dict[str, Any]]:
    """Filters with the values that occur in the period; a filter that is set is always offered."""
    filters = []
    for name, offered in choices(costs.facts.values()).items():
        chosen = getattr(parsed.question, name)
        if chosen and chosen not in {value for value, _ in offered}:
            offered = [(chosen, chosen), *offered]
        if len(offered) > 1 or chosen:
            filters.append({"name": name, "word": BY[name], "chosen": chosen, "offered": offered})
    return filters


def _file(request: HttpRequest, project: Project | None) -> HttpResponseBase:
    chosen = FORMATS.get(request.GET.get("format", ""))
    if chosen is None:
        raise Http404("There is no such kind of file.")
    today = SYSTEM_CLOCK.now().date()
    if words := unknown_words(request, "format", *NAMES) or refusal(request.GET, today):
        return refused(words)
    parsed = parse_query(request.GET, project, today)
    if too_large(parsed.question, chosen.key):
        messages.info(
            request, f"This {chosen.word} file takes a while. Press Build: it is made in the background."
        )
        return redirect(f"{address('page', project)}?{parsed.query}")
    if chosen.pieces is not None:
        costs = Costs(parsed.question)
        answer: HttpResponseBase = StreamingHttpResponse(_stream(chosen.pieces(costs, lambda rows: None)))
    else:
        answer = _whole(parsed, chosen, project)
    return _as_file(answer, chosen, chosen.name_of_file(parsed.question, _slug(project)))


def _whole(parsed: ParsedQuery, chosen: ReportFormat, project: Project | None) -> HttpResponse:
    with tempfile.TemporaryDirectory(prefix="starling-report-") as place:
        path = Path(place) / f"report{chosen.suffix}"
        whose = owner_name(project)
        make(parsed.question, chosen.key, path, whose=whose, made_at=SYSTEM_CLOCK.now())
        return HttpResponse(path.read_bytes())


async def _stream(pieces: Iterator[str]) -> AsyncIterator[bytes]:
    """Build each piece in the thread of the request's database connection, and send it before the next."""
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece.encode()


def _as_file(answer: HttpResponseBase, chosen: ReportFormat, name: str) -> HttpResponseBase:
    answer["Content-Type"] = (
        chosen.content_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    )
    answer["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    answer["Cache-Control"] = "no-store"
    return answer


def _slug(project: Project | None) -> str:
    return project.slug if project else "installation"


def _build(request: HttpRequest, project: Project | None) -> HttpResponse:
    """Let the worker build the file; the list shows its progress."""
    posted: QueryDict = request.POST
    parsed = parse_query(posted, project, SYSTEM_CLOCK.now().date())
    try:
        if (format_key := str(posted.get("format", ""))) in FORMATS:
            request_file(question=parsed.question, format_key=format_key, user=person_of(request))
    except TooMany as problem:
        messages.error(request, str(problem))
    return redirect(f"{address('page', project)}?{parsed.query}#files")


def _files(request: HttpRequest, project: Project | None) -> HttpResponse:
    """The list alone, for the page that updates it."""
    files = queries.files_of(project)
    context = {"files": files, "unfinished": queries.unfinished(files), "project": project}
    return render(request, "reports/files.html", context)


def _built(request: HttpRequest, project: Project | None, file_id: int) -> HttpResponseBase:
    report = queries.file_in(project, file_id)
    try:
        file = (folder() / report.file).open("rb")
    except OSError:
        raise Http404("The report's file is gone. Build it again.") from None
    chosen = FORMATS[report.format]
    name = chosen.name_of_file(Question.model_validate(report.question), _slug(project))
    return _as_file(FileResponse(file), chosen, name)


page = project_page()(require_safe(never_cache(_page)))
file = project_page()(require_safe(_file))
build = project_page()(require_POST(_build))
files = project_page()(require_safe(never_cache(_files)))
built = project_page()(require_safe(_built))
installation_page = staff_page(require_safe(never_cache(_page)))
installation_file = staff_page(require_safe(_file))
installation_build = staff_page(require_POST(_build))
installation_files = staff_page(require_safe(never_cache(_files)))
installation_built = staff_page(require_safe(_built))


@project_action("editor")
def schedule(request: HttpRequest, project: Project) -> HttpResponse:
    form = ScheduleForm(request.POST, project=project, user=person_of(request))
    if form.is_valid():
        schedules.add_schedule(project=project, user=person_of(request), **form.cleaned_data)
        messages.success(request, "The report will be sent after each whole week or month (UTC).")
    else:
        problems = "; ".join(
            f"{form[name].label}: {' '.join(map(str, faults))}" for name, faults in form.errors.items()
        )
        messages.error(request, f"Nothing was set up. {problems}")
    return redirect(f"{address('page', project)}#schedules")


@project_action("editor")
def unschedule(request: HttpRequest, project: Project, schedule_id: int) -> HttpResponse:
    schedules.stop_schedule(queries.schedule_in(project, schedule_id))
    messages.success(request, "That report is no longer sent.")
    return redirect(f"{address('page', project)}#schedules")


_BILLS_SHOWN = 12


@live_page()
def bills(request: HttpRequest, project: Project) -> HttpResponse:
    parsed = parse_query({**request.GET.dict(), "prices": "actual"}, project, SYSTEM_CLOCK.now().date())
    rows, total = compare_bills(parsed.question)
    shown = list(queries.bills_of(project)[:_BILLS_SHOWN])
    titles = {layout.key: layout.title for layout in layouts()}
    context = {
        "section": "reports",
        "parsed": parsed,
        "question": parsed.question,
        "ranges": PRESETS,
        "rows": [_with_error(row) for row in rows],
        "total": _with_error(total),
        "warning": difference_warning(far_off(Costs(parsed.question, with_services=True).parts)),
        "bills": [(bill, titles.get(bill.layout, ""), period_sentences(bill)) for bill in shown],
        "unfinished": any(bill.state in (FileState.QUEUED, FileState.BUILDING) for bill in shown),
        "layouts": layouts(),
        "form": BillForm(),
    }
    return render(request, "reports/bills.html", context)


def _with_error(row: Compared) -> dict[str, Any]:
    words = "" if row.theirs is None else format_difference(row.ours, row.theirs)
    return {"row": row, "error": words}


@project_action("owner")
def hand_over_bill(request: HttpRequest, project: Project) -> HttpResponse:
    form = BillForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, "Choose the file of a bill first.")
        return redirect(address("bills", project))
    uploaded = form.cleaned_data["file"]
    try:
        accept_bill(
            project=project,
            user=person_of(request),
            name=uploaded.name,
            file=uploaded.file,
            size=uploaded.size,
            replace_anyway=form.cleaned_data["replace_anyway"],
        )
        messages.success(request, "The bill is being read. It is below in a few seconds.")
    except NotTaken as problem:
        messages.error(request, str(problem))
    return redirect(address("bills", project))
