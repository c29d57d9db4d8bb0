"""Money: forecasts, costs by dimension, and reports as files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal

from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from pydantic import BaseModel, Field, StringConstraints, ValidationError

from cloud.timing.forecasting.result import Forecast
from webapp.accounts.models import Project
from webapp.api.paging import Word
from webapp.api.problems import ApiRefused, spec_refused
from webapp.api.router import ApiRouter, EditorsProject, Person, ViewersProject
from webapp.api.routes.history import a_file
from webapp.api.schemas import Request, Shape, Usd
from webapp.jobs.form.spec_problems import problems
from webapp.jobs.launch import cloud_requirements
from webapp.jobs.launch.forecast_panel import headline, on_one_machine
from webapp.jobs.launch.forecasts import learned_forecast
from webapp.jobs.launch.project_choices import schedulers
from webapp.jobs.services import limits
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import Prices
from webapp.reports.files.formats import FORMATS
from webapp.reports.models import FileState, ReportFile
from webapp.reports.report_builds import folder, request_file
from webapp.reports.report_query import By, Question
from webapp.reports.table import Costs, ReportRow

router = ApiRouter(tags=["money"])

_Id = int
_Filter = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")]
_By = Literal["day", "month", "job", "user", "cloud", "service", "tag"]


@dataclass(frozen=True)
class ForecastShape(Forecast):
    """What a job would take and cost, `whole_dollars` without the budget's limit. Dollars of a forecast are numbers,
    because they are no exact amounts. `one_machine`: what a model's training would take and cost on one plain machine;
    empty for other jobs.
    """

    sentence: str
    one_machine: str


class ReportQuestion(Request):
    """The costs of a report, its dimension and its file format. Days are whole and UTC."""

    format: Literal["csv", "xlsx", "pdf", "json", "focus"] = "csv"
    first_day: date
    last_day: date
    by: By = "day"
    prices: Prices = "actual"
    job: Annotated[_Filter, Field(max_length=20)] = ""
    user: _Filter = ""
    cloud: _Filter = ""
    service: _Filter = ""
    tag: _Filter = ""


class ReportShape(Shape):
    id: int
    format: str
    state: Literal["queued", "building", "ready", "failed"]
    reason: str
    asked_at: datetime = Field(validation_alias="requested_at")
    byte_count: int
    expires_at: datetime | None
    file: str | None = Field(description="Where to fetch it, once it is ready.")


class CostRow(BaseModel):
    key: str
    label: str
    cost_usd: Usd
    estimated_usd: Usd
    metered_usd: Usd
    billed_usd: Usd = Field(description="What clouds charge, by their own bills.")
    metered_where_billed_usd: Usd | None = Field(
        description="Metered cost of the same usage; null without a bill."
    )
    calls: int | None


class CostTable(BaseModel):
    by: str
    first_day: date
    last_day: date
    prices: Prices
    rows: list[CostRow]
    total_usd: Usd
    overlaps: bool = Field(description="Whether rows overlap, as those of tags may.")


@router.post("/projects/{slug}/forecast", summary="What a job would take and cost")
def forecast_job(project: EditorsProject, spec: JobSpec) -> ForecastShape:
    """Nothing is launched. Takes up to two seconds; the result for a spec is cached."""
    decided, unknown = schedulers(), cloud_requirements.obstacles(project, spec)
    if refused := [*spec.check_limits(limits()), *unknown, *decided.obstacles(project, spec)]:
        raise spec_refused(refused)
    spec = decided.fill_in_weights(project, cloud_requirements.fill_in_setup(project, spec))
    result = learned_forecast(project, spec)
    return ForecastShape(**vars(result), sentence=headline(result, spec), one_machine=on_one_machine(spec))


@router.get("/projects/{slug}/costs", summary="Costs of a span of days, by dimension")
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
        total_usd=table.total.cost,
        overlaps=table.overlaps,
    )


def _cost_row(row: ReportRow) -> CostRow:
    return CostRow(
        key=row.detail if row.detail.startswith("job_") else row.key,
        label=row.label,
        cost_usd=row.cost,
        estimated_usd=row.amounts.estimated,
        metered_usd=row.amounts.metered,
        billed_usd=row.amounts.billed,
        metered_where_billed_usd=row.metered,
        calls=row.calls,
    )


@router.get("/projects/{slug}/reports", summary="Requested reports")
def list_reports(project: ViewersProject) -> list[ReportShape]:
    rows = ReportFile.objects.filter(project=project).order_by("-requested_at", "-pk")
    return [_report(project.slug, row) for row in rows[:50]]


@router.post("/projects/{slug}/reports", response=202, summary="Build a report")
def create_report(
    project: ViewersProject, person: Person, response: HttpResponse, question: ReportQuestion
) -> ReportShape:
    """The worker builds it, and it is kept for a week. Poll Location until its state is ready."""
    wanted = question_of(project, **question.model_dump(exclude={"format"}))
    made = request_file(question=wanted, format_key=question.format, user=person)
    response["Location"] = reverse("api_v1:get_report", args=[project.slug, made.pk])
    return _report(project.slug, made)


@router.get("/projects/{slug}/reports/{report_id}", summary="One report")
def get_report(project: ViewersProject, report_id: _Id) -> ReportShape:
    return _report(project.slug, _report_in(project, report_id))


@router.get(
    "/projects/{slug}/reports/{report_id}/file", summary="A report's file", openapi_extra=a_file("*/*")
)
def get_report_file(project: ViewersProject, report_id: _Id) -> HttpResponseBase:
    report = _report_in(project, report_id)
    if report.state != FileState.READY:
        raise ApiRefused(
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
    report = ReportFile.objects.filter(project=project, pk=_storable(report_id)).first()
    if report is None:
        raise Http404("There is no such report in this project, or it has expired.")
    return report


def _report(slug: str, file: ReportFile) -> ReportShape:
    ready = file.state == FileState.READY
    return ReportShape.of(
        file, file=reverse("api_v1:get_report_file", args=[slug, file.pk]) if ready else None
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
