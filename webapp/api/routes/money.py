"""Money: forecasts, costs by dimension, and reports as files."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Literal

from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from pydantic import ValidationError

from cloud.forecast import NoForecast
from webapp.accounts.models import Project
from webapp.api.paging import Word
from webapp.api.problems import Refused, spec_refused
from webapp.api.router import ApiRouter, EditorsProject, Person, ViewersProject
from webapp.api.routes.history import a_file
from webapp.api.schemas.jobs import ForecastShape
from webapp.api.schemas.money import CostRow, CostTable, ReportQuestion, ReportShape
from webapp.jobs.form.spec_problems import problems
from webapp.jobs.launch import cloud_requirements
from webapp.jobs.launch.forecast_panel import headline
from webapp.jobs.launch.forecasts import learned_forecast
from webapp.jobs.services import limits
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import Prices, exact_usd
from webapp.reports.files.formats import FORMATS
from webapp.reports.models import FileState, ReportFile
from webapp.reports.report_builds import TooMany, folder, request_file
from webapp.reports.report_query import Question
from webapp.reports.table import Costs, Row

router = ApiRouter(tags=["money"])

_Id = int
_By = Literal["day", "month", "job", "user", "cloud", "service", "tag"]


@router.post("/projects/{slug}/forecast", response=ForecastShape, summary="What a job would take and cost")
def forecast(project: EditorsProject, spec: JobSpec) -> ForecastShape:
    """Nothing is launched. Takes up to two seconds; the result for a spec is cached."""
    if refused := [*spec.check_limits(limits()), *cloud_requirements.obstacles(project, spec)]:
        raise spec_refused(refused)
    spec = cloud_requirements.fill_in_setup(project, spec)
    try:
        found = learned_forecast(project, spec)
    except NoForecast as refusal:
        raise Refused(
            409, "no-forecast", "There is no forecast.", str(refusal), "Launch it without."
        ) from None
    return ForecastShape(sentence=headline(found, spec), **asdict(found))


@router.get("/projects/{slug}/costs", response=CostTable, summary="Costs of a span of days, by dimension")
def get_costs(
    project: ViewersProject,
    first_day: date,
    last_day: date,
    by: _By = "day",
    prices: Prices = "actual",
    job: Word = "",
    tag: Word = "",
) -> CostTable:
    """As on the page of reports: the total is the ledger's, to the last digit. Only reports list calls."""
    question = question_of(
        project, first_day=first_day, last_day=last_day, by=by, prices=prices, job=job[:20], tag=tag
    )
    table = Costs(question).table()
    return CostTable(
        by=by,
        first_day=first_day,
        last_day=last_day,
        prices=prices,
        rows=[_cost_row(row) for row in table.rows],
        total_usd=exact_usd(table.total.cost),
        overlaps=table.overlaps,
    )


def _cost_row(row: Row) -> CostRow:
    return CostRow(
        key=row.detail if row.detail.startswith("job_") else row.key,
        label=row.label,
        cost_usd=exact_usd(row.cost),
        estimated_usd=exact_usd(row.amounts.estimated),
        metered_usd=exact_usd(row.amounts.metered),
        billed_usd=exact_usd(row.amounts.billed),
        metered_where_billed_usd=None if row.metered is None else exact_usd(row.metered),
        calls=row.calls,
    )


@router.get("/projects/{slug}/reports", response=list[ReportShape], summary="Requested reports")
def list_reports(project: ViewersProject) -> list[ReportShape]:
    rows = ReportFile.objects.filter(project=project).order_by("-asked_at", "-pk")
    return [_report(project.slug, one) for one in rows[:50]]


@router.post("/projects/{slug}/reports", response={202: ReportShape}, summary="Build a report")
def create_report(
    project: ViewersProject, person: Person, response: HttpResponse, question: ReportQuestion
) -> ReportShape:
    """The worker builds it, and it is kept for a week. Poll Location until its state is ready."""
    wanted = question_of(project, **question.model_dump(exclude={"format"}))
    try:
        made = request_file(question=wanted, format_key=question.format, user=person)
    except TooMany as problem:
        raise Refused(409, "too-many", "No report was requested.", str(problem), "Ask again later.") from None
    response["Location"] = reverse("api_v1:get_report", args=[project.slug, made.pk])
    return _report(project.slug, made)


@router.get(
    "/projects/{slug}/reports/{report_id}", response=ReportShape, url_name="get_report", summary="One report"
)
def get_report(project: ViewersProject, report_id: _Id) -> ReportShape:
    return _report(project.slug, _report_in(project, report_id))


@router.get(
    "/projects/{slug}/reports/{report_id}/file",
    url_name="report_file",
    summary="A report's file",
    openapi_extra=a_file("*/*"),
)
def get_report_file(project: ViewersProject, report_id: _Id) -> HttpResponseBase:
    report = _report_in(project, report_id)
    if report.state != FileState.READY:
        raise Refused(
            409, "not-yet", "There is no file.", f"The report is {report.state}.", "Ask again later."
        )
    try:
        file = (folder() / report.file).open("rb")
    except OSError:
        raise Http404("The report's file is gone. Request it again.") from None
    chosen = FORMATS[report.format]
    name = chosen.name_of_file(Question.model_validate(report.question), project.slug)
    answer = FileResponse(file, as_attachment=True, filename=name, content_type=chosen.content_type)
    answer["Cache-Control"] = "no-store"
    return answer


def _report_in(project: Project, report_id: int) -> ReportFile:
    found = ReportFile.objects.filter(project=project, pk=_storable(report_id)).first()
    if found is None:
        raise Http404("There is no such report in this project, or it has expired.")
    return found


def _report(slug: str, one: ReportFile) -> ReportShape:
    ready = one.state == FileState.READY
    return ReportShape(
        id=one.pk,
        format=one.format,
        state=one.state,
        reason=one.reason,
        asked_at=one.asked_at,
        byte_count=one.byte_count,
        expires_at=one.expires_at,
        file=reverse("api_v1:report_file", args=[slug, one.pk]) if ready else None,
    )


def question_of(project: Project, **fields: object) -> Question:
    """A question about the project's costs. Refused if it is invalid."""
    try:
        return Question.model_validate({"project": project.pk, **fields})
    except ValidationError as error:
        raise spec_refused(problems(error, Question)) from None


def _storable(number: int) -> int:
    """The number, if a row can have it. 404 for others, which would be a database error."""
    if not 0 < number < 2**63:
        raise Http404("There is no such thing in this project.")
    return number
