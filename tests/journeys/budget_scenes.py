"""Budgets to be looked at: one that is quiet, one that is nearly used up, one at its line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job, Tag
from webapp.money.budget_chain import period_start
from webapp.money.models import Budget

USD = 10**12


def budgets_of(project: Any, user: Any, running: Job, stopped: Job) -> Budget:
    """Three of the project's and one above it; the first is given back."""
    tag, _ = Tag.objects.get_or_create(project=project, name="sweep")
    month = _made(
        project, "This month", 20 * USD, 724 * USD // 100, 231 * USD // 100, period="monthly", user=user
    )
    month.accounts.add(running.account)
    nearly = _made(
        project, "Sweep over actors", 4 * USD, 352 * USD // 100, 31 * USD // 100, scope="tag", tag=tag
    )
    nearly.accounts.add(running.account)
    line = _made(project, "First tries", 2 * USD, 2 * USD, 0, scope="user", user=user)
    line.accounts.add(stopped.account)
    _made(None, "The department", 500 * USD, 96 * USD, 12 * USD, scope="everything", period="monthly")
    return month


def _made(project: Any, name: str, limit: int, spent: int, reserved: int, **fields: Any) -> Budget:
    now = SYSTEM_CLOCK.now()
    period = fields.setdefault("period", "total")
    return Budget.objects.create(
        **{"scope": "project", "created_at": datetime(2026, 1, 1, tzinfo=UTC), **fields},
        project=project,
        name=name,
        limit_picodollars=limit,
        spent_picodollars=spent,
        reserved_picodollars=reserved,
        period_start=period_start(period, now),
    )
