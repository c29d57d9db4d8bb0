"""What a bill says of an account's billing period, and whether it may replace what is stored of that period.

Clouds write the bill of a period anew each day, from its first day on, and the ids of its lines change. So a file
replaces all that is stored of its accounts and periods. A file that is older, or only a part, would take away costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from cloud.formatting import display_usd, plural
from webapp.reports.models import BilledPeriod, CloudBill, FileState

_SMALLER = 10
"""A file is taken for a part if it bills over a tenth less than what is stored."""


class PeriodKey(NamedTuple):
    """A billing period of an account. `account` is empty where no column of the bill names it."""

    provider: str
    account: str
    first_day: date

    def __str__(self) -> str:
        account = f"account {self.account}" if self.account else "account not named"
        return f"{self.provider}, {account}, {format_period(self.first_day)}"


@dataclass
class Coverage:
    """The usage of a period on a bill. Lines and amount are those that are stored, of services that Starling uses."""

    used_from: date
    used_until: date
    line_count: int = 0
    picodollars: int = 0
    services: set[str] = field(default_factory=set)

    def extend(self, day: date) -> None:
        self.used_from = min(self.used_from, day)
        self.used_until = max(self.used_until, day)


def format_period(first_day: date) -> str:
    """The month, or the day on which a period begins that is no calendar month."""
    return f"{first_day:%B %Y}" if first_day.day == 1 else f"period from {first_day}"


def doubt(key: PeriodKey, new: Coverage, stored: Coverage, stored_name: str) -> str:
    """Why a file may be older than what is stored of the period, or only a part of it; empty if it may replace it."""
    if new.used_until < stored.used_until:
        found = f"ends on {new.used_until}, and {stored_name} on {stored.used_until}"
        return f"It is older than the bill that is stored. For {key}, it {found}."
    if new.used_from > stored.used_from:
        found = f"begins on {new.used_from}, and {stored_name} on {stored.used_from}"
        return f"It looks like a part of a bill. For {key}, it {found}."
    if missing := stored.services - new.services:
        found = f"has no line of {', '.join(sorted(missing))}, and {stored_name} has"
        return f"It looks like a part of a bill. For {key}, it {found}."
    if (stored.picodollars - new.picodollars) * _SMALLER > abs(stored.picodollars):
        found = f"bills {display_usd(new.picodollars)}, and {stored_name} {display_usd(stored.picodollars)}"
        return f"It looks like a part of a bill. For {key}, it {found}."
    return ""


WHAT_TO_DO = (
    "Nothing was changed. Export the whole period again, or tick “Replace what is stored anyway”"
    " and import this file again."
)


_PERIODS_SHOWN = 4


def period_sentences(bill: CloudBill) -> list[str]:
    """What a bill that was read has of each account and period, and what it replaced or was replaced by."""
    if bill.state != FileState.READY:
        return []
    replaced: dict[tuple[str, date], list[BilledPeriod]] = {}
    for period in bill.replaced.all():
        replaced.setdefault((period.provider, period.first_day), []).append(period)
    lines = [_sentence(period, replaced) for period in bill.periods.all()]
    more = len(lines) - _PERIODS_SHOWN
    return lines if more <= 0 else [*lines[:_PERIODS_SHOWN], f"And {more:,} more accounts and periods."]


def _sentence(period: BilledPeriod, replaced: Mapping[tuple[str, date], list[BilledPeriod]]) -> str:
    key = PeriodKey(period.provider, period.account, period.first_day)
    before = [
        one
        for one in replaced.get((period.provider, period.first_day), ())
        if not period.account or one.account in (period.account, "")
    ]
    words = f"{key}: {_amount(period)}"
    if before:
        words += ", in place of " + " and ".join(f"{_amount(one)} of {one.bill.name}" for one in before)
    if period.replaced_by is not None and period.replaced_by.state == FileState.READY:
        words += f". Replaced by {period.replaced_by.name}"
    return f"{words}."


def _amount(period: BilledPeriod) -> str:
    return f"{display_usd(period.picodollars)} in {plural(period.line_count, 'line')}"
