"""The question that a report answers. It is stored with files and schedules, so it is validated on every load."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field, model_validator

from training.base_model import FrozenModel
from webapp.money.amounts import Prices
from webapp.reports.period import Period

By = Literal["day", "month", "job", "project", "user", "cloud", "service", "tag", "call"]

BY: dict[str, str] = {
    "day": "Day",
    "month": "Month",
    "job": "Job",
    "project": "Project",
    "user": "User",
    "cloud": "Cloud",
    "service": "Service",
    "tag": "Tag",
    "call": "Call",
}
PRICES: dict[Prices, str] = {
    "actual": "Money that is paid",
    "simulated": "Simulated money, which no one pays",
    "emulated": "Emulated money, which no one pays",
}


class Question(FrozenModel):
    """Which costs, and grouped by what. A report never mixes money that is paid with money that is not.

    `project` None: the whole installation. An empty filter accepts everything.
    """

    project: int | None = None
    first_day: date
    last_day: date
    by: By = "day"
    prices: Prices = "actual"
    job: str = Field("", max_length=20)
    user: str = Field("", max_length=254)
    cloud: str = Field("", max_length=100)
    service: str = Field("", max_length=100)
    tag: str = Field("", max_length=100)

    @model_validator(mode="after")
    def spans_time(self) -> Question:
        _ = self.period
        return self

    @property
    def period(self) -> Period:
        return Period(self.first_day, self.last_day)

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set, by name."""
        named = {name: getattr(self, name) for name in ("job", "user", "cloud", "service", "tag")}
        return {name: value for name, value in named.items() if value}
