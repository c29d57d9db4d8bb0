"""Which limits hold a running job, its own and those of the budgets above, and how much each of them leaves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from webapp.money.budget_chain import headroom
from webapp.money.models import Account
from webapp.money.queries import budgets_above

OWN = "the job's own budget"


@dataclass(frozen=True)
class Limit:
    """One of the limits that hold a job: its own or a budget's above. `room`: what it may still reserve under it."""

    name: str
    at_line: str
    spent_share: float
    room: int


def limits_of(account_id: int, at_line: str, now: datetime) -> list[Limit]:
    """What holds the job: its own limit first, at which `at_line` happens, then the budgets above."""
    account = Account.objects.get(pk=account_id)
    spent = account.spent_picodollars + account.overrun_picodollars
    held = spent + account.reserved_picodollars
    own = account.limit_picodollars
    found = [Limit(OWN, at_line, spent / own, max(0, own - held))]
    for budget in budgets_above(account_id, now):
        share = (budget.spent_picodollars + budget.overrun_picodollars) / budget.limit_picodollars
        room = account.granted_picodollars - held + headroom(budget)
        found.append(Limit(f"the budget “{budget.name}”", budget.at_line, share, max(0, room)))
    return found
