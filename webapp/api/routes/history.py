"""A job's history: events, rounds, evaluations, checkpoints, and its cost."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.core.handlers.asgi import ASGIRequest
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from ninja import Header, Query
from pydantic import BaseModel, Field

from training.engine.checkpoints import CheckpointError
from webapp.api.event_stream import EventShape, EventStream
from webapp.api.job_serialization import EvaluationShape, evaluations_of
from webapp.api.paging import After, Limit, NumberedPage, oldest_first
from webapp.api.problems import ApiRefused
from webapp.api.router import ApiRouter, Person, ViewersJob
from webapp.api.schemas import Shape, StoredReport, Usd, first_name_of
from webapp.api.tensorboard import event_file
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import TERMINAL
from webapp.jobs.billing.bill_panel import cost_by_kind, job_cap
from webapp.jobs.billing.cost_csv import prices_of
from webapp.jobs.models import Job, Round
from webapp.jobs.policies import downloads as policies
from webapp.money.amounts import Prices
from webapp.money.budget_chain import headroom
from webapp.money.queries import budgets_above

router = ApiRouter(tags=["a job's history"])

_LastEventId = Annotated[
    str,
    Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,15}$", description="The last event that was received."),
]
_Name = Annotated[str, Query(max_length=200, description="A checkpoint; else the best, or the newest.")]


class RoundShape(Shape):
    """A round's report by the run. Figures that were not finite are null."""

    round_no: int
    at: datetime
    report: StoredReport


class CheckpointShape(Shape):
    name: str
    round_no: int
    sha256: str
    byte_count: int
    at: datetime
    best: bool
    total_progress: int | None = Field(validation_alias="steps")
    env_steps: int | None = first_name_of("total_progress", "steps")
    evaluated_score: float | None = Field(
        validation_alias="evaluated", description="Of the evaluation of that round, if there was one."
    )
    return_mean: float | None = first_name_of("evaluated_score", "evaluated")


class KindOfCharge(BaseModel):
    kind: str
    settled: int
    open: int
    cost_usd: Usd = Field(validation_alias="picodollars")
    reserved_usd: Usd = Field(validation_alias="reserved")


class BudgetAbove(BaseModel):
    id: int
    name: str
    limit_usd: Usd
    free_usd: Usd


class JobCost(BaseModel):
    """What a job has cost, to the last digit of the ledger."""

    job: str
    money: Prices
    total_usd: Usd
    reserved_usd: Usd
    limit_usd: Usd
    free_usd: Usd
    cap_usd: Usd
    by_kind: list[KindOfCharge]
    budgets_above: list[BudgetAbove]


def a_file(*content_types: str) -> dict[str, object]:
    """The OpenAPI description of a route that returns a file. Generators know bytes as an octet-stream, so it is among
    its types."""
    file = {"schema": {"type": "string", "format": "binary"}}
    content = dict.fromkeys((*content_types, "application/octet-stream"), file)
    return {"responses": {200: {"description": "The file", "content": content}}}


@router.get("/projects/{slug}/jobs/{job_id}/events", summary="Events in order")
def list_events(job: ViewersJob, after: After = 0, limit: Limit = 100) -> NumberedPage[EventShape]:
    """To follow a job, ask again with `next`: events are numbered without gaps."""
    return oldest_first(job.events.all(), after, limit, EventShape.of, "seq")


@router.get(
    "/projects/{slug}/jobs/{job_id}/events/stream",
    summary="Events as they happen",
    openapi_extra={
        "responses": {
            200: {"description": "Events", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
            204: {"description": "The job is over, and there are no further events."},
        }
    },
)
def stream_events(
    request: HttpRequest, job: ViewersJob, person: Person, after: After = 0, last_event_id: _LastEventId = ""
) -> HttpResponseBase:
    """Server-sent events: `id` is an event's number, `event` its kind, `data` what the list of events has. It goes on
    after Last-Event-ID or `after`, has a comment every few seconds, and ends with `end` once the job is over."""
    seen = max(after, int(last_event_id or 0))
    if job.observed in TERMINAL and seen >= job.last_seq:
        return HttpResponse(status=204)
    if not isinstance(request, ASGIRequest):
        raise ApiRefused(
            406,
            "streams",
            "No stream was opened.",
            "This server cannot stream.",
            "Ask for the events instead.",
        )
    return EventStream(person.token, job.pk, seen)


@router.get("/projects/{slug}/jobs/{job_id}/rounds", summary="Reports of rounds")
def list_rounds(job: ViewersJob, after: After = 0, limit: Limit = 100) -> NumberedPage[RoundShape]:
    return oldest_first(Round.objects.filter(job=job), after, limit, RoundShape.of, "round_no")


@router.get("/projects/{slug}/jobs/{job_id}/evaluations", summary="Evaluations")
def list_evaluations(job: ViewersJob) -> list[EvaluationShape]:
    return evaluations_of(job)


@router.get("/projects/{slug}/jobs/{job_id}/checkpoints", summary="Kept checkpoints")
def list_checkpoints(job: ViewersJob) -> list[CheckpointShape]:
    return [CheckpointShape.of(row) for row in policies.list_checkpoints(job)]


@router.get(
    "/projects/{slug}/jobs/{job_id}/checkpoint", summary="A checkpoint's file", openapi_extra=a_file()
)
def get_checkpoint(job: ViewersJob, name: _Name = "") -> HttpResponseBase:
    """The learner's whole state, from which a job can resume."""
    chosen = policies.checkpoint_in(job, name)
    try:
        file = policies.checkpoint_path(job.pk, chosen.name).open("rb")
    except OSError:
        raise Http404("The checkpoint's file is gone.") from None
    return _file(FileResponse(file), "application/octet-stream", f"starling-{job.pk}-{chosen.name}")


@router.get(
    "/projects/{slug}/jobs/{job_id}/policy",
    summary="The policy as a zip, with ONNX and a model card",
    openapi_extra=a_file("application/zip"),
)
def get_policy(job: ViewersJob, checkpoint: _Name = "") -> HttpResponseBase:
    chosen = policies.checkpoint_in(job, checkpoint)
    try:
        content = policies.policy_zip(job, chosen)
    except CheckpointError as error:
        why = f"This policy cannot be exported: {error}."
        raise ApiRefused(
            409, "unreadable-policy", "No file was made.", why, "Take another checkpoint."
        ) from None
    return _file(HttpResponse(content), "application/zip", f"starling-{job.pk}-round-{chosen.round_no}.zip")


@router.get(
    "/projects/{slug}/jobs/{job_id}/tensorboard",
    summary="The run as TensorBoard's event file",
    openapi_extra=a_file(),
)
def get_tensorboard(job: ViewersJob) -> HttpResponseBase:
    """Put it into a folder of its own, and that into `tensorboard --logdir`."""
    return tensorboard_file(job)


def tensorboard_file(job: Job) -> HttpResponseBase:
    name = f"events.out.tfevents.{int(job.created_at.timestamp())}.{job.pk}"
    return _file(StreamingHttpResponse(event_file(job)), "application/octet-stream", name)


@router.get("/projects/{slug}/jobs/{job_id}/cost", summary="What a job has cost")
def get_job_cost(job: ViewersJob) -> JobCost:
    account, cap = job.account, job_cap(job)
    spent = account.spent_picodollars + account.overrun_picodollars
    return JobCost(
        job=job.pk,
        money=prices_of(job),
        total_usd=spent,
        reserved_usd=account.reserved_picodollars,
        limit_usd=account.limit_picodollars,
        free_usd=cap.free,
        cap_usd=cap.total,
        by_kind=[KindOfCharge.model_validate(row) for row in cost_by_kind(account)],
        budgets_above=[
            BudgetAbove(
                id=one.pk, name=one.name, limit_usd=one.limit_picodollars, free_usd=max(0, headroom(one))
            )
            for one in budgets_above(account.pk, SYSTEM_CLOCK.now())
        ],
    )


def _file(answer: HttpResponseBase, content_type: str, name: str) -> HttpResponseBase:
    answer["Content-Type"] = content_type
    answer["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    answer["Cache-Control"] = "no-store"
    return answer
