"""Periods of whole UTC days, and presets such as last month."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

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
class Period:
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


def preset(name: str, today: date) -> Period:
    """The period of that name as of today; the current month ends with its last day."""
    if name == "last-month":
        return month_before(today)
    if name == "last-7-days":
        return Period(today - timedelta(days=6), today)
    if name == "last-30-days":
        return Period(today - timedelta(days=29), today)
    return month_of(today)


def month_of(day: date) -> Period:
    first = day.replace(day=1)
    return Period(first, (first + timedelta(days=32)).replace(day=1) - timedelta(days=1))


def month_before(day: date) -> Period:
    return month_of(day.replace(day=1) - timedelta(days=1))


def week_before(day: date) -> Period:
    """The last whole week, Monday to Sunday."""
    monday = day - timedelta(days=day.weekday() + 7)
    return Period(monday, monday + timedelta(days=6))
