"""Checks that budgets leave room for a measurement, which has a limit of its own and belongs to no job.

What it spends is not booked to the budgets: they count jobs. So it is only let in where its whole limit would fit.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q

from cloud.platform_kinds import PlatformKind
from webapp.accounts.models import Project
from webapp.formatting import display_usd
from webapp.money.budget_chain import headroom
from webapp.money.models import Budget, Scope
from webapp.money.periods import period_start


class NoRoom(Exception):
    """A budget has too little left; the message says which, and what to do."""


def require_room(project: Project, user: Any, picodollars: int, now: datetime) -> None:
    """Raise NoRoom if a budget is too full. `user` None: the server's console, to which no personal budget applies."""
    here = Q(project=None) | Q(project=project)
    scopes = Q(scope__in=(Scope.EVERYTHING, Scope.PROJECT)) | Q(
        scope=Scope.CLOUD, cloud=PlatformKind.AWS_LAMBDA
    )
    if user is not None:
        scopes |= Q(scope=Scope.USER, user=user)
    for budget in Budget.objects.filter(here, scopes, closed_at=None).order_by("pk"):
        if period_start(budget.period, now) > budget.period_start:
            budget.spent_picodollars = budget.overrun_picodollars = 0
        if headroom(budget) < picodollars:
            whose = "of the installation" if budget.project_id is None else "of this project"
            raise NoRoom(
                f"It may cost up to {display_usd(picodollars)}, and the budget “{budget.name}” {whose} has"
                f" {display_usd(headroom(budget))} of its {display_usd(budget.limit_picodollars)} free."
                " Raise that budget, or let jobs end that hold some of it."
            )
