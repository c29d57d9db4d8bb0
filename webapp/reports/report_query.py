"""The question that a report answers, and its period of whole UTC days. It is stored with files and schedules, so it is
validated on every load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from pydantic import Field, model_validator

from training.base_model import FrozenModel
from webapp.money.amounts import Prices

PRESETS = {
    "this-month": "This month",
    "last-month": "Last month",
    "last-7-days": "Last 7 days",
    "last-30-days": "Last 30 days",
}


MOST_DAYS = 3660


class NoPeriod(ValueError):
    """Two days that form no period; the message says why."""


@dataclass(frozen=True)
class DayRange:
    """From the first day to the last, both included, in UTC."""

    first_day: date
    last_day: date

    def __post_init__(self) -> None:
        if self.last_day < self.first_day:
            raise NoPeriod("The last day is before the first one.")
        if self.day_count > MOST_DAYS:
            raise NoPeriod("A report spans ten years at most.")

    @property
    def start(self) -> datetime:
        return datetime.combine(self.first_day, time(), UTC)

    @property
    def end(self) -> datetime:
        """The first moment after it."""
        return datetime.combine(self.last_day + timedelta(days=1), time(), UTC)

    @property
    def day_count(self) -> int:
        return (self.last_day - self.first_day).days + 1

    def days(self) -> Iterator[date]:
        for number in range(self.day_count):
            yield self.first_day + timedelta(days=number)

    def __str__(self) -> str:
        if self.first_day == self.last_day:
            return self.first_day.isoformat()
        return f"{self.first_day.isoformat()} to {self.last_day.isoformat()}"


def preset(name: str, today: date) -> DayRange:
    """The period of that name as of today; the current month ends with its last day."""
    if name == "last-month":
        return month_before(today)
    if name == "last-7-days":
        return DayRange(today - timedelta(days=6), today)
    if name == "last-30-days":
        return DayRange(today - timedelta(days=29), today)
    return month_of(today)


def month_of(day: date) -> DayRange:
    first = day.replace(day=1)
    return DayRange(first, (first + timedelta(days=32)).replace(day=1) - timedelta(days=1))


def month_before(day: date) -> DayRange:
    return month_of(day.replace(day=1) - timedelta(days=1))


def week_before(day: date) -> DayRange:
    """The last whole week, Monday to Sunday."""
    monday = day - timedelta(days=day.weekday() + 7)
    return DayRange(monday, monday + timedelta(days=6))


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
    def period(self) -> DayRange:
        return DayRange(self.first_day, self.last_day)

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set, by name."""
        named = {name: getattr(self, name) for name in ("job", "user", "cloud", "service", "tag")}
        return {name: value for name, value in named.items() if value}
