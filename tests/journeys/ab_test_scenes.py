"""Made-up A/B tests for looking at: one that runs, and one for each end."""

from __future__ import annotations

import random

from tests.journeys.scenes import put, spend, submitted
from training.rl.algorithms.a2c import A2C
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK
from webapp.comparing.abtests.models import ABTest, AbTestState, Pair
from webapp.comparing.abtests.results import results_of
from webapp.comparing.abtests.services import end_test
from webapp.job_states import Observed
from webapp.jobs.models import Job, JobGroup
from webapp.money.budgets import create_budget


def tests_in_every_state(project: Project, user: User) -> dict[str, str]:
    """By a picture's name: its page's path."""
    base = submitted(project, user, "hopper-simulated", "Hopper, as it is", "1.00")
    _succeeded(base, 900.0, 0.41)
    better = _test(base, ("Algorithm", "PPO", "A2C"), shift=420.0, spread=260.0, pairs=9, running=0)
    _end(better, AbTestState.BETTER, 9)
    equal = _test(base, ("Learning rate", "0.0003", "0.001"), shift=0.0, spread=300.0, pairs=13, running=0)
    _end(equal, AbTestState.NO_DIFFERENCE, 13)
    running = _test(base, ("Actors", "8", "32"), shift=-150.0, spread=280.0, pairs=5, running=2)
    tests = f"/p/{project.slug}/ab-tests/"
    return {
        "ab-tests": tests,
        "ab-test-better": f"{tests}{better.pk}/",
        "ab-test-equal": f"{tests}{equal.pk}/",
        "ab-test-running": f"{tests}{running.pk}/",
        "ab-test-new": f"{tests}new/?job={base.pk}",
        "ab-test-pick": f"{tests}new/",
    }


def _end(test: ABTest, state: AbTestState, pairs: int) -> None:
    end_test(test.pk, state=state, pairs=pairs, difference=results_of(test).mean_difference(pairs))


def _succeeded(job: Job, score: float, usd: float) -> None:
    put(
        job,
        Observed.SUCCEEDED,
        "Reached 245,760 steps.",
        minutes=90,
        round_no=120,
        total_progress=245_760,
        actors=8,
        training_score=score,
        evaluated_score=score,
        platform_s=270.0,
        finished_at=SYSTEM_CLOCK.now(),
    )
    spend(job, usd)


def _test(
    base: Job, change: tuple[str, str, str], *, shift: float, spread: float, pairs: int, running: int
) -> ABTest:
    title, old, new = change
    chance, now = random.Random(title), SYSTEM_CLOCK.now()
    name = f"{base.name}: {title} {new}"
    group = JobGroup.objects.create(project=base.project, name=name, created_at=now)
    budget = create_budget(
        project=base.project,
        name=name[:80],
        limit_picodollars=14 * 10**12,
        scope="group",
        of={"group": group},
    )
    test = ABTest.objects.create(
        project=base.project,
        job=base,
        group=group,
        budget=budget,
        name=name,
        change="training.algorithm.kind=a2c",
        field_title=title,
        old_value=old,
        new_value=new,
        effect=1.5,
        most_pairs=13,
        first_seed=1,
        evaluated=True,
        created_by=base.created_by,
        created_at=now,
    )
    for number in range(1, pairs + running + 1):
        runs = []
        for side in ("A", "B"):
            algorithm = A2C() if side == "B" else None
            job = submitted(
                base.project,
                base.created_by,
                "hopper-simulated",
                f"{name[:60]}, {side}, seed {number}",
                "1.00",
                algorithm,
            )
            job.groups.add(group)
            job.account.budgets.add(budget)
            if number <= pairs:
                _succeeded(job, chance.gauss(900 + (shift if side == "B" else 0), spread), 0.4)
            runs.append(job)
        Pair.objects.create(test=test, number=number, a=runs[0], b=runs[1])
    type(budget).objects.filter(pk=budget.pk).update(spent_picodollars=round(2 * pairs * 0.4 * 10**12))
    return test
