"""When a budget's period begins and ends, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from webapp.money.models import Period

_EVER = datetime(1970, 1, 1, tzinfo=UTC)


def period_start(period: str, now: datetime) -> datetime:
    """Return the start of the period of `now`; a total has no start."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == Period.MONTHLY:
        return midnight.replace(day=1)
    if period == Period.WEEKLY:
        return midnight - timedelta(days=midnight.weekday())
    return _EVER


def period_end(period: str, now: datetime) -> datetime | None:
    """Return the start of the next period; None for a total."""
    start = period_start(period, now)
    if period == Period.MONTHLY:
        return (start + timedelta(days=32)).replace(day=1)
    if period == Period.WEEKLY:
        return start + timedelta(days=7)
    return None
