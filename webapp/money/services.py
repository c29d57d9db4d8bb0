"""Writes to accounts outside a run's own bookkeeping (which is `ledger`), late rent of resources included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F

from cloud.money.pricing import total
from cloud.money.rents.slices import SLICE_S
from cloud.platforms.options import PLATFORMS
from cloud.timing.virtual_time import to_ns
from training.engine.ports import PriceLine, Settlement
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import display_usd
from webapp.money.amounts import exact_usd, picodollars
from webapp.money.budget_chain import Chain, give_back_grant
from webapp.money.models import RENT, Account, Basis, Charge, ChargeState
from webapp.money.thresholds import note_crossings

_MICRODOLLAR = 10**6
"""What limits are written in, in picodollars."""


class LimitTooLow(ValueError):
    """The new budget is too low. The text says which would do."""


def open_account(*, job: Any, limit_usd: Decimal) -> Account:
    """Create the job's account. Its whole limit is granted until budgets are attached."""
    limit = picodollars(limit_usd)
    return Account.objects.create(job=job, limit_picodollars=limit, granted_picodollars=limit)


@transaction.atomic
def raise_limit(*, job_id: str, limit_usd: Decimal, clock: Clock = SYSTEM_CLOCK) -> Account:
    """Set a higher limit and return the account. Overruns become ordinary spending, and a frozen account
    thaws. Raises LimitTooLow."""
    account = Account.objects.select_for_update().get(job_id=job_id)
    limit = picodollars(limit_usd)
    owed = account.spent_picodollars + account.reserved_picodollars + account.overrun_picodollars
    if limit <= account.limit_picodollars or limit < owed:
        least = display_usd(max(account.limit_picodollars, owed))
        raise LimitTooLow(
            f"The new budget must be more than {least}, which is what it was or what is spent already."
        )
    chain = Chain(account.pk, clock.now())
    granted = limit
    if chain.budgets:
        granted = min(limit, account.granted_picodollars + account.overrun_picodollars)
        chain.hold(granted - account.granted_picodollars - account.overrun_picodollars)
    Account.objects.filter(pk=account.pk).update(
        limit_picodollars=limit,
        granted_picodollars=granted,
        spent_picodollars=F("spent_picodollars") + F("overrun_picodollars"),
        overrun_picodollars=0,
        frozen=False,
        arming=F("arming") + 1,
    )
    account.refresh_from_db()
    return account


def least_limit(account: Account) -> int:
    """Return the lowest limit that the account may get: what is spent, or reserved for calls in flight."""
    return max(1, account.spent_picodollars + account.reserved_picodollars + account.overrun_picodollars)


def check_lower_limit(account: Account, limit: int) -> None:
    """Raise LimitTooLow if the account cannot get so low a limit."""
    least = least_limit(account)
    if limit < least:
        written = exact_usd(-(-least // _MICRODOLLAR) * _MICRODOLLAR)
        raise LimitTooLow(
            f"The limit cannot be below ${written}, which is spent or reserved for calls in flight."
        )


@transaction.atomic
def lower_limit(*, job_id: str, limit_usd: Decimal, clock: Clock = SYSTEM_CLOCK) -> Account:
    """Set a lower limit and return the account; what the budgets above hold beyond it is free again.

    Raises LimitTooLow.
    """
    account = Account.objects.select_for_update().get(job_id=job_id)
    limit = picodollars(limit_usd)
    check_lower_limit(account, limit)
    if limit >= account.limit_picodollars:
        return account
    granted = min(limit, account.granted_picodollars)
    Chain(account.pk, clock.now()).hold(granted - account.granted_picodollars)
    Account.objects.filter(pk=account.pk).update(limit_picodollars=limit, granted_picodollars=granted)
    account.refresh_from_db()
    return account


@transaction.atomic
def settle_leftovers(*, job_id: str, before_epoch: int, clock: Clock) -> int:
    """Book open charges of epochs before `before_epoch` at their whole reservation; returns their number.

    What those calls cost is unknown, so the bill assumes the agreed worst case until `correct` has a metered
    figure. Rent that ends with its run is booked until now: the next run pays for the rest of that time.
    """
    account = Account.objects.select_for_update(of=("self",)).select_related("job").get(job_id=job_id)
    rows = Charge.objects.filter(account=account, state=ChargeState.OPEN, epoch__lt=before_epoch)
    left = list(rows.only("kind", "reserved_picodollars", "opened_at"))
    if not left:
        return 0
    chain = Chain(account.pk, clock.now())
    rows.update(
        state=ChargeState.SETTLED,
        basis=Basis.ASSUMED,
        settled_picodollars=F("reserved_picodollars"),
        resolved_at=chain.now,
    )
    spent = sum(charge.reserved_picodollars for charge in left)
    if PLATFORMS[account.job.spec["platform"]["kind"]].machines_stay:
        for rent in (charge for charge in left if charge.kind == RENT):
            used = _rent_until(rent, clock.now())
            Charge.objects.filter(pk=rent.pk).update(settled_picodollars=used)
            spent -= rent.reserved_picodollars - used
    Account.objects.filter(pk=account.pk).update(
        reserved_picodollars=F("reserved_picodollars") - sum(charge.reserved_picodollars for charge in left),
        spent_picodollars=F("spent_picodollars") + spent,
    )
    chain.book(spent)
    before = account.spent_picodollars + account.overrun_picodollars
    note_crossings(account, before, before + spent, chain.now)
    return len(left)


def _rent_until(charge: Charge, now: datetime) -> int:
    """Return the part of an open slice that can have passed by now: it began after it was reserved."""
    passed_ns = max(0, to_ns((now - charge.opened_at).total_seconds()))
    return min(charge.reserved_picodollars, -(-charge.reserved_picodollars * passed_ns // to_ns(SLICE_S)))


@transaction.atomic
def close_books(*, job_id: str, before_epoch: int, clock: Clock) -> None:
    """Book what is open for a job that has stopped, and return to the budgets above what they still hold for
    it."""
    settle_leftovers(job_id=job_id, before_epoch=before_epoch, clock=clock)
    account = Account.objects.select_for_update().get(job_id=job_id)
    give_back_grant(account, clock.now())


@transaction.atomic
def correct(
    *, account_id: int, epoch: int, name: str, settlement: Settlement, clock: Clock = SYSTEM_CLOCK
) -> bool:
    """Replace a charge's assumed cost by the metered one, here and in all budgets above; False if it is not
    assumed (still open, released or metered already), with nothing changed.

    What was booked too much first pays for overruns, and an account without any thaws; the rest is free again at
    once. A charge counts on the day of its first booking.
    """
    if settlement.basis != Basis.METERED.value:
        raise ValueError(f"{name} would be corrected by an assumption; only a metered figure may do that")
    account = Account.objects.select_for_update().get(pk=account_id)
    charge = Charge.objects.filter(
        account=account, epoch=epoch, name=name, state=ChargeState.SETTLED, basis=Basis.ASSUMED
    ).first()
    if charge is None:
        return False
    assumed, true = charge.settled_picodollars or 0, settlement.picodollars
    less, over = max(0, assumed - true), max(0, true - assumed)
    now = clock.now()
    charge.assumed_picodollars, charge.settled_picodollars = assumed, true
    charge.basis, charge.corrected_at = Basis.METERED, now
    # The platform's own usage figures stay; the provider's are added.
    charge.usage = {**charge.usage, **settlement.usage}
    charge.lines = [asdict(line) for line in settlement.lines]
    charge.save()
    chain = Chain(account.pk, now)
    paid_back = min(less, account.overrun_picodollars)
    overrun = account.overrun_picodollars + over - paid_back
    free_again = less - paid_back
    Account.objects.filter(pk=account.pk).update(
        spent_picodollars=F("spent_picodollars") - free_again,
        granted_picodollars=F("granted_picodollars") - (free_again if chain.budgets else 0),
        overrun_picodollars=overrun,
        frozen=overrun > 0,
    )
    chain.correct(less, over, charge.resolved_at or now)
    before = account.spent_picodollars + account.overrun_picodollars
    note_crossings(account, before, before + over - less, now)
    return True


@transaction.atomic
def book_late(
    *,
    account_id: int,
    epoch: int,
    name: str,
    lines: Sequence[PriceLine],
    usage: Mapping[str, object],
    clock: Clock = SYSTEM_CLOCK,
) -> bool:
    """Book the rent once, beyond the budget if necessary; False if it is booked already.

    What the account has no room for is an overrun: spent without a reservation.
    """
    account = Account.objects.select_for_update().get(pk=account_id)
    if Charge.objects.filter(account=account, epoch=epoch, name=name).exists():
        return False
    chain, amount = Chain(account.pk, clock.now()), total(lines)
    Charge.objects.create(
        account=account,
        epoch=epoch,
        name=name,
        round_no=account.job.round_no,
        kind=RENT,
        state=ChargeState.SETTLED,
        basis=Basis.METERED,
        reserved_picodollars=0,
        settled_picodollars=amount,
        usage=dict(usage),
        lines=[asdict(line) for line in lines],
        opened_at=chain.now,
        resolved_at=chain.now,
    )
    held = account.spent_picodollars + account.reserved_picodollars
    free = max(0, account.granted_picodollars - held - account.overrun_picodollars)
    ungranted = account.limit_picodollars - account.granted_picodollars
    grant = chain.room(max(0, min(ungranted, amount - free)))
    within = min(amount, free + grant)
    over = amount - within
    chain.hold(grant)
    Account.objects.filter(pk=account.pk).update(
        granted_picodollars=F("granted_picodollars") + grant,
        spent_picodollars=F("spent_picodollars") + within,
        overrun_picodollars=F("overrun_picodollars") + over,
        frozen=account.frozen or over > 0,
    )
    chain.book(within, over)
    before = account.spent_picodollars + account.overrun_picodollars
    note_crossings(account, before, before + amount, chain.now)
    return True
