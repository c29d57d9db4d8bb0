"""What people do to A/B tests: plan one, start it, stop it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from training.statistics.sequential import pairs_needed
from webapp.accounts.models import Project, User
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.comparing.abtests.changes import ChangeRefused, FieldChange, changed, describe_change
from webapp.comparing.abtests.models import ABTest, AbTestState
from webapp.http.responses import or_404
from webapp.job_states import TERMINAL, Observed
from webapp.jobs.launch import launch_budget
from webapp.jobs.launch.job_memory import memory_obstacle
from webapp.jobs.launch.preflight import training_obstacle
from webapp.jobs.models import Job, JobGroup, Tag
from webapp.jobs.seed_groups import free_group_name, without_seed
from webapp.jobs.services import stop_job
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import BUDGET_DECIMALS, PICODOLLARS_PER_USD, display_least_usd, picodollars
from webapp.money.budgets import budgets_of, create_budget
from webapp.money.models import Budget, BudgetScope

EFFECTS = (2.0, 1.5, 1.0, 0.75)
"""The differences that can be chosen, in standard deviations of a setting's return over seeds."""
USUAL_EFFECT = 1.5
_ROOM = Decimal("1.5")
"""The suggested budget over the expected cost."""
STOPPED = "the A/B test"


class ABTestRefused(ValueError):
    """The test cannot begin. The text says why and what to do."""


@dataclass(frozen=True)
class TestPlan:
    """What a test would take. Money in picodollars; `expected` if all pairs run and B costs what A did."""

    effect: float
    pairs: int
    expected: int

    @property
    def runs(self) -> int:
        return 2 * self.pairs


def plan_of(job: Job, effect: float) -> TestPlan:
    """Return the pairs that find a difference of that size, and what they would cost."""
    pairs = pairs_needed(effect)
    paid = job.account.spent_picodollars + job.account.overrun_picodollars
    return TestPlan(effect, pairs, 2 * pairs * paid)


def suggested_budget(plan: TestPlan, spec: JobSpec) -> Decimal:
    """Return a budget with room for all pairs; the job's own budget if it cost nothing."""
    if not plan.expected:
        return spec.budget_usd
    usd = _ROOM * plan.expected / PICODOLLARS_PER_USD
    least = launch_budget.least_of(spec)
    if isinstance(least, int):
        usd = max(usd, Decimal(2 * least) / PICODOLLARS_PER_USD)
    step = Decimal(1).scaleb(min(0, usd.adjusted() - 1))
    return usd.quantize(max(step, Decimal(1).scaleb(-BUDGET_DECIMALS)), rounding=ROUND_UP)


def require_finished(job: Job) -> JobSpec:
    """Return the spec of a job that a test can begin with. Raises ABTestRefused."""
    if job.observed != Observed.SUCCEEDED:
        raise ABTestRefused(
            "A test begins with a job that has succeeded: only then is it known what a run yields and costs."
        )
    spec = job.readable_spec()
    if spec is None:
        raise ABTestRefused(
            "This version cannot read the job's spec. Clone the job into the form and run it first."
        )
    return spec


def start_test(
    *,
    job: Job,
    user: User,
    change: str,
    effect: float,
    budget_usd: Decimal,
    key: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> ABTest:
    """Start a test of the job against itself with the change, below one budget; the worker launches its runs.

    Raises ABTestRefused, ChangeRefused or BudgetRefused; nothing is changed then. The same key returns the same test.
    """
    if key and (known := ABTest.objects.filter(project=job.project, key=key).first()):
        known.replayed = True
        return known
    spec = require_finished(job)
    other = changed(spec, change)
    if obstacle := training_obstacle(other.training) or memory_obstacle(other):
        raise ABTestRefused(obstacle.sentence)
    try:
        pairs = pairs_needed(effect)
    except ValueError as error:
        raise ABTestRefused(f"{error}. Ask for a larger difference.") from None
    _require_room(spec, other, budget_usd)
    try:
        with transaction.atomic():
            test = _create(
                job, user, change, describe_change(spec, change), effect, pairs, budget_usd, key, clock
            )
    except IntegrityError:
        existing = ABTest.objects.filter(project=job.project, key=key).first() if key else None
        if existing is None:
            raise
        existing.replayed = True
        return existing
    send_hint("webapp.comparing.abtests.tasks.advance", test.pk)
    return test


def _require_room(spec: JobSpec, other: JobSpec, budget_usd: Decimal) -> None:
    """Check that one pair of runs can begin within the budget."""
    least = sum(each for side in (spec, other) if isinstance(each := launch_budget.least_of(side), int))
    if picodollars(budget_usd) < max(1, least):
        raise ABTestRefused(
            f"The budget must be at least {display_least_usd(least)}: the first rounds of one pair may cost so much."
        )


def _create(
    job: Job,
    user: User,
    change: str,
    words: FieldChange,
    effect: float,
    pairs: int,
    budget_usd: Decimal,
    key: str | None,
    clock: Clock,
) -> ABTest:
    now = clock.now()
    name = free_group_name(
        job.project, f"{without_seed(job.name)[:50]}: {words.field_title} {words.new_value}"[:95]
    )
    group = JobGroup.objects.create(project=job.project, name=name, created_at=now)
    budget = create_budget(
        project=job.project,
        name=f"A/B test: {name}"[:80],
        limit_picodollars=picodollars(budget_usd),
        scope=BudgetScope.GROUP,
        of={"group": group},
        user=user,
        clock=clock,
    )
    return ABTest.objects.create(
        project=job.project,
        job=job,
        group=group,
        budget=budget,
        name=name,
        change=change,
        **words._asdict(),
        effect=effect,
        most_pairs=pairs,
        first_seed=_unused_seed(job),
        evaluated=job.evaluated_score is not None,
        key=key,
        created_by=user,
        created_at=now,
    )


def _unused_seed(job: Job) -> int:
    """Return one more than the largest seed of the job and its groups: seeds that were seen do not count again."""
    groups = job.groups.all()
    alike = Job.objects.filter(groups__in=groups).values_list("spec__training__seed", flat=True)
    return max(int(seed) for seed in [job.spec["training"]["seed"], *alike]) + 1


def end_test(test_id: int, *, clock: Clock = SYSTEM_CLOCK, state: AbTestState, **facts: Any) -> bool:
    """End a running test and stop its jobs. False if it has ended already."""
    with transaction.atomic():
        running = ABTest.objects.filter(pk=test_id, state=AbTestState.RUNNING)
        if not running.update(state=state, ended_at=clock.now(), **facts):
            return False
        test = ABTest.objects.get(pk=test_id)
        for job in test.group.jobs.exclude(observed__in=TERMINAL):
            stop_job(job=job, user=STOPPED, clock=clock)
    return True


def stop_test(*, test: ABTest, user: User, clock: Clock = SYSTEM_CLOCK) -> ABTest:
    """Stop a test and its jobs, for good. Does nothing to a test that has ended."""
    end_test(test.pk, clock=clock, state=AbTestState.STOPPED, reason=f"Stopped by {user}.")
    test.refresh_from_db()
    return test


def budgets_of_further_runs(test: ABTest) -> list[Budget]:
    """Return the open budgets that include every further run of the test, its own first."""
    above = {test.budget.pk: test.budget}
    if test.job is not None and (spec := test.job.readable_spec()) is not None:
        with suppress(ChangeRefused):
            budgets = [_budgets_of(test, side) for side in (spec, changed(spec, test.change))]
            above |= {pk: budget for pk, budget in budgets[0].items() if pk in budgets[1]}
    return list(above.values())


def _budgets_of(test: ABTest, spec: JobSpec) -> dict[int, Budget]:
    tags = Tag.objects.filter(project=test.project, name__in=spec.tags)
    above = budgets_of(
        project_id=test.project_id,
        user_id=test.created_by_id,
        cloud=spec.platform.kind,
        tags=tags,
        groups=[test.group],
    )
    return above.in_bulk()


def in_project(project: Project) -> QuerySet[ABTest]:
    """Return the project's tests, newest first."""
    return ABTest.objects.filter(project=project).select_related("job", "group", "budget")


def ab_test_in(project: Project, test_id: int) -> ABTest:
    return or_404(in_project(project).filter(pk=test_id).first(), "test")
