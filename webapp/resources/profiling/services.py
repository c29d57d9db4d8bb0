"""Requests for memory profiles: the cost is known and its budget checked before anything is created."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from cloud.accounts.profiling_runs import ProfilingPlan, likely_picodollars, most_picodollars
from cloud.money.billing.price_book import PriceBook, PriceError, UnknownSku
from cloud.money.pricing import Tariff
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import stack as stacks
from training.rl.environments.measuring import NotMeasured, measured_apart
from training.rl.packages import package_of
from webapp.accounts.models import Project, User
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import account_lease
from webapp.connections.models import Connection
from webapp.connections.queries import is_given_up, is_under_way
from webapp.formatting import display_usd
from webapp.money.budget_chain import headroom, period_start
from webapp.money.models import Budget, BudgetScope
from webapp.resources.profiling import queries
from webapp.resources.profiling.models import MemoryProfile

LIMIT_PICODOLLARS = 25 * 10**10


class ProfileRefused(Exception):
    """The requested profile is not possible; the message says why, for the page."""


@dataclass(frozen=True)
class ProfilingCost:
    """The expected cost in picodollars. The ledger never allows more than `most`."""

    most: int
    likely: int


def tariff_of(connection: Connection | None) -> Tariff:
    """The tariff of the profile's calls. Raises ProfileRefused if there is no price."""
    try:
        if connection is None:
            return SimulatedOptions(learner="function").tariff(PriceBook.load(), 1024)
        return LambdaOptions(region=connection.region).tariff(PriceBook.load(), 1024)
    except (UnknownSku, PriceError) as error:
        raise ProfileRefused(f"Without a price nothing may be spent, and {error}.") from None


def cost_of(connection: Connection | None, plan: ProfilingPlan) -> ProfilingCost:
    tariff = tariff_of(connection)
    return ProfilingCost(
        most_picodollars(plan, tariff), likely_picodollars(plan, tariff, stacks.load(stacks.OURS))
    )


def ask_for_profile(
    *,
    project: Project,
    user: User,
    connection: Connection | None,
    plan: ProfilingPlan,
    keep: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> MemoryProfile:
    """Queue a profile. It holds the account's lease, so set-up and removal wait. Raises ProfileRefused."""
    try:
        measured_apart(plan.environment)  # may take a second: before rows are locked
    except ValueError as error:
        raise ProfileRefused(f"{plan.environment.id} cannot be used here: {error}.") from None
    except NotMeasured:
        pass  # the worker makes it again, and says what it finds
    if connection is not None and (package := package_of(plan.environment.id)):
        raise ProfileRefused(
            f"{plan.environment.id} needs the package {package}, which functions do not get. Profile it on the"
            " simulated cloud, which runs on this machine."
        )
    return _queue(project, user, connection, plan, keep, clock)


@transaction.atomic
def _queue(
    project: Project, user: User, connection: Connection | None, plan: ProfilingPlan, keep: bool, clock: Clock
) -> MemoryProfile:
    cost = cost_of(connection, plan)
    number, missing = None, []
    if connection is None:
        _require_none_under_way(project, clock)
    else:
        if cost.most > LIMIT_PICODOLLARS:
            raise ProfileRefused(
                f"It could cost up to {display_usd(cost.most)}, and a profile may cost"
                f" {display_usd(LIMIT_PICODOLLARS)}. Ask for fewer or smaller sizes, or for fewer calls."
            )
        try:
            require_room(project, user, cost.most, clock.now())
            claim = account_lease.claim_account(connection, plan.memory_mb, clock=clock)
        except (account_lease.LeaseRefused, BudgetTooSmall) as error:
            raise ProfileRefused(str(error)) from None
        number, missing = claim.number, list(claim.made_mb)
    profile = MemoryProfile.objects.create(
        project=project,
        connection=connection,
        requested_by=user,
        requested_at=clock.now(),
        since=clock.now(),
        plan=plan.model_dump(mode="json"),
        keep=keep,
        set_up_number=number,
        made_mb=missing,
        limit_picodollars=cost.most if connection is not None else 0,
    )
    transaction.on_commit(
        lambda: send_hint("webapp.resources.profiling.tasks.profile_memory", profile.pk), robust=True
    )
    return profile


def _require_none_under_way(project: Project, clock: Clock) -> None:
    """Raise ProfileRefused while the project has an unfinished profile: each keeps a core of this machine busy."""
    Project.objects.select_for_update().get(pk=project.pk)
    latest = queries.profiles_of(project, None).first()
    if latest and is_under_way(latest.state) and not is_given_up(latest.state, latest.since, clock.now()):
        raise ProfileRefused("A profile is being measured already.")


class BudgetTooSmall(Exception):
    """A budget has too little left; the message says which, and what to do."""


def require_room(project: Project, user: User | None, picodollars: int, now: datetime) -> None:
    """Raise NoRoom if a budget is too full. `user` None: the server's console, to which no personal budget applies."""
    here = Q(project=None) | Q(project=project)
    scopes = Q(scope__in=(BudgetScope.EVERYTHING, BudgetScope.PROJECT)) | Q(
        scope=BudgetScope.CLOUD, cloud=LambdaOptions().kind
    )
    if user is not None:
        scopes |= Q(scope=BudgetScope.USER, user=user)
    for budget in Budget.objects.filter(here, scopes, closed_at=None).order_by("pk"):
        if period_start(budget.period, now) > budget.period_start:
            budget.spent_picodollars = budget.overrun_picodollars = 0
        if headroom(budget) < picodollars:
            whose = "of the installation" if budget.project_id is None else "of this project"
            raise BudgetTooSmall(
                f"It may cost up to {display_usd(picodollars)}, and the budget “{budget.name}” {whose} has"
                f" {display_usd(headroom(budget))} of its {display_usd(budget.limit_picodollars)} free."
                " Raise that budget, or let jobs end that hold some of it."
            )
