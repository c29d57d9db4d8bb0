"""Budgets in words: what they are for, when they begin anew, and why a job does not fit."""

from __future__ import annotations

from datetime import datetime

from webapp.money.amounts import display_least_usd, display_usd
from webapp.money.budget_chain import headroom
from webapp.money.models import Budget, Period, Scope
from webapp.money.periods import period_end


def no_room(budget: Budget, least: int, now: datetime) -> str:
    """What a launch needs at least, how much is free where, and what to do."""
    whose = "of the installation" if budget.project_id is None else "of this project"
    ways = ["raise that budget", "let other jobs end"]
    end = period_end(budget.period, now)
    if end is not None:
        ways.insert(1, f"wait until {day(end)}, when it begins anew")
    return (
        f"The first round may cost up to {display_least_usd(least)}, and the budget “{budget.name}” {whose} has"
        f" {display_usd(headroom(budget))} of its {display_usd(budget.limit_picodollars)} free:"
        f" {display_usd(budget.spent_picodollars + budget.overrun_picodollars)} is spent and"
        f" {display_usd(budget.reserved_picodollars)} is set aside for jobs."
        f" {_listed(ways)}."
    )


def day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B}"


def _listed(ways: list[str]) -> str:
    text = f"{', '.join(ways[:-1])}{',' if len(ways) > 2 else ''} or {ways[-1]}"
    return text[:1].upper() + text[1:]


def scope_words(budget: Budget) -> str:
    """What counts: "all jobs of this project", "jobs tagged sweep"."""
    match budget.scope:
        case Scope.EVERYTHING:
            return "all jobs of this installation"
        case Scope.PROJECT:
            return "all jobs of this project"
        case Scope.USER:
            return f"jobs of {budget.user}"
        case Scope.CLOUD:
            return f"jobs on {CLOUDS.get(budget.cloud, budget.cloud)}"
        case Scope.TAG:
            return f"jobs tagged {budget.tag}"
    return f"jobs of the group {budget.group}"


CLOUDS = {
    "local": "this machine",
    "simulated": "the simulated cloud",
    "aws_lambda": "AWS Lambda",
    "azure_container": "Azure Container Instances",
    "hosts": "machines of yours",
    "ray": "a Ray cluster",
}


def period_words(budget: Budget) -> str:
    return {Period.MONTHLY: "a month", Period.WEEKLY: "a week"}.get(Period(budget.period), "in all")
