"""Budgets above budgets hold in the database, whatever happens on the simulated cloud: its own meter says so.

Two jobs at a time below one budget, with lost, late, failing and cancelled calls. The meter is priced here in
fractions, apart from tariff and ledger; bills and books agree to the last picodollar.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction

from cloud.money.metering import MeteredPlatform
from tests.cloud.test_budget import KINDS, Job, Kind, true_bill
from tests.factories import make_project, make_spec
from tests.work import repeated
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job as JobRow
from webapp.money.budgets import attach, create_budget
from webapp.money.invariants import money_findings
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account
from webapp.money.services import close_books, open_account

pytestmark = pytest.mark.django_db


class _Below(Job):
    """A job of test_budget whose ledger is an account below a budget."""

    def __init__(self, seed: int, account: Account, kind: Kind, **chances: float) -> None:
        super().__init__(seed, 1, kind, **chances)
        self.account = account
        self.kind = kind
        self.ledger: Any = DatabaseLedger(account.pk, 1)
        self.platform = MeteredPlatform(self.inner, self.ledger, kind.tariff())


def _account(project: Any, spec: dict[str, Any], limit: int, expected: int) -> Account:
    now = SYSTEM_CLOCK.now()
    job = JobRow.objects.create(
        project=project,
        name="job",
        spec=spec,
        created_by=project.people.get(),
        created_at=now,
        since=now,
        lease_owner="test",
        lease_epoch=1,
    )
    account = open_account(job=job, limit_usd=Decimal(limit) / 10**12)
    attach(account=account, least=0, expected=expected)
    return account


def _two_jobs(seed: int, spec: dict[str, Any]) -> set[str]:
    """What became of the calls of two jobs below one budget; fails if anything was spent beyond it."""
    chance = random.Random(seed)
    limit = int(chance.choice([0.01, 0.05, 0.2]) * chance.uniform(0.1, 1) * 10**12)
    project = make_project()
    budget = create_budget(project=project, name="above", limit_picodollars=limit)
    jobs = []
    for number in range(2):
        own = int(limit * chance.uniform(0.3, 1.2)) + 1
        jobs.append(
            _Below(
                seed * 2 + number,
                _account(project, spec, own, int(own * chance.random())),
                KINDS[chance.choice(list(KINDS))],
                failure_share=chance.choice([0.0, 0.1, 0.5]),
                late_share=chance.choice([0.0, 0.3]),
                concurrent=chance.choice([1.0, 3.0, 1000.0]),
            )
        )
    for job in jobs:
        job.run(chance.randint(1, 3), chance.randint(1, 5))
    bills = [true_bill(job.inner.meter, job.kind) for job in jobs]
    for job, bill in zip(jobs, bills, strict=True):
        close_books(job_id=job.account.job_id, before_epoch=2, clock=SYSTEM_CLOCK)
        account = Account.objects.get(pk=job.account.pk)
        assert bill == account.spent_picodollars <= account.limit_picodollars
    budget.refresh_from_db()
    assert sum(bills) == budget.spent_picodollars <= limit
    assert budget.reserved_picodollars == 0
    JobRow.objects.filter(project=project).update(lease_owner="")
    assert list(money_findings()) == []
    return {outcome.reason_code for job in jobs for outcome in job.heard}


def _seeds(seeds: range) -> set[str]:
    spec = make_spec().model_dump(mode="json")
    seen: set[str] = set()
    for seed in seeds:
        with transaction.atomic():
            seen |= _two_jobs(seed, spec)
            transaction.set_rollback(True)
    return seen


def test_nothing_is_spent_beyond_a_budget_above() -> None:
    assert {"budget", "function_failed", "deadline"} <= _seeds(range(12))


@repeated(200, endurance=1_000)
def test_nothing_is_spent_beyond_a_budget_above_many_times(times: int) -> None:
    _seeds(range(1000, 1000 + times))
