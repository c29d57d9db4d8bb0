"""Charges as runs leave them, for tests of reports: settled by the ledger itself, then put on the day wanted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from training.engine.ports import PriceLine, Reservation, Settlement
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account, Charge, ChargeState

DAY = datetime(2026, 11, 3, 10, 30, tzinfo=UTC)


def lambda_lines(mb_ms: int) -> tuple[PriceLine, ...]:
    """What a call on Lambda comes to: time times memory, rounded once, and the fee."""
    quantity = str(mb_ms / 1000)
    amount = (2 * mb_ms * 16_666_700 + 1000) // 2000
    return (
        PriceLine("lambda.duration.x86", quantity, "GB-s", amount),
        PriceLine("lambda.request", "1", "request", 200_000),
    )


def settle(
    job: Any,
    epoch: int,
    name: str,
    lines: Sequence[PriceLine] = (),
    *,
    at: datetime = DAY,
    assumed: int = 0,
    kind: Any = "rollout",
) -> int:
    """One call by its lines, or one that no one could meter at `assumed`; what it came to."""
    amount = assumed or sum(line.picodollars for line in lines)
    ledger = DatabaseLedger(job.account.pk, epoch)
    assert ledger.reserve([Reservation(name, kind, 1, amount)]) == [True]
    basis: Any = "assumed" if assumed else "metered"
    ledger.settle([Settlement(name, amount, basis, tuple(lines), {"env_steps": 256})])
    Charge.objects.filter(account__job=job, name=name).update(resolved_at=at, opened_at=at)
    return amount


def many_charges(jobs: Sequence[Any], count: int, first_at: datetime, over: timedelta) -> int:
    """`count` settled calls, shared out over jobs and time, by bulk; what they came to."""
    total = 0
    step = over / count
    accounts = [job.account for job in jobs]

    def rows() -> Iterable[Charge]:
        nonlocal total
        for number in range(count):
            lines = [line.__dict__ for line in lambda_lines(700 + number * 37 % 9001)]
            amount = sum(line["picodollars"] for line in lines)
            total += amount
            at = first_at + step * number
            unmetered = number % 50 == 49
            yield Charge(
                account=accounts[number % len(accounts)],
                epoch=1,
                name=f"r{number // 8}-s{number % 8}-a1",
                round_no=number // 8,
                kind="rollout",
                state=ChargeState.SETTLED,
                basis="assumed" if unmetered else "metered",
                reserved_picodollars=amount,
                settled_picodollars=amount,
                lines=[] if unmetered else lines,
                opened_at=at,
                resolved_at=at,
            )

    batch: list[Charge] = []
    for row in rows():
        batch.append(row)
        if len(batch) == 5000:
            Charge.objects.bulk_create(batch)
            batch = []
    Charge.objects.bulk_create(batch)
    return total


def booked(*jobs: Any) -> int:
    """What the ledger says that these jobs came to."""
    found = Account.objects.filter(job__in=jobs)
    return sum(account.spent_picodollars + account.overrun_picodollars for account in found)
