"""Schemas of scheduled reports and of clouds' bills."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from webapp.api.schemas.jobs import Usd
from webapp.money.amounts import Prices

_By = Literal["day", "month", "job", "project", "user", "cloud", "service", "tag"]
_Formats = Annotated[
    list[Literal["pdf", "xlsx", "csv", "focus"]],
    Field(min_length=1, max_length=4, description="The files attached to the mail."),
]
_Recipients = Annotated[
    list[Annotated[str, StringConstraints(min_length=3, max_length=254)]],
    Field(min_length=1, max_length=200, description="Addresses of members."),
]


class NewSchedule(BaseModel):
    """Of each whole week or month (UTC), from the next one on."""

    model_config = {"extra": "forbid"}

    every: Literal["week", "month"] = "month"
    by: _By = "day"
    prices: Prices = "actual"
    formats: _Formats = ["pdf", "csv"]
    recipients: _Recipients | None = Field(None, description="Addresses of members; null: only you.")


class ScheduleChange(BaseModel):
    """Only the fields that are sent change. For another rhythm, stop it and make another one."""

    model_config = {"extra": "forbid"}

    by: _By | None = None
    prices: Prices | None = None
    formats: _Formats | None = None
    recipients: _Recipients | None = None


class SendingShape(BaseModel):
    first_day: date
    last_day: date
    state: Literal["sending", "waiting", "sent", "failed"]
    reason: str


class ReportScheduleShape(BaseModel):
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


class BillShape(BaseModel):
    """An uploaded bill of a cloud."""

    id: int
    name: str
    layout: str = Field(description="Its format; empty until it is read.")
    state: Literal["queued", "building", "ready", "failed"]
    reason: str
    lines: int
    lines_kept: int = Field(description="Lines of services that are used here.")
    handed_over_by: str
    since: datetime


class BilledRow(BaseModel):
    """One service on one day; without either, the whole bill."""

    day: date | None
    service: str
    metered_usd: Usd
    billed_usd: Usd | None = Field(description="Null: not on a bill that was read.")
    off_usd: Usd | None = Field(description="How much too high the metered cost is.")
    off_percent: float | None
    unmatched_usd: Usd = Field(description="On the bill, without metered usage.")
    unmatched_lines: int


class BilledDifference(BaseModel):
    """Metered costs compared with clouds' bills."""

    first_day: date
    last_day: date
    rows: list[BilledRow] = Field(description="Newest first.")
    total: BilledRow
