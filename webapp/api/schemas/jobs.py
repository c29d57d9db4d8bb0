"""Schemas of projects and jobs. Money is exact dollars as text; times are RFC 3339 in UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from webapp.money.amounts import Prices

Usd = str
"""Exact US dollars as a decimal text, such as 0.0312."""


class ProjectShape(BaseModel):
    slug: str
    name: str
    role: Literal["viewer", "editor", "owner"]
    created_at: datetime
    url: str = Field(description="Its page.")


class JobShape(BaseModel):
    """A job: its settings, its state, and its latest figures."""

    id: str
    project: str
    name: str
    url: str = Field(description="Its page.")
    state: str = Field(description="queued, starting, running, recovering, draining, paused, succeeded, …")
    state_words: str
    reason_code: str
    reason: str = Field(description="Why it is in this state.")
    wanted: Literal["run", "paused", "cancelled"]
    since: datetime
    over: bool
    money: Prices = Field(description="Whether its money is real.")
    environment: str
    algorithm: str
    platform: str
    seed: int
    tags: list[str]
    groups: list[str]
    note: str
    archived_at: datetime | None = Field(description="Since when it is hidden from lists.")
    actors_least: int | None = Field(description="Bounds set since the launch; null: none.")
    actors_most: int | None
    created_at: datetime
    created_by: str
    started_at: datetime | None
    finished_at: datetime | None
    round_no: int
    env_steps: int
    actors: int
    episode_return_mean: float | None
    evaluation_return_mean: float | None
    platform_s: float = Field(description="Seconds of the platform's own time, which may be simulated.")
    spent_usd: Usd
    reserved_usd: Usd
    limit_usd: Usd
    free_usd: Usd
    last_event: int


class EventShape(BaseModel):
    seq: int
    at: datetime
    kind: str
    payload: dict[str, Any]


class RoundShape(BaseModel):
    """A round's report by the run. Figures that were not finite are null."""

    round_no: int
    at: datetime
    report: dict[str, Any]


class EvaluationShape(BaseModel):
    """An evaluation. Those that a resume repeated are left out."""

    round_no: int
    env_steps: int
    return_mean: float | None
    return_std: float | None
    episode_returns: list[float | None]


class CheckpointShape(BaseModel):
    name: str
    round_no: int
    sha256: str
    byte_count: int
    at: datetime
    best: bool
    env_steps: int | None
    return_mean: float | None = Field(description="Of the evaluation of that round, if there was one.")


class KindOfCharge(BaseModel):
    kind: str
    settled: int
    open: int
    cost_usd: Usd
    reserved_usd: Usd


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
    by_kind: list[KindOfCharge]
    budgets_above: list[BudgetAbove]


class BandShape(BaseModel):
    p10: float
    p50: float
    p90: float


class MatterShape(BaseModel):
    title: str
    minutes: tuple[float, float]
    dollars: tuple[float, float]


class ForecastShape(BaseModel):
    """What a job would take and cost. Dollars of a forecast are numbers, because they are no exact amounts."""

    sentence: str
    dollars: BandShape
    whole_dollars: BandShape = Field(description="Without the budget's limit.")
    minutes: BandShape
    steps: BandShape
    rounds: BandShape
    calls: BandShape
    cold_starts: BandShape
    parts: dict[str, BandShape]
    ends_by: str
    budget_share: float
    kept_back: float
    least_budget: float
    costs_nothing: bool
    simulated: bool
    assumptions: list[str]
    matters: list[MatterShape]
