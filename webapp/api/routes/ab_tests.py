"""A/B tests: whether a finished job is better with one change."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from django.conf import settings
from django.http import HttpResponse
from django.urls import reverse
from pydantic import Field, StringConstraints

from webapp.accounts.models import Project
from webapp.api.auth import Token
from webapp.api.idempotency import say_if_replayed
from webapp.api.paging import RowId
from webapp.api.problems import ApiRefused
from webapp.api.router import ApiRouter, EditorsProject, Person, ViewersProject
from webapp.api.routes.jobs import Key
from webapp.api.schemas import Request, Shape, Usd
from webapp.comparing.abtests import services, text
from webapp.comparing.abtests.changes import ChangeRefused
from webapp.comparing.abtests.models import ABTest
from webapp.comparing.abtests.results import PairResults, results_of, results_of_tests
from webapp.comparing.abtests.services import USUAL_EFFECT
from webapp.jobs.queries import job_in
from webapp.money.budgets import BudgetRefused

router = ApiRouter(tags=["comparing"])
_ALL = "/projects/{slug}/ab-tests"
_MOST_TESTS = 50


class NewABTest(Request):
    job: Annotated[str, StringConstraints(max_length=20, pattern=r"^[a-z0-9_]+$")] = Field(
        description="A job that has succeeded."
    )
    change: Annotated[str, StringConstraints(min_length=3, max_length=300, pattern=r"^[^\x00]*$")] = Field(
        description="As path=value, such as training.algorithm.kind=a2c."
    )
    budget_usd: Decimal = Field(gt=0, le=1_000_000, decimal_places=6, description="Of all runs together.")
    effect: float = Field(
        USUAL_EFFECT,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description="The smallest difference worth finding, in standard deviations over seeds.",
    )


class ABTestShape(Shape):
    """A question, and its answer once there is one."""

    id: int
    question: str
    job: str | None = Field(description="The finished job that it began with.")
    change: str
    state: Literal["running", "better", "worse", "no_difference", "out_of_money", "failed", "stopped"]
    answer: str = Field(description="One sentence.")
    reason: str
    effect: float
    pairs: int = Field(description="Of runs, at the look that gave the answer.")
    pairs_ended: int
    most_pairs: int
    difference: float | None = Field(description="Mean score with the change minus without.")
    budget_usd: Usd
    spent_usd: Usd
    group: str = Field(description="Its runs, as a key for comparisons.")
    created_at: datetime
    ended_at: datetime | None
    url: str


@router.get(_ALL, summary="A/B tests of the project, newest first")
def list_ab_tests(project: ViewersProject) -> list[ABTestShape]:
    """At most 50."""
    tests = list(services.in_project(project)[:_MOST_TESTS])
    results = results_of_tests(tests)
    return [_shape(project, test, results[test.pk]) for test in tests]


@router.get(f"{_ALL}/{{test_id}}", summary="One A/B test")
def get_ab_test(project: ViewersProject, test_id: RowId) -> ABTestShape:
    return _alone(project, services.ab_test_in(project, test_id))


@router.post(_ALL, auth=Token("jobs"), response=201, summary="Ask whether a job is better with one change")
def start_ab_test(
    project: EditorsProject,
    person: Person,
    response: HttpResponse,
    wanted: NewABTest,
    idempotency_key: Key = "",
) -> ABTestShape:
    """Pairs of runs are launched below one budget, until a sequential test answers. It errs in at most 5 % of tests."""
    try:
        test = services.start_test(
            job=job_in(project, wanted.job),
            user=person,
            change=wanted.change,
            effect=wanted.effect,
            budget_usd=wanted.budget_usd,
            key=idempotency_key[:100] or None,
        )
    except (services.ABTestRefused, ChangeRefused, BudgetRefused) as refusal:
        why, fix = str(refusal), "Change the request as it says."
        raise ApiRefused(409, "ab-test", "No test was started.", why, fix) from None
    shape = _alone(project, test)
    response["Location"] = shape.url
    say_if_replayed(response, test)
    return shape


@router.post(f"{_ALL}/{{test_id}}/stop", auth=Token("jobs"), summary="Stop an A/B test and its runs")
def stop_ab_test(project: EditorsProject, person: Person, test_id: RowId) -> ABTestShape:
    return _alone(project, services.stop_test(test=services.ab_test_in(project, test_id), user=person))


def _alone(project: Project, test: ABTest) -> ABTestShape:
    return _shape(project, test, results_of(test))


def _shape(project: Project, test: ABTest, results: PairResults) -> ABTestShape:
    return ABTestShape.of(
        test,
        question=text.question(test),
        job=test.job_id,
        answer=text.answer(test, results),
        pairs_ended=len(results.differences),
        budget_usd=test.budget.limit_picodollars,
        spent_usd=test.budget.spent_picodollars + test.budget.overrun_picodollars,
        group=f"group_{test.group_id}",
        url=settings.STARLING_BASE_URL + reverse("abtests:detail", args=[project.slug, test.pk]),
    )
