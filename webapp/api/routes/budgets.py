"""Budgets above jobs: list, make, change and close. Raising a limit requires the scope “budget”."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from django.db import transaction
from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse
from pydantic import BaseModel, Field, StringConstraints

from webapp.accounts.models import Project, User
from webapp.api.auth import Token
from webapp.api.paging import RowId
from webapp.api.problems import ApiRefused
from webapp.api.router import ApiRouter, Editor, EditorsProject, Person, ViewersProject
from webapp.api.schemas import Request, Usd
from webapp.budgets.display import CLOUDS, BudgetSummary, summarize_budget, summarize_budgets
from webapp.budgets.views import budget_in, require_may_lift
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.list.actions import LabelRefused, tag_named
from webapp.jobs.models import JobGroup, Tag
from webapp.money import budgets
from webapp.money.amounts import picodollars
from webapp.money.models import Budget

router = ApiRouter(tags=["money"])
_Name = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[^\x00]*$")]
_Limit = Annotated[Decimal, Field(gt=0, le=1_000_000, decimal_places=6)]
_Thresholds = Annotated[
    list[Annotated[int, Field(ge=1, le=100)]],
    Field(max_length=10, description="Percentages at which alerts are sent."),
]
_AtLine = Literal["fewer", "drain", "stop"]


class ProjectBudget(Request):
    name: _Name
    counts: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")] = Field(
        "project",
        description="project, or user:EMAIL, cloud:KIND, tag:NAME or group:NAME of this project. A tag may be one that"
        " no job has yet.",
    )
    limit_usd: _Limit
    period: Literal["total", "monthly", "weekly"] = "monthly"
    at_line: _AtLine = "drain"
    thresholds: _Thresholds = [50, 80, 90, 100]


class BudgetChange(Request):
    """Only the fields that are sent change."""

    name: _Name | None = None
    limit_usd: _Limit | None = None
    at_line: _AtLine | None = None
    thresholds: _Thresholds | None = None


class BudgetShape(BaseModel):
    id: int
    name: str
    counts: str = Field(description="What it counts, in words.")
    scope: str
    period: str
    spent_usd: Usd
    reserved_usd: Usd
    free_usd: Usd
    limit_usd: Usd
    at_line: str
    thresholds: list[int] = Field(description="Percentages of the limit at which alerts are sent.")
    outlook: str
    closed: bool


@router.get("/projects/{slug}/budgets", summary="Budgets that bind this project")
def list_budgets(project: ViewersProject) -> list[BudgetShape]:
    """Including those of the installation."""
    now = SYSTEM_CLOCK.now()
    rows = Budget.objects.filter(Q(project=project) | Q(project=None), closed_at=None)
    return [
        _shape(summary)
        for summary in summarize_budgets(rows.select_related("user", "tag", "group").order_by("pk"), now)
    ]


@router.get("/projects/{slug}/budgets/{budget_id}", summary="One budget of the project")
def get_budget(project: ViewersProject, budget_id: RowId) -> BudgetShape:
    return _budget(budget_in(project, budget_id, closed=True))


@router.post("/projects/{slug}/budgets", auth=Token("jobs"), response=201, summary="Make a budget")
def create_budget(
    project: EditorsProject, person: Person, response: HttpResponse, budget: ProjectBudget
) -> BudgetShape:
    """It covers all jobs in its scope, with what they have spent in the period."""
    with transaction.atomic():
        made = budgets.create_budget(
            project=project,
            name=budget.name,
            limit_picodollars=picodollars(budget.limit_usd),
            period=budget.period,
            at_line=budget.at_line,
            thresholds=sorted(set(budget.thresholds)),
            user=person,
            **_placed(project, budget.counts),
        )
    response["Location"] = reverse("api_v1:get_budget", args=[project.slug, made.pk])
    return _budget(made)


@router.put(
    "/projects/{slug}/budgets/{budget_id}", auth=Token("budget"), summary="Change a budget of the project"
)
def change_budget(member: Editor, budget_id: RowId, budget: BudgetChange) -> BudgetShape:
    """Only an owner raises a person's budget."""
    held = budget_in(member.project, budget_id)
    changes: dict[str, Any] = budget.model_dump(exclude_none=True, exclude={"limit_usd"})
    if budget.thresholds is not None:
        changes["thresholds"] = sorted(set(budget.thresholds))
    if budget.limit_usd is not None:
        changes["limit_picodollars"] = picodollars(budget.limit_usd)
        if changes["limit_picodollars"] > held.limit_picodollars:
            require_may_lift(member, held)
    budgets.change_budget(budget=held, **changes)
    return _budget(budget_in(member.project, held.pk))


@router.delete(
    "/projects/{slug}/budgets/{budget_id}", auth=Token("budget"), summary="Close a budget of the project"
)
def close_budget(member: Editor, budget_id: RowId) -> BudgetShape:
    """It no longer binds. Its spend stays readable. Only an owner closes that of a person."""
    held = budget_in(member.project, budget_id, closed=True)
    require_may_lift(member, held)
    budgets.close_budget(budget=held)
    return _budget(budget_in(member.project, held.pk, closed=True))


def _placed(project: Project, counts: str) -> dict[str, Any]:
    """The scope and its object, as `create_budget` takes them. ApiRefused if there is no such object."""
    scope, _, which = counts.partition(":")
    rows: dict[str, Any] = {
        "user": User.objects.filter(memberships__project=project, email=which),
        "group": JobGroup.objects.filter(project=project, name=which),
    }
    if counts == "project":
        return {"scope": "project"}
    if scope == "cloud" and which in CLOUDS:
        return {"scope": "cloud", "of": {"cloud": which}}
    if scope == "tag" and which.strip():
        return {"scope": "tag", "of": {"tag": _tag(project, which)}}
    if scope in rows and (row := rows[scope].first()) is not None:
        return {"scope": scope, "of": {scope: row}}
    raise ApiRefused(
        422,
        "counts",
        "No budget was made.",
        f"There is no “{counts}” in this project that a budget could count.",
        "Give project, user:EMAIL, cloud:KIND, tag:NAME or group:NAME.",
    )


def _tag(project: Project, name: str) -> Tag:
    try:
        return tag_named(project, name)
    except LabelRefused as refusal:
        raise ApiRefused(422, "counts", "No budget was made.", str(refusal), "Give another tag.") from None


def _budget(budget: Budget) -> BudgetShape:
    return _shape(summarize_budget(budget, SYSTEM_CLOCK.now()))


def _shape(shown: BudgetSummary) -> BudgetShape:
    budget = shown.budget
    return BudgetShape(
        id=budget.pk,
        name=budget.name,
        counts=shown.counts,
        scope=budget.scope,
        period=budget.period,
        spent_usd=shown.spent,
        reserved_usd=shown.reserved,
        free_usd=max(0, shown.free),
        limit_usd=shown.limit,
        at_line=budget.at_line,
        thresholds=budget.thresholds,
        outlook=shown.outlook,
        closed=budget.closed_at is not None,
    )
