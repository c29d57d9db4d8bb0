"""Writes to accounts that are not part of a run's own bookkeeping (which is `ledger`)."""

from decimal import Decimal

from django.db import transaction
from django.db.models import F

from webapp.clock import Clock
from webapp.money.amounts import display_usd, picodollars
from webapp.money.models import Account, Basis, Charge, ChargeState


class LimitTooLow(ValueError):
    """A new budget that does not raise the old one; the text says what would."""


def open_account(*, job_id: str, limit_usd: Decimal) -> Account:
    """The job's account, holding nothing yet."""
    return Account.objects.create(job_id=job_id, limit_picodollars=picodollars(limit_usd))


@transaction.atomic
def raise_limit(*, job_id: str, limit_usd: Decimal) -> Account:
    """Set a higher limit. What ran over the old one becomes ordinary spending, and a frozen account thaws."""
    account = Account.objects.select_for_update().get(job_id=job_id)
    limit = picodollars(limit_usd)
    owed = account.spent_picodollars + account.reserved_picodollars + account.overrun_picodollars
    if limit <= account.limit_picodollars or limit < owed:
        least = display_usd(max(account.limit_picodollars, owed))
        raise LimitTooLow(
            f"The new budget must be more than {least}, which is what it was or what is spent already."
        )
    Account.objects.filter(pk=account.pk).update(
        limit_picodollars=limit,
        spent_picodollars=F("spent_picodollars") + F("overrun_picodollars"),
        overrun_picodollars=0,
        frozen=False,
    )
    account.refresh_from_db()
    return account


@transaction.atomic
def settle_leftovers(*, job_id: str, before_epoch: int, clock: Clock) -> int:
    """Book what runs before `before_epoch` left open at its whole reservation; how many charges that were.

    Nobody can tell any more what those calls came to, so the bill assumes the worst that was agreed to.
    """
    account = Account.objects.select_for_update().get(job_id=job_id)
    left = Charge.objects.filter(account=account, state=ChargeState.OPEN, epoch__lt=before_epoch)
    amounts = dict(left.values_list("pk", "reserved_picodollars"))
    if not amounts:
        return 0
    total = sum(amounts.values())
    Charge.objects.filter(pk__in=amounts).update(
        state=ChargeState.SETTLED,
        basis=Basis.ASSUMED,
        settled_picodollars=F("reserved_picodollars"),
        resolved_at=clock.now(),
    )
    Account.objects.filter(pk=account.pk).update(
        reserved_picodollars=F("reserved_picodollars") - total,
        spent_picodollars=F("spent_picodollars") + total,
    )
    return len(amounts)
