"""Budgets in words: what they count, and for how long."""

from __future__ import annotations

from webapp.money.models import Budget, Period, Scope


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
