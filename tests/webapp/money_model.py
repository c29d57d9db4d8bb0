"""Nested budgets as plain arithmetic: what the database's ledger must agree with, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False)
class ModelBudget:
    limit: int
    tag: str
    """Empty: every job is below it."""
    monthly: bool
    spent: int = 0
    overrun: int = 0
    month: int = 0
    closed: bool = False

    def covers(self, job: ModelJob) -> bool:
        return not self.tag or self.tag == job.tag


@dataclass(eq=False)
class ModelCharge:
    reserved: int
    state: str = "open"
    amount: int = 0
    month: int = 0
    assumed: bool = False


@dataclass(eq=False)
class ModelJob:
    limit: int
    tag: str
    granted: int = 0
    frozen: bool = False
    overrun: int = 0
    over: bool = False
    charges: dict[str, ModelCharge] = field(default_factory=dict)

    @property
    def reserved(self) -> int:
        return sum(one.reserved for one in self.charges.values() if one.state == "open")

    @property
    def spent(self) -> int:
        booked = sum(one.amount for one in self.charges.values() if one.state == "settled")
        return booked - self.overrun

    def room(self, ceiling: int) -> int:
        return 0 if self.frozen else max(0, ceiling - self.spent - self.overrun - self.reserved)


class Model:
    """Any order of everything that can happen to money. Amounts are whole numbers of nothing in particular."""

    def __init__(self) -> None:
        self.jobs: list[ModelJob] = []
        self.budgets: list[ModelBudget] = []
        self.month = 0

    def above(self, job: ModelJob) -> list[ModelBudget]:
        found = [one for one in self.budgets if not one.closed and one.covers(job)]
        for one in found:
            self._turn(one)
        return found

    def _turn(self, budget: ModelBudget) -> None:
        if budget.monthly and budget.month < self.month:
            budget.month, budget.spent, budget.overrun = self.month, 0, 0

    def held(self, budget: ModelBudget) -> int:
        """What is set aside in it: never stored, so that it cannot go wrong here."""
        return sum(job.granted - job.spent for job in self.jobs if budget.covers(job))

    def free(self, budget: ModelBudget) -> int:
        return max(0, budget.limit - budget.spent - budget.overrun - self.held(budget))

    def _grant(self, job: ModelJob, at_most: int) -> int:
        grant = min([at_most, *(self.free(one) for one in self.above(job))])
        job.granted += grant
        return grant

    def open_job(self, limit: int, tag: str, least: int, expected: int) -> bool:
        job = ModelJob(limit, tag)
        if not self.above(job):
            job.granted = limit
        else:
            most = min(limit, max(least, expected))
            if min([most, *(self.free(one) for one in self.above(job))]) < min(least, limit):
                return False
            self.jobs.append(job)
            self._grant(job, most)
            return True
        self.jobs.append(job)
        return True

    def create_budget(self, limit: int, tag: str, monthly: bool) -> bool:
        budget = ModelBudget(limit, tag, monthly, month=self.month)
        for job in self.jobs:
            if budget.covers(job) and not self.above(job):
                job.granted = job.spent + job.reserved
        below = [job for job in self.jobs if budget.covers(job)]
        for job in below:
            for charge in job.charges.values():
                if charge.state == "settled" and (not monthly or charge.month == self.month):
                    budget.spent += charge.amount
        if limit < max(1, budget.spent + self.held(budget)):
            return False
        self.budgets.append(budget)
        return True

    def _could_grant(self, job: ModelJob) -> int:
        """As of now, and no month turns over by it: looking changes nothing."""
        free = [job.limit - job.granted]
        for one in self.budgets:
            if not one.closed and one.covers(job):
                begun = one.monthly and one.month < self.month
                spent = 0 if begun else one.spent + one.overrun
                free.append(max(0, one.limit - spent - self.held(one)))
        return min(free)

    def reserve(self, job: ModelJob, batch: list[tuple[str, int]]) -> list[bool]:
        """A batch of which nothing fits takes nothing of the budgets above either."""
        most = job.room(job.granted + self._could_grant(job))
        if batch and all(name not in job.charges and amount > most for name, amount in batch):
            return [False] * len(batch)
        wanted = sum(amount for name, amount in batch if name not in job.charges)
        room = job.room(job.granted)
        if job.granted < job.limit and not job.frozen and 2 * wanted > room:
            self._grant(job, min(job.limit - job.granted, max(2 * wanted - room, job.granted // 8)))
        answers = []
        for name, amount in batch:
            known = job.charges.get(name)
            if known is None and amount <= job.room(job.granted) and not job.frozen:
                known = job.charges[name] = ModelCharge(amount)
            answers.append(known is not None and known.state == "open")
        return answers

    def settle(self, job: ModelJob, name: str, amount: int, *, assumed: bool = False) -> None:
        charge = job.charges.get(name)
        if charge is None or charge.state != "open":
            return
        within = min(amount, charge.reserved)
        for budget in self.above(job):
            budget.spent += within
            budget.overrun += amount - within
        charge.state, charge.amount, charge.month, charge.assumed = "settled", amount, self.month, assumed
        if amount > within:
            job.overrun += amount - within
            job.frozen = True

    def release(self, job: ModelJob, name: str) -> None:
        charge = job.charges.get(name)
        if charge is not None and charge.state == "open":
            charge.state = "released"

    def end(self, job: ModelJob) -> None:
        """What is open is booked whole, what is held is given back."""
        for name, charge in job.charges.items():
            if charge.state == "open":
                self.settle(job, name, charge.reserved, assumed=True)
        if self.above(job):
            job.granted = job.spent
        job.over = True

    def correct(self, job: ModelJob, name: str, amount: int) -> bool:
        charge = job.charges.get(name)
        if charge is None or charge.state != "settled" or not charge.assumed:
            return False
        less, over = max(0, charge.amount - amount), max(0, amount - charge.amount)
        above = self.above(job)
        for budget in above:
            if not budget.monthly or charge.month == budget.month:
                budget.spent -= less
                budget.overrun += over
        charge.amount, charge.assumed = amount, False
        paid_back = min(less, job.overrun)
        job.overrun += over - paid_back
        job.frozen = job.overrun > 0
        job.granted -= less - paid_back if above else 0
        return True

    def raise_limit(self, job: ModelJob, limit: int) -> bool:
        if limit <= job.limit or limit < job.spent + job.reserved + job.overrun:
            return False
        job.limit = limit
        job.granted = min(limit, job.granted + job.overrun) if self.above(job) else limit
        job.overrun, job.frozen = 0, False
        return True

    def lower_limit(self, job: ModelJob, limit: int) -> bool:
        if limit < max(1, job.spent + job.reserved + job.overrun):
            return False
        if limit < job.limit:
            job.limit, job.granted = limit, min(limit, job.granted)
        return True

    def check(self) -> None:
        """What must hold whatever happened."""
        for job in self.jobs:
            assert job.spent >= 0
            assert job.spent + job.reserved <= job.granted <= job.limit
        for budget in self.budgets:
            if not budget.closed:
                assert budget.spent >= 0
                assert budget.spent + self.held(budget) <= budget.limit
