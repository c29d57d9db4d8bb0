"""A/B tests as rows, for tests of what is around them."""

from __future__ import annotations

import itertools
from typing import Any

from webapp.clock import SYSTEM_CLOCK
from webapp.comparing.abtests.models import ABTest
from webapp.jobs.models import Job, JobGroup
from webapp.money.budgets import create_budget

_numbers = itertools.count(1)


def make_ab_test(job: Job, **facts: Any) -> ABTest:
    """A test of the job that has not launched anything yet."""
    now = SYSTEM_CLOCK.now()
    name = f"A/B {next(_numbers)}"
    group = JobGroup.objects.create(project=job.project, name=name, created_at=now)
    budget = create_budget(
        project=job.project, name=name, limit_picodollars=10**12, scope="group", of={"group": group}
    )
    given = {
        "change": "training.algorithm.kind=a2c",
        "field_title": "Algorithm",
        "old_value": "PPO",
        "new_value": "A2C",
        "effect": 1.5,
        "most_pairs": 13,
        "first_seed": 1,
        "created_by": job.created_by,
        "created_at": now,
        **facts,
    }
    return ABTest.objects.create(project=job.project, job=job, group=group, budget=budget, name=name, **given)
