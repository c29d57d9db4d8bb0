"""Schemas of reward surfaces, films and memory profiles."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from cloud.profiling_runs import Plan
from webapp.api.schemas.jobs import Usd
from webapp.money.amounts import Prices
from webapp.surfaces.services import Grid

_Checkpoint = Annotated[
    str,
    StringConstraints(max_length=200, pattern=r"^[^\x00]*$"),
    Field(description="Its name; empty: the best, else the newest."),
]


class NewSurface(BaseModel):
    model_config = {"extra": "forbid", "allow_inf_nan": False}

    checkpoint: _Checkpoint = ""
    grid: Grid = Field(15, description="Points of a side.")
    span: float = Field(1.0, ge=0.01, le=10, description="How far to each side.")
    episodes: int = Field(1, ge=1, le=20, description="For each point.")


class SurfaceShape(BaseModel):
    """Mean returns around a checkpoint's policy, along the two directions of most curvature."""

    id: int
    checkpoint: str
    round_no: int
    state: Literal["queued", "surveying", "ready", "failed"]
    reason: str
    since: datetime
    grid: int
    span: float
    episodes: int
    points_done: int
    points_asked: int


class SurfaceResult(SurfaceShape):
    """With every point that is known so far."""

    eigenvalues: list[float] = Field(description="Curvature along the first direction and the second.")
    offsets: list[float] = Field(description="Where the grid's lines lie, the same for both directions.")
    points: list[list[float | None]] = Field(
        description="By the first direction, then the second; null: not known yet."
    )
    sentence: str


class NewFilm(BaseModel):
    model_config = {"extra": "forbid"}

    checkpoint: _Checkpoint = ""


class FilmedShape(BaseModel):
    """The episode of a film."""

    frames: int
    width: int
    height: int
    seconds: float
    steps: int
    episode_return: float
    ended: bool = Field(description="The episode ended; false: the film was cut off before.")
    seed: int
    byte_count: int


class FilmShape(BaseModel):
    """An episode of a checkpoint's policy as moving pictures."""

    id: int
    checkpoint: str
    round_no: int
    state: Literal["queued", "filming", "ready", "failed"]
    reason: str
    since: datetime
    shows: FilmedShape | None
    file: str | None = Field(description="Where to fetch it (WebP), once it is ready.")


class NewProfile(Plan):
    """So many calls at each size, one after the other. The first one starts a function and does not count."""

    keep: bool = Field(False, description="In an account: keep functions that were made for it.")


class ProfileCost(BaseModel):
    """The expected cost of a profile, and its limit."""

    money: Prices
    likely_usd: Usd
    most_usd: Usd = Field(description="No ledger lets it cost more.")


class ProfiledSize(BaseModel):
    memory_mb: int
    picked: bool
    calls: int
    seconds_a_million_steps: float
    usd_a_million_steps: Usd
    start_s: float | None
    slower_percent: int = Field(description="Than the fastest.")
    dearer_percent: int = Field(description="Than the cheapest.")
    failure: str


class ProfileShape(BaseModel):
    """How much memory an actor should have, as measured."""

    id: int
    connection: str = Field(description="A connection's id, or simulated.")
    state: Literal["asked", "running", "done"]
    state_words: str
    sentence: str = Field(description="Its progress, the choice and its reason, or the error.")
    money: Prices
    asked_at: datetime
    environment: str
    memory_mb: list[int]
    environments_per_actor: int
    steps: int
    calls: int
    spent_usd: Usd
    limit_usd: Usd
    sizes: list[ProfiledSize]
    chosen_mb: int | None
