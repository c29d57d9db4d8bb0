"""Thresholds of limits that were reached: rows for alerts, written with the booking that crossed them.

Edge-triggered: only a booking that takes the spending across a threshold writes a row, and only one for each
arming. A raised limit, a new period and a correction below a threshold that was reached rearm.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import F

from webapp import doorbell
from webapp.money.models import Account, Budget, Crossing, CrossingKind

JOB_THRESHOLDS = (50, 80, 90, 100)
FORECAST_THRESHOLD = 100


def note_crossings(payer: Account | Budget, before: int, after: int, at: datetime) -> None:
    """Write the thresholds that spending crosses from `before` to `after`. A correction below one rearms them."""
    if _reached(payer, after, before):
        type(payer).objects.filter(pk=payer.pk).update(arming=F("arming") + 1)
    _write(payer, CrossingKind.ACTUAL, _reached(payer, before, after), after, at)


def _reached(payer: Account | Budget, before: int, after: int) -> list[int]:
    thresholds = JOB_THRESHOLDS if isinstance(payer, Account) else payer.thresholds
    return [share for share in thresholds if 100 * before < share * payer.limit_picodollars <= 100 * after]


def note_expected(payer: Account | Budget, spent: int, at: datetime, expected_at: datetime | None) -> None:
    """Write that the limit is expected to be met, at about `expected_at`."""
    _write(payer, CrossingKind.FORECAST, [FORECAST_THRESHOLD], spent, at, expected_at)


def _write(
    payer: Account | Budget,
    kind: CrossingKind,
    reached: Iterable[int],
    spent: int,
    at: datetime,
    expected_at: datetime | None = None,
) -> None:
    rows = [
        Crossing(
            account=payer if isinstance(payer, Account) else None,
            budget=payer if isinstance(payer, Budget) else None,
            kind=kind,
            threshold=threshold,
            arming=payer.arming,
            at=at,
            spent_picodollars=spent,
            limit_picodollars=payer.limit_picodollars,
            expected_at=expected_at,
        )
        for threshold in reached
    ]
    if rows:
        Crossing.objects.bulk_create(rows, ignore_conflicts=True)
        doorbell.alerts_on_commit()
