"""What is read of money: charges' works, the bill that was made of them, and what stands above an account."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q

from cloud.billing.work_file import Sitting
from training.ports import PriceLine, Settlement
from webapp.jobs.models import Job
from webapp.money.budget_chain import headroom
from webapp.money.models import Account, BillSheet, Budget, Charge, ChargeState
from webapp.money.periods import period_start


def works_of(job: Job) -> list[Sitting]:
    """What the job did, a sitting for each process that ran it, calls in the order of their reservation.

    Calls whose process died were booked without a record of their work, so that the graph of a sitting may have holes.
    """
    by_epoch: dict[int, list[Settlement]] = {}
    charges = Charge.objects.filter(account__job=job, state=ChargeState.SETTLED).order_by("epoch", "pk")
    for charge in charges.iterator(chunk_size=1000):
        by_epoch.setdefault(charge.epoch, []).append(_settlement(charge))
    return [Sitting.of(job.spec, settlements) for settlements in by_epoch.values()]


def bill_sheet(job_id: str) -> BillSheet | None:
    """The job's bill as it was drawn up last."""
    return BillSheet.objects.filter(job_id=job_id).first()


def as_of(budget: Budget, now: datetime) -> Budget:
    """The budget as a page shows it, unsaved: in a period that nobody has booked in yet, nothing is spent."""
    start = period_start(budget.period, now)
    if start > budget.period_start:
        budget.period_start, budget.spent_picodollars, budget.overrun_picodollars = start, 0, 0
    return budget


def budgets_above(account_id: int, now: datetime) -> list[Budget]:
    """The open budgets over an account, the tightest first. Nothing is locked."""
    rows = Budget.objects.filter(accounts=account_id, closed_at=None)
    return sorted((as_of(budget, now) for budget in rows), key=lambda budget: (headroom(budget), budget.pk))


def held_by(account: Account, above: Sequence[Budget]) -> Budget | None:
    """Which of the budgets above leaves the account less than its own limit does; None if none does."""
    own = account.limit_picodollars - account.spent_picodollars - account.overrun_picodollars
    tightest = min(above, key=headroom, default=None)
    if tightest is None:
        return None
    unspent = account.granted_picodollars - account.spent_picodollars
    return tightest if headroom(tightest) + unspent < own else None


def unreal_below(budget_ids: Sequence[int]) -> dict[int, str]:
    """By budget, the word for money below it that nobody pays: "simulated", "partly emulated"; not there, or empty,
    where all is paid."""
    jobs = Job.objects.filter(account__budgets__in=budget_ids).filter(
        Q(account__spent_picodollars__gt=0) | Q(account__granted_picodollars__gt=0)
    )
    kinds = defaultdict[int, set[str]](set)
    for budget_id, simulated, emulated in jobs.values_list(
        "account__budgets", "simulated", "emulated"
    ).distinct():
        kinds[budget_id].add(Job(simulated=simulated, emulated=emulated).unreal)
    return {budget_id: _unreal_words(found) for budget_id, found in kinds.items()}


def _unreal_words(kinds: set[str]) -> str:
    words = " and ".join(sorted(kinds - {""}, reverse=True))
    return f"partly {words}" if words and "" in kinds else words


def _settlement(charge: Charge) -> Settlement:
    lines = tuple(PriceLine(**line) for line in charge.lines)
    return Settlement(charge.name, charge.settled_picodollars or 0, charge.basis, lines, charge.usage)
