"""Budgets over the accounts of many jobs: created, attached, raised, closed. Only writes.

Creating a budget and opening an account both lock the project's row first, so no job can start without the
budget above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Model, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import display_usd, format_day
from webapp.money.amounts import display_least_usd
from webapp.money.budget_chain import Chain, headroom, lock_budgets, period_end, period_start, roll_over
from webapp.money.models import (
    Account,
    AtLine,
    Budget,
    BudgetScope,
    Charge,
    ChargeState,
    Period,
    default_thresholds,
)


class BudgetRefused(ValueError):
    """The budget is refused. The text says why and what is allowed."""


def lock_project(project_id: int | None) -> None:
    """Keep other transactions from opening accounts or creating budgets there until this one ends; None:
    anywhere."""
    rows = Project.objects.order_by("pk") if project_id is None else Project.objects.filter(pk=project_id)
    list(rows.select_for_update(no_key=True).values_list("pk", flat=True))


@transaction.atomic
def create_budget(
    *,
    project: Project | None,
    name: str,
    limit_picodollars: int,
    scope: str = BudgetScope.PROJECT,
    of: Mapping[str, Any] | None = None,
    period: str = Period.TOTAL,
    at_line: str = AtLine.DRAIN,
    thresholds: list[int] | None = None,
    user: User | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Budget:
    """Create a budget above all accounts in its scope. `project` None: for the installation. `of`: user,
    cloud, tag or group.

    What the accounts have spent in the period and hold now counts. BudgetRefused if that exceeds the limit.
    """
    lock_project(project.pk if project is not None else None)
    now = clock.now()
    budget = Budget(
        name=name,
        project=project,
        scope=scope,
        period=period,
        period_start=period_start(period, now),
        limit_picodollars=limit_picodollars,
        at_line=at_line,
        thresholds=thresholds or default_thresholds(),
        created_by=user,
        created_at=now,
        **(of or {}),
    )
    accounts = accounts_of(budget)
    # An account without a budget so far keeps what is in flight; its next call requests more.
    unbound = accounts.exclude(budgets__in=Budget.objects.filter(closed_at=None))
    Account.objects.filter(pk__in=unbound.values("pk")).update(
        granted_picodollars=F("spent_picodollars") + F("reserved_picodollars")
    )
    ids = list(accounts.order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True))
    budget.spent_picodollars = spent_since(ids, budget.period_start)
    budget.reserved_picodollars = _held(ids)
    least = budget.spent_picodollars + budget.reserved_picodollars
    if limit_picodollars < max(1, least):
        raise BudgetRefused(
            f"{display_usd(least)} of it is spent or set aside for running jobs already; the budget must be more."
        )
    budget.save()
    links = Account.budgets.through
    links.objects.bulk_create([links(account_id=pk, budget_id=budget.pk) for pk in ids], batch_size=500)
    return budget


def accounts_of(budget: Budget) -> QuerySet[Account]:
    rows = Account.objects.all()
    if budget.project_id is not None:
        rows = rows.filter(job__project_id=budget.project_id)
    if budget.scope == BudgetScope.USER:
        return rows.filter(job__created_by_id=budget.user_id)
    if budget.scope == BudgetScope.CLOUD:
        return rows.filter(job__spec__platform__kind=budget.cloud)
    if budget.scope == BudgetScope.TAG:
        return rows.filter(job__tags=budget.tag_id)
    if budget.scope == BudgetScope.GROUP:
        return rows.filter(job__groups=budget.group_id)
    return rows


def budgets_over(account: Account) -> QuerySet[Budget]:
    """Return the open budgets whose scope includes an account's job. The job must have its tags and groups
    already."""
    job = account.job
    return budgets_of(
        project_id=job.project_id,
        user_id=job.created_by_id,
        cloud=job.spec["platform"]["kind"],
        tags=job.tags.all(),
        groups=job.groups.all(),
    )


def budgets_of(
    *, project_id: int, user_id: int, cloud: str, tags: Iterable[Model], groups: Iterable[Model]
) -> QuerySet[Budget]:
    """Return the open budgets whose scope includes such a job."""
    here = Q(project__isnull=True) | Q(project_id=project_id)
    scopes = (
        Q(scope__in=(BudgetScope.EVERYTHING, BudgetScope.PROJECT))
        | Q(scope=BudgetScope.USER, user_id=user_id)
        | Q(scope=BudgetScope.CLOUD, cloud=cloud)
        | Q(scope=BudgetScope.TAG, tag__in=tags)
        | Q(scope=BudgetScope.GROUP, group__in=groups)
    )
    return Budget.objects.filter(here, scopes, closed_at=None)


def spent_since(account_ids: list[int], start: Any) -> int:
    """Return what was booked to these accounts from `start` on, overruns included."""
    total = 0
    for at in range(0, len(account_ids), 500):
        rows = Charge.objects.filter(
            account__in=account_ids[at : at + 500], state=ChargeState.SETTLED, resolved_at__gte=start
        )
        total += rows.aggregate(sum=Coalesce(Sum("settled_picodollars"), 0))["sum"]
    return total


def _held(account_ids: list[int]) -> int:
    total = 0
    for at in range(0, len(account_ids), 500):
        rows = Account.objects.filter(pk__in=account_ids[at : at + 500])
        unspent = Sum(F("granted_picodollars") - F("spent_picodollars"))
        total += rows.aggregate(sum=Coalesce(unspent, 0))["sum"]
    return total


@transaction.atomic
def change_budget(*, budget: Budget, clock: Clock = SYSTEM_CLOCK, **changes: Any) -> Budget:
    """Change name, limit, thresholds or the action at the limit. A raised limit rearms the thresholds.

    BudgetRefused if the limit would be below what is spent and held.
    """
    held = roll_over(lock_budgets(Budget.objects.filter(pk=budget.pk))[0], clock.now())
    limit = changes.get("limit_picodollars", held.limit_picodollars)
    least = held.spent_picodollars + held.reserved_picodollars
    if limit < least:
        raise BudgetRefused(
            f"{display_usd(least)} of it is spent or set aside for running jobs already; the limit must be more."
        )
    if limit > held.limit_picodollars:
        held.arming += 1
    for field, value in changes.items():
        setattr(held, field, value)
    held.save(update_fields=[*changes, "arming"])
    return held


@transaction.atomic
def close_budget(*, budget: Budget, clock: Clock = SYSTEM_CLOCK) -> None:
    """Close a budget: it limits no job any more, and its history stays readable."""
    held = lock_budgets(Budget.objects.filter(pk=budget.pk, closed_at=None))
    for locked in held:
        locked.closed_at, locked.reserved_picodollars = clock.now(), 0
        locked.save(update_fields=["closed_at", "reserved_picodollars"])


class NoRoom(ValueError):
    """The budgets above have no room for what a job needs at least. The text says which, and what to do."""


def attach(*, account: Account, least: int, expected: int, clock: Clock = SYSTEM_CLOCK) -> None:
    """Put the job's new account under all budgets whose scope includes it, and reserve its expected cost.

    NoRoom if one of them has no room for `least`. Call it under `lock_project`, in the job's transaction.
    """
    over = list(budgets_over(account))
    if not over:
        return
    account.budgets.set(over)
    Account.objects.filter(pk=account.pk).update(granted_picodollars=0)
    account.granted_picodollars = 0
    set_aside(account=account, least=least, expected=expected, clock=clock)


def set_aside(*, account: Account, least: int, expected: int, clock: Clock = SYSTEM_CLOCK) -> None:
    """Reserve `expected` more for the locked account in the budgets above, or as much as fits.

    NoRoom if that is less than `least`.
    """
    chain = Chain(account.pk, clock.now())
    left = account.limit_picodollars - account.granted_picodollars
    grant = chain.room(min(left, max(least, expected)))
    if grant < min(least, left):
        raise NoRoom(no_room_sentence(chain, least))
    chain.hold(grant)
    Account.objects.filter(pk=account.pk).update(granted_picodollars=F("granted_picodollars") + grant)


def no_room_sentence(chain: Chain, least: int) -> str:
    """Return why there is no room, where, and what to do."""
    tightest = chain.tightest()
    if tightest is None:
        raise ValueError("without budgets above there is always room")
    return _no_room(tightest, least, chain.now)


def _no_room(budget: Budget, least: int, now: datetime) -> str:
    """Return what a launch needs at least, how much is free where, and what to do."""
    whose = "of the installation" if budget.project_id is None else "of this project"
    whose += f" for jobs of {budget.user}" if budget.scope == BudgetScope.USER else ""
    ways = ["raise that budget", "let other jobs end"]
    end = period_end(budget.period, now)
    if end is not None:
        ways.insert(1, f"wait until {format_day(end)}, when it resets")
    return (
        f"The first round may cost up to {display_least_usd(least)}, and the budget “{budget.name}” {whose} has"
        f" {display_usd(headroom(budget))} of its {display_usd(budget.limit_picodollars)} free:"
        f" {display_usd(budget.spent_picodollars + budget.overrun_picodollars)} is spent and"
        f" {display_usd(budget.reserved_picodollars)} is set aside for jobs."
        f" {_listed(ways)}."
    )


def _listed(ways: list[str]) -> str:
    text = f"{', '.join(ways[:-1])}{',' if len(ways) > 2 else ''} or {ways[-1]}"
    return text[:1].upper() + text[1:]
