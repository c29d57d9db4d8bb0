"""Schemas of groups, comparisons and sweeps."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from webapp.api.schemas.jobs import Usd
from webapp.comparing.sweeps import MOST_RUNS
from webapp.jobs.seed_groups import MOST_SEEDS
from webapp.jobs.spec import JobSpec

_Text = Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=r"^[^\x00]*$")]


class GroupShape(BaseModel):
    """Jobs that belong together: the seeds of one setting, the points of a sweep."""

    id: int
    key: str = Field(description="Names it in a comparison, beside the ids of jobs.")
    name: str
    runs: int
    created_at: datetime
    url: str = Field(description="Its page.")


class IntervalShape(BaseModel):
    """An estimate and the two ends of its 95 % interval: null where runs are too few, or too alike, to have one."""

    value: float
    low: float | None
    high: float | None


class AgainstShape(BaseModel):
    """A side compared with the best one."""

    won: float = Field(
        description="In so many pairs a run of the best side beats one of this; ties count half."
    )
    pairs: int = Field(description="Each run of the best side with each of this.")
    better: IntervalShape = Field(description="The share of pairs that were won.")
    p: float = Field(description="By permutation of seeds.")
    told_apart: bool
    more_seeds: int | None = Field(description="That each side needs for a decision; null: more than 50.")
    more_usd: Usd | None = Field(description="What those would cost on this side, about.")


class GoalShape(BaseModel):
    value: float
    words: str


class GettingShape(BaseModel):
    """Median dollars and time to the comparison's goal; null if fewer than half of all runs reached it."""

    reached: int
    runs: int
    usd: float | None
    time_s: float | None


class SideShape(BaseModel):
    """A job, a group, or the runs of a group with the same settings."""

    key: str
    name: str
    jobs: list[str]
    scores: list[float] = Field(description="One a run that has any.")
    iqm: IntervalShape | None = Field(description="Of the scores.")
    cost_usd: Usd
    cost_a_run_usd: Usd | None = Field(description="Of runs that have started; null: none has.")
    time_a_run_s: float | None = Field(description="Of runs that have started; null: not known.")
    best: bool
    efficient: bool = Field(
        description="Significantly better than each other side: in return, dollars or time."
    )
    against_best: AgainstShape | None
    getting: GettingShape | None


class DifferenceShape(BaseModel):
    path: str
    values: list[str] = Field(description="By side.")


class ComparisonShape(BaseModel):
    scored_by: Literal["evaluation", "training"]
    goal: GoalShape | None = Field(description="A return to reach, to compare the cost of reaching it.")
    sides: list[SideShape]
    verdicts: list[str]
    differences: list[DifferenceShape]
    left_out: list[str]


class NewSeeds(BaseModel):
    model_config = {"extra": "forbid"}

    count: int = Field(ge=1, le=MOST_SEEDS)


class NewSweep(BaseModel):
    """`fields`: by path, values such as "0.001, 0.0003" or, by chance, a range such as "1e-4 .. 1e-2"."""

    model_config = {"extra": "forbid"}

    base: JobSpec
    name: Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[^\x00]*$")]
    fields: dict[_Text, _Text] = Field(min_length=1, max_length=5)
    way: Literal["grid", "random"] = "grid"
    points: int = Field(8, ge=1, le=MOST_RUNS, description="Drawn by chance; a grid has all of them.")
    seeds: int = Field(1, ge=1, le=MOST_SEEDS)
    limit_usd: Decimal = Field(gt=0, le=1_000_000, decimal_places=6, description="For all runs together.")
