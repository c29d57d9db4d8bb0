"""What must always be true of the money, read from the database alone: each finding is a sentence.

Independent of the ledger: amounts are added up again from the charges.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import BigIntegerField, F, OuterRef, Q, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from webapp.job_states import TERMINAL, Observed
from webapp.money.budgets import accounts_of
from webapp.money.models import Account, Basis, Budget, Charge, ChargeState, Crossing, CrossingKind

_REST = TERMINAL | {Observed.PAUSED}


def money_findings() -> Iterator[str]:
    """Yield everything that is wrong."""
    for check in (
        _accounts_hold,
        _accounts_add_up,
        _budgets_hold,
        _budgets_add_up,
        _budgets_stand_over_their_jobs,
        _charges_ended_once,
        _lines_add_up,
        _nothing_owed_at_rest,
        _crossings_were_crossed,
    ):
        yield from check()


def _accounts_hold() -> Iterator[str]:
    held = F("spent_picodollars") + F("reserved_picodollars")
    wrong = Account.objects.filter(
        Q(granted_picodollars__lt=held)
        | Q(granted_picodollars__gt=F("limit_picodollars"))
        | Q(spent_picodollars__lt=0)
        | Q(reserved_picodollars__lt=0)
        | Q(overrun_picodollars__gt=0, frozen=False)
    )
    for account in wrong:
        yield f"{account}: spent, reserved, granted and limit are not in that order, or an overrun did not freeze it"


def _accounts_add_up() -> Iterator[str]:
    def total(field: str, state: str) -> Coalesce:
        charges = Charge.objects.filter(account=OuterRef("pk"), state=state).order_by().values("account")
        summed = Subquery(charges.annotate(sum=Sum(field)).values("sum"), output_field=BigIntegerField())
        return Coalesce(summed, Value(0), output_field=BigIntegerField())

    rows = Account.objects.annotate(
        settled=total("settled_picodollars", ChargeState.SETTLED),
        open=total("reserved_picodollars", ChargeState.OPEN),
    )
    for account in rows.exclude(settled=F("spent_picodollars") + F("overrun_picodollars")):
        spent = account.spent_picodollars + account.overrun_picodollars
        yield f"{account}: {spent} is booked as spent, its charges come to {account.settled}"
    for account in rows.exclude(open=F("reserved_picodollars")):
        yield f"{account}: {account.reserved_picodollars} is reserved, its open charges hold {account.open}"


def _budgets_hold() -> Iterator[str]:
    held = F("spent_picodollars") + F("reserved_picodollars")
    for budget in Budget.objects.filter(limit_picodollars__lt=held):
        yield f"budget {budget.pk}: more is spent and held than its limit"


def _budgets_add_up() -> Iterator[str]:
    for budget in Budget.objects.filter(closed_at=None):
        accounts = Account.objects.filter(budgets=budget)
        held = accounts.aggregate(sum=Sum(F("granted_picodollars") - F("spent_picodollars")))["sum"] or 0
        if held != budget.reserved_picodollars:
            yield f"budget {budget.pk}: {budget.reserved_picodollars} is set aside, its jobs were granted {held}"
        charges = Charge.objects.filter(
            account__budgets=budget, state=ChargeState.SETTLED, resolved_at__gte=budget.period_start
        )
        booked = charges.aggregate(sum=Sum("settled_picodollars"))["sum"] or 0
        spent = budget.spent_picodollars + budget.overrun_picodollars
        if booked != spent:
            yield f"budget {budget.pk}: {spent} is booked in its period, its jobs' charges come to {booked}"


def _budgets_stand_over_their_jobs() -> Iterator[str]:
    for budget in Budget.objects.filter(closed_at=None):
        below = set(Account.objects.filter(budgets=budget).values_list("pk", flat=True))
        meant = set(accounts_of(budget).values_list("pk", flat=True))
        if below != meant:
            yield f"budget {budget.pk}: it wrongly covers or misses accounts {sorted(below ^ meant)[:5]}"


def _charges_ended_once() -> Iterator[str]:
    settled = Q(state=ChargeState.SETTLED)
    wrong = Charge.objects.filter(
        (settled & (Q(settled_picodollars=None) | Q(resolved_at=None) | Q(basis="")))
        | (~settled & (~Q(settled_picodollars=None) | ~Q(basis="")))
        | (Q(state=ChargeState.OPEN) & ~Q(resolved_at=None))
        | Q(corrected_at__isnull=False, assumed_picodollars=None)
    )
    for charge in wrong[:20]:
        yield f"charge {charge.pk} ({charge}): its state, amount, basis and time do not go together"


def _lines_add_up() -> Iterator[str]:
    metered = Charge.objects.filter(state=ChargeState.SETTLED, basis=Basis.METERED)
    for pk, amount, lines in metered.values_list("pk", "settled_picodollars", "lines").iterator(5000):
        if amount != sum(line["picodollars"] for line in lines):
            yield f"charge {pk}: it was booked at {amount}, its price lines do not come to that"


def _nothing_owed_at_rest() -> Iterator[str]:
    resting = Account.objects.filter(job__observed__in=_REST)
    for account in resting.filter(reserved_picodollars__gt=0):
        yield f"{account}: the job rests and {account.reserved_picodollars} is still reserved"
    held = resting.filter(budgets__closed_at=None, budgets__isnull=False).exclude(
        granted_picodollars=F("spent_picodollars") + F("reserved_picodollars")
    )
    for account in held.distinct():
        yield f"{account}: the job rests and the budgets above still hold something for it"


def _crossings_were_crossed() -> Iterator[str]:
    wrong = Crossing.objects.filter(
        kind=CrossingKind.ACTUAL,
        spent_picodollars__lt=F("limit_picodollars") / 100 * F("threshold"),
    )
    for crossing in wrong:
        yield f"crossing {crossing.pk}: {crossing.threshold} % was not reached"
