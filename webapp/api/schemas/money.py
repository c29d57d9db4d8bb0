"""Schemas of budgets and reports."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from webapp.api.schemas.jobs import Usd
from webapp.money.amounts import Prices
from webapp.reports.report_query import By

Filter = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")]


class BudgetShape(BaseModel):
    id: int
    name: str
    counts: str = Field(description="What it counts, in words.")
    scope: str
    period: str
    spent_usd: Usd
    reserved_usd: Usd
    free_usd: Usd
    limit_usd: Usd
    at_line: str
    thresholds: list[int] = Field(description="Percentages of the limit at which alerts are sent.")
    outlook: str
    closed: bool


class ReportQuestion(BaseModel):
    """The costs of a report, its dimension and its file format. Days are whole and UTC."""

    model_config = {"extra": "forbid"}

    format: Literal["csv", "xlsx", "pdf", "json", "focus"] = "csv"
    first_day: date
    last_day: date
    by: By = "day"
    prices: Prices = "actual"
    job: Annotated[Filter, Field(max_length=20)] = ""
    user: Filter = ""
    cloud: Filter = ""
    service: Filter = ""
    tag: Filter = ""


class ReportShape(BaseModel):
    id: int
    format: str
    state: Literal["queued", "building", "ready", "failed"]
    reason: str
    asked_at: datetime
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
