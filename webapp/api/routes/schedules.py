"""Scheduled reports by mail: list, add, change and stop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from django.urls import reverse
from pydantic import Field

from webapp.accounts.models import Project, User
from webapp.api.auth import Token
from webapp.api.idempotency import create_once
from webapp.api.paging import RowId
from webapp.api.problems import ApiRefused, cleaned
from webapp.api.router import ApiRouter, EditorsProject, Person, ViewersProject
from webapp.api.routes.jobs import Key
from webapp.api.schemas import Address, Request, Shape
from webapp.clock import SYSTEM_CLOCK
from webapp.money.amounts import Prices
from webapp.reports import queries, schedules
from webapp.reports.forms import ScheduleForm
from webapp.reports.models import Schedule

router = ApiRouter(tags=["money"])


_By = Literal["day", "month", "job", "project", "user", "cloud", "service", "tag"]
_Formats = Annotated[
    list[Literal["pdf", "xlsx", "csv", "focus"]],
    Field(min_length=1, max_length=4, description="The files attached to the mail."),
]
_Recipients = Annotated[
    list[Address],
    Field(min_length=1, max_length=200, description="Addresses of members."),
]


class NewSchedule(Request):
    """Of each whole week or month (UTC), from the next one on."""

    every: Literal["week", "month"] = "month"
    by: _By = "day"
    prices: Prices = "actual"
    formats: _Formats = ["pdf", "csv"]
    recipients: _Recipients | None = Field(None, description="Addresses of members; null: only you.")


class ScheduleChange(Request):
    """Only the fields that are sent change. For another rhythm, stop it and make another one."""

    by: _By | None = None
    prices: Prices | None = None
    formats: _Formats | None = None
    recipients: _Recipients | None = None


class SendingShape(Shape):
    first_day: date
    last_day: date
    state: Literal["sending", "waiting", "sent", "failed"]
    reason: str


class ReportScheduleShape(Shape):
    """A report that comes by mail."""

    id: int
    every: Literal["week", "month"]
    by: str
    prices: Prices
    formats: list[str]
    recipients: list[str]
    next_day: date | None = Field(description="When the next mail is due; null once it is stopped.")
    created_at: datetime
    stopped_at: datetime | None
    sendings: list[SendingShape] = Field(description="The latest mails, newest first.")


@router.get("/projects/{slug}/schedules", summary="Reports that come by mail")
def list_schedules(project: ViewersProject) -> list[ReportScheduleShape]:
    today = SYSTEM_CLOCK.now().date()
    return [_schedule(row["schedule"]) for row in queries.schedules_of(project, today)]


@router.get(
    "/projects/{slug}/schedules/{schedule_id}", response=(200, 304), summary="One report that comes by mail"
)
def get_schedule(project: ViewersProject, schedule_id: RowId) -> ReportScheduleShape:
    """Also after it was stopped."""
    schedule = queries.schedule_in(project, schedule_id)
    return _schedule(schedule)


@router.post(
    "/projects/{slug}/schedules", auth=Token("jobs"), response=201, summary="Schedule a report by mail"
)
def add_schedule(
    project: EditorsProject,
    person: Person,
    response: HttpResponse,
    schedule: NewSchedule,
    idempotency_key: Key = "",
) -> ReportScheduleShape:
    """To members of the project. The same Idempotency-Key gives the same one again."""
    fields = _fields_of(project, person, schedule.model_dump())

    def make() -> Schedule:
        return schedules.add_schedule(project=project, user=person, **fields)

    made = queries.schedule_in(
        project, int(create_once(project, "schedule", idempotency_key, schedule, make, response))
    )
    response["Location"] = reverse("api_v1:get_schedule", args=[project.slug, made.pk])
    return _schedule(made)


@router.put(
    "/projects/{slug}/schedules/{schedule_id}",
    auth=Token("jobs"),
    summary="Change a report that comes by mail",
)
def change_schedule(
    project: EditorsProject, person: Person, schedule_id: RowId, change: ScheduleChange
) -> ReportScheduleShape:
    """From the next mail on."""
    held = queries.schedule_in(project, schedule_id)
    if held.stopped_at is not None:
        why, fix = "It was stopped.", "Make another one."
        raise ApiRefused(409, "stopped", "Nothing was changed.", why, fix)
    is_now = {
        "every": held.every,
        "by": held.by,
        "prices": held.prices,
        "formats": held.formats,
        "recipients": queries.readers_of(held),
    }
    fields = _fields_of(project, person, {**is_now, **change.model_dump(exclude_none=True)})
    fields.pop("every")
    schedules.change_schedule(held, **fields)
    return _schedule(held)


@router.delete(
    "/projects/{slug}/schedules/{schedule_id}", auth=Token("jobs"), summary="Stop a report that comes by mail"
)
def stop_schedule(project: EditorsProject, schedule_id: RowId) -> ReportScheduleShape:
    """Sent reports stay on record. Stopping it again changes nothing."""
    schedules.stop_schedule(queries.schedule_in(project, schedule_id))
    return _schedule(queries.schedule_in(project, schedule_id))


def _fields_of(project: Project, user: User, given: dict[str, Any]) -> dict[str, Any]:
    """The cleaned data of the page's form, which identifies people by number instead of address."""
    form = ScheduleForm(None, project=project, user=user)
    given["recipients"] = _numbers(form.fields["recipients"].queryset, given["recipients"] or [user.email])  # type: ignore[attr-defined]
    return cleaned(ScheduleForm(given, project=project, user=user))


def _numbers(members: Any, addresses: Sequence[str]) -> list[int]:
    known = dict(members.values_list("email", "pk"))
    wanted = list(dict.fromkeys(address.strip().lower() for address in addresses))
    if strangers := [address for address in wanted if address not in known]:
        raise ApiRefused(
            422,
            "recipients",
            "Nothing was set up.",
            f"{', '.join(strangers[:3])} is no member of this project.",
            "Add them as members first, or leave them out.",
        )
    return [known[address] for address in wanted]


def _schedule(schedule: Schedule) -> ReportScheduleShape:
    running = schedule.stopped_at is None
    return ReportScheduleShape.of(
        schedule,
        recipients=queries.readers_of(schedule),
        next_day=schedules.next_day(schedule, SYSTEM_CLOCK.now().date()) if running else None,
        sendings=schedule.latest,  # type: ignore[attr-defined]
    )
