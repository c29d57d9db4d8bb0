"""Rent of a resource that ran on after its run was over, because no process was there to end it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from django.db import transaction
from django.db.models import F

from cloud.pricing import total
from training.ports import PriceLine
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.money.budget_chain import Chain
from webapp.money.models import RENT, Account, Basis, Charge, ChargeState
from webapp.money.thresholds import note_crossings


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
