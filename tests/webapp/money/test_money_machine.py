"""Everything that can happen to nested budgets, in any order: against plain arithmetic, and the database against it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.factories import FixedClock, make_project, make_spec
from tests.ledger_contract import reservation, settlement
from tests.webapp.money_model import Model, ModelJob
from tests.work import repeated
from webapp.jobs.models import Job, Tag
from webapp.money.amounts import PICODOLLARS_PER_USD
from webapp.money.budgets import (
    BudgetRefused,
    NoRoom,
    attach,
    change_budget,
    close_budget,
    create_budget,
    lock_project,
)
from webapp.money.invariants import money_findings
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account, Budget
from webapp.money.services import LimitTooLow, close_books, correct, lower_limit, open_account, raise_limit

UNIT = 1
"""One of the model's amounts in picodollars: whole ones, as both round an eighth down."""
TAGS = ["", "red", "blue"]
NAMES = [f"call-{number}" for number in range(6)]
amounts = st.integers(0, 40)
limits = st.integers(1, 120)
which = st.integers(0, 5)


class Machine(RuleBasedStateMachine):
    """The model by itself: it breaks no rule of money."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    def pick(self, number: int) -> ModelJob:
        return self.model.jobs[number % len(self.model.jobs)]

    def running(self) -> bool:
        return bool(self.model.jobs)

    @rule(limit=limits, tag=st.sampled_from(TAGS), least=st.integers(0, 10), expected=amounts)
    def open_job(self, limit: int, tag: str, least: int, expected: int) -> None:
        if len(self.model.jobs) < 6:
            self.same(
                "open_job", self.model.open_job(limit, tag, least, expected), limit, tag, least, expected
            )

    @rule(limit=st.integers(1, 300), tag=st.sampled_from(TAGS), monthly=st.booleans())
    def create_budget(self, limit: int, tag: str, monthly: bool) -> None:
        if len(self.model.budgets) < 4:
            self.same("create_budget", self.model.create_budget(limit, tag, monthly), limit, tag, monthly)

    @precondition(running)
    @rule(number=which, batch=st.lists(st.tuples(st.sampled_from(NAMES), amounts), min_size=1, max_size=3))
    def reserve(self, number: int, batch: list[tuple[str, int]]) -> None:
        job = self.pick(number)
        batch = list(dict(batch).items())
        if not job.over:
            self.same("reserve", self.model.reserve(job, batch), self.model.jobs.index(job), batch)

    @precondition(running)
    @rule(number=which, name=st.sampled_from(NAMES), amount=amounts, over=st.integers(0, 9))
    def settle(self, number: int, name: str, amount: int, over: int) -> None:
        job = self.pick(number)
        charge = job.charges.get(name)
        if charge is not None and over:  # one in ten comes to more than was reserved for it
            amount = min(amount, charge.reserved)
        if not job.over:
            self.model.settle(job, name, amount)
            self.same("settle", None, self.model.jobs.index(job), name, amount)

    @precondition(running)
    @rule(number=which, name=st.sampled_from(NAMES))
    def release(self, number: int, name: str) -> None:
        job = self.pick(number)
        if not job.over:
            self.model.release(job, name)
            self.same("release", None, self.model.jobs.index(job), name)

    @precondition(running)
    @rule(number=which)
    def end(self, number: int) -> None:
        job = self.pick(number)
        self.model.end(job)
        self.same("end", None, self.model.jobs.index(job))

    @precondition(running)
    @rule(number=which, name=st.sampled_from(NAMES), amount=st.integers(0, 45))
    def correct(self, number: int, name: str, amount: int) -> None:
        job = self.pick(number)
        self.same("correct", self.model.correct(job, name, amount), self.model.jobs.index(job), name, amount)

    @precondition(running)
    @rule(number=which, limit=limits)
    def raise_limit(self, number: int, limit: int) -> None:
        job = self.pick(number)
        self.same("raise_limit", self.model.raise_limit(job, limit), self.model.jobs.index(job), limit)

    @precondition(running)
    @rule(number=which, limit=limits)
    def lower_limit(self, number: int, limit: int) -> None:
        job = self.pick(number)
        self.same("lower_limit", self.model.lower_limit(job, limit), self.model.jobs.index(job), limit)

    @precondition(lambda self: self.model.budgets)
    @rule(number=which, more=st.integers(1, 50), close=st.integers(0, 5))
    def change_budget(self, number: int, more: int, close: int) -> None:
        at = number % len(self.model.budgets)
        budget = self.model.budgets[at]
        if budget.closed:
            return
        if close == 0:
            budget.closed = True
            self.same("close_budget", None, at)
        else:
            budget.limit += more
            self.same("change_budget", None, at, budget.limit)

    @rule()
    def next_month(self) -> None:
        if self.model.month < 3:
            self.model.month += 1
            self.same("next_month", None)

    @invariant()
    def holds(self) -> None:
        self.model.check()

    def same(self, act: str, expected: Any, *arguments: Any) -> None:
        """Nothing to compare with here."""


class DatabaseMachine(Machine):
    """The database does the same, answers the same, and has the same figures after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.clock = FixedClock()
        self.project = make_project()
        self.spec = make_spec().model_dump(mode="json")
        self.tags = {name: Tag.objects.create(project=self.project, name=name) for name in TAGS if name}
        self.accounts: list[Account] = []
        self.budgets: list[Budget] = []

    def teardown(self) -> None:
        try:
            assert list(money_findings()) == []
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    def same(self, act: str, expected: Any, *arguments: Any) -> None:
        assert getattr(self, f"do_{act}")(*arguments) == expected, act
        for job, account in zip(self.model.jobs, self.accounts, strict=True):
            row = Account.objects.get(pk=account.pk)
            figures = (row.limit_picodollars, row.granted_picodollars, row.spent_picodollars)
            further = (row.reserved_picodollars, row.overrun_picodollars)
            assert figures == (job.limit * UNIT, job.granted * UNIT, job.spent * UNIT), act
            assert further == (job.reserved * UNIT, job.overrun * UNIT), act
            assert row.frozen == job.frozen
        for budget, kept in zip(self.model.budgets, self.budgets, strict=True):
            kept.refresh_from_db()
            if not budget.closed:
                assert kept.reserved_picodollars == self.model.held(budget) * UNIT, act
            if not budget.closed and not budget.monthly:  # a month that no one has touched has not turned yet
                spent = (kept.spent_picodollars, kept.overrun_picodollars)
                assert spent == (budget.spent * UNIT, budget.overrun * UNIT), act

    def ledger(self, at: int) -> DatabaseLedger:
        return DatabaseLedger(self.accounts[at].pk, 1, clock=self.clock)

    def do_open_job(self, limit: int, tag: str, least: int, expected: int) -> bool:
        try:
            with transaction.atomic():
                lock_project(self.project.pk)
                now = self.clock.now()
                job = Job.objects.create(
                    project=self.project,
                    name="job",
                    spec=self.spec,
                    created_by=self.project.people.get(),
                    created_at=now,
                    since=now,
                    lease_owner="machine",
                    lease_epoch=1,
                )
                if tag:
                    job.tags.add(self.tags[tag])
                account = open_account(job=job, limit_usd=Decimal(limit * UNIT) / PICODOLLARS_PER_USD)
                attach(account=account, least=least * UNIT, expected=expected * UNIT, clock=self.clock)
        except NoRoom:
            return False
        self.accounts.append(account)
        return True

    def do_create_budget(self, limit: int, tag: str, monthly: bool) -> bool:
        try:
            self.budgets.append(
                create_budget(
                    project=self.project,
                    name="b",
                    limit_picodollars=limit * UNIT,
                    scope="tag" if tag else "project",
                    of={"tag": self.tags[tag]} if tag else {},
                    period="monthly" if monthly else "total",
                    clock=self.clock,
                )
            )
        except BudgetRefused:
            # The accounts it would have stood over were trimmed in a transaction that was undone.
            self._trim_model_back()
            return False
        return True

    def _trim_model_back(self) -> None:
        for job, account in zip(self.model.jobs, self.accounts, strict=True):
            job.granted = Account.objects.get(pk=account.pk).granted_picodollars // UNIT

    def do_reserve(self, at: int, batch: list[tuple[str, int]]) -> list[bool]:
        return self.ledger(at).reserve([reservation(name, amount * UNIT) for name, amount in batch])

    def do_settle(self, at: int, name: str, amount: int) -> None:
        self.ledger(at).settle([settlement(name, amount * UNIT)])

    def do_release(self, at: int, name: str) -> None:
        self.ledger(at).release([name])

    def do_end(self, at: int) -> None:
        close_books(job_id=self.accounts[at].job_id, before_epoch=2, clock=self.clock)

    def do_correct(self, at: int, name: str, amount: int) -> bool:
        return correct(
            account_id=self.accounts[at].pk,
            epoch=1,
            name=name,
            settlement=settlement(name, amount * UNIT),
            clock=self.clock,
        )

    def do_raise_limit(self, at: int, limit: int) -> bool:
        return self._changed(raise_limit, at, limit)

    def do_lower_limit(self, at: int, limit: int) -> bool:
        return self._changed(lower_limit, at, limit)

    def _changed(self, change: Any, at: int, limit: int) -> bool:
        try:
            change(
                job_id=self.accounts[at].job_id,
                limit_usd=Decimal(limit * UNIT) / PICODOLLARS_PER_USD,
                clock=self.clock,
            )
        except LimitTooLow:
            return False
        return True

    def do_change_budget(self, at: int, limit: int) -> None:
        change_budget(budget=self.budgets[at], limit_picodollars=limit * UNIT, clock=self.clock)

    def do_close_budget(self, at: int) -> None:
        close_budget(budget=self.budgets[at], clock=self.clock)

    def do_next_month(self) -> None:
        month = self.model.month + 1
        self.clock.moment = datetime(2026, month, 10, tzinfo=UTC)


def _settings(runs: int) -> settings:
    return settings(
        max_examples=runs, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
    )


def test_the_arithmetic_of_nested_budgets_holds() -> None:
    run_state_machine_as_test(Machine, settings=_settings(100))


@repeated(500, endurance=10_000)
def test_the_arithmetic_of_nested_budgets_holds_many_times(times: int) -> None:
    run_state_machine_as_test(Machine, settings=_settings(times))


@pytest.mark.django_db
def test_the_database_agrees_with_the_arithmetic() -> None:
    run_state_machine_as_test(DatabaseMachine, settings=_settings(6))


@repeated(75, endurance=300)
@pytest.mark.django_db
def test_the_database_agrees_with_the_arithmetic_many_times(times: int) -> None:
    run_state_machine_as_test(DatabaseMachine, settings=_settings(times))
