"""A job's money in the database, behind the engine's `Ledger` port. No call can bypass it.

Each batch is one transaction that first locks the job's account. The tables' own constraints hold the limit
even if this file were wrong. Calls are reserved within what the budgets above hold for the account; before
that is used up, the same transaction requests more from them. A ledger writes for one epoch of the job's
lease; once another process has the lease, every write raises LedgerClosed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime

from django.db import connection, transaction
from django.db.models import QuerySet

from training.engine.ports import Reservation, Room, Settlement
from training.engine.reports import Spend
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.money.budget_chain import Chain, headroom
from webapp.money.models import Account, AtLine, Charge, ChargeState
from webapp.money.queries import budgets_above, limits_of
from webapp.money.reserve_fast_path import take_all
from webapp.money.thresholds import note_crossings

_NAMES_IN_ONE_QUERY = 500
"""SQLite limits the number of parameters of a statement."""
_GRANT_SHARE = 8
"""A grant grows by at least an eighth, so that small calls do not lock the budgets each time."""

# These two run with every call. As text they cost a fraction of building them each time.
_ACCOUNT_UNDER_LEASE = (
    "SELECT account.* FROM money_account account JOIN jobs_job job ON job.id = account.job_id"
    " WHERE account.id = %s AND job.lease_epoch = %s AND job.lease_owner <> ''"
)
_CHANGE_ACCOUNT = (
    "UPDATE money_account SET granted_picodollars = granted_picodollars + %s,"
    " reserved_picodollars = reserved_picodollars + %s, spent_picodollars = spent_picodollars + %s,"
    " overrun_picodollars = overrun_picodollars + %s, frozen = frozen OR %s WHERE id = %s"
)


class LedgerClosed(Exception):
    """This ledger's epoch has ended: another process holds the job's lease, or none does."""


class DatabaseLedger:
    """The account `account_id`, written under `epoch` of its job's lease."""

    def __init__(
        self,
        account_id: int,
        epoch: int,
        *,
        clock: Clock = SYSTEM_CLOCK,
        after_reserve: Callable[[], None] = lambda: None,
    ) -> None:
        self._account_id = account_id
        self._epoch = epoch
        self._clock = clock
        self._after_reserve = after_reserve

    def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
        """Reserve each in order as long as it fits. For a known id, return whether it is open."""
        if not batch:
            return []
        now = self._clock.now()
        if take_all(self._account_id, self._epoch, batch, now):
            accepted = dict.fromkeys((item.id for item in batch), True)
        elif self._is_full(batch, now):
            accepted = dict.fromkeys((item.id for item in batch), False)
        else:
            accepted = self._reserved(batch, now)
        self._after_reserve()
        return [accepted[item.id] for item in batch]

    def _is_full(self, batch: Sequence[Reservation], now: datetime) -> bool:
        """Return True if no reservation fits and none is known. It takes no lock: a full budget delays no
        other job."""
        account = self._account()
        ceiling = account.granted_picodollars + self._ungranted(account, now)
        least = min(item.picodollars for item in batch)
        return least > _headroom(account, ceiling) and not self._states([item.id for item in batch])

    @transaction.atomic
    def _reserved(self, batch: Sequence[Reservation], now: datetime) -> dict[str, bool]:
        """Reserve each by itself, by id: some may be known or not fit, or the budgets above must grant more."""
        account = self._account(locked=True)
        known = self._states([item.id for item in batch])
        grant = _more_granted(account, batch, known, now)
        accepted = _accepted(account.granted_picodollars + grant, account, batch, known)
        taken = [item for item in batch if item.id not in known and accepted[item.id]]
        if taken or grant:
            self._change(granted=grant, reserved=sum(item.picodollars for item in taken))
        Charge.objects.bulk_create(
            [self._opened(item, now) for item in taken], batch_size=_NAMES_IN_ONE_QUERY
        )
        return accepted

    def _opened(self, item: Reservation, now: datetime) -> Charge:
        return Charge(
            account_id=self._account_id,
            epoch=self._epoch,
            name=item.id,
            round_no=item.round_no,
            kind=item.kind,
            reserved_picodollars=item.picodollars,
            opened_at=now,
        )

    def settle(self, batch: Sequence[Settlement]) -> None:
        """Book what reservations cost. A cost beyond its reservation is an overrun and freezes the account."""
        if not batch:
            return
        with transaction.atomic():
            account = self._account(locked=True)
            chain = Chain(self._account_id, self._clock.now())
            open_charges = self._open([item.id for item in batch])
            changed, reserved, spent, overrun = [], 0, 0, 0
            for item in batch:
                charge = open_charges.pop(item.id, None)
                if charge is None:
                    continue
                within = min(item.picodollars, charge.reserved_picodollars)
                reserved, spent = reserved + charge.reserved_picodollars, spent + within
                overrun += item.picodollars - within
                changed.append(_settled(charge, item, chain.now))
            # Far cheaper than `bulk_update`, whose statement grows with the square of the batch.
            Charge.objects.bulk_create(
                changed,
                batch_size=_NAMES_IN_ONE_QUERY,
                update_conflicts=True,
                unique_fields=["account", "epoch", "name"],
                update_fields=["state", "basis", "settled_picodollars", "usage", "lines", "resolved_at"],
            )
            self._change(reserved=-reserved, spent=spent, overrun=overrun)
            chain.book(spent, overrun)
            before = account.spent_picodollars + account.overrun_picodollars
            note_crossings(account, before, before + spent + overrun, chain.now)

    def _change(self, *, granted: int = 0, reserved: int = 0, spent: int = 0, overrun: int = 0) -> None:
        """Add to the locked account's figures. An overrun freezes it."""
        with connection.cursor() as cursor:
            changes = [granted, reserved, spent, overrun, overrun > 0]
            cursor.execute(_CHANGE_ACCOUNT, [*changes, self._account_id])

    def release(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        with transaction.atomic():
            self._account(locked=True)
            charges = self._open(ids)
            for some in _batched(list(charges)):
                self._mine().filter(name__in=some).update(
                    state=ChargeState.RELEASED, resolved_at=self._clock.now()
                )
            self._change(reserved=-sum(charge.reserved_picodollars for charge in charges.values()))

    def headroom(self) -> int:
        """Picodollars that can still be reserved, here and in the budgets above; none on a frozen account."""
        account = Account.objects.get(pk=self._account_id)
        more = self._ungranted(account, self._clock.now())
        return _headroom(account, account.granted_picodollars + more)

    def room(self) -> Room:
        tightest = min(limits_of(self._account_id, AtLine.DRAIN, self._clock.now()), key=lambda one: one.room)
        return Room(min(tightest.room, self.headroom()), tightest.name)

    def _ungranted(self, account: Account, now: datetime) -> int:
        """Return what the budgets above could still grant."""
        more = account.limit_picodollars - account.granted_picodollars
        return min([more, *map(headroom, budgets_above(account.pk, now))]) if more else 0

    def spend(self) -> Spend:
        """The account now. An overrun is part of what was spent."""
        account = Account.objects.get(pk=self._account_id)
        return Spend(
            spent_picodollars=account.spent_picodollars + account.overrun_picodollars,
            reserved_picodollars=account.reserved_picodollars,
            limit_picodollars=account.limit_picodollars,
        )

    def _account(self, *, locked: bool = False) -> Account:
        """Lock and return the account. LedgerClosed if another process has the lease."""
        lock = " FOR UPDATE OF account" if locked and connection.features.has_select_for_update else ""
        rows = Account.objects.raw(_ACCOUNT_UNDER_LEASE + lock, [self._account_id, self._epoch])
        for account in rows:
            return account
        raise LedgerClosed(f"account {self._account_id} is no longer written under epoch {self._epoch}")

    def _states(self, names: Sequence[str]) -> dict[str, bool]:
        """Return which of these are known, and whether they are open."""
        open_by_name: dict[str, bool] = {}
        for some in _batched(names):
            states = self._mine().filter(name__in=some).values_list("name", "state")
            open_by_name |= {name: state == ChargeState.OPEN for name, state in states}
        return open_by_name

    def _open(self, names: Sequence[str]) -> dict[str, Charge]:
        mine = self._mine().filter(state=ChargeState.OPEN)
        return {charge.name: charge for some in _batched(names) for charge in mine.filter(name__in=some)}

    def _mine(self) -> QuerySet[Charge]:
        return Charge.objects.filter(account_id=self._account_id, epoch=self._epoch)


def _batched(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(names), _NAMES_IN_ONE_QUERY):
        yield names[at : at + _NAMES_IN_ONE_QUERY]


def _settled(charge: Charge, item: Settlement, at: datetime) -> Charge:
    charge.pk = None  # it is found by its name
    charge.state = ChargeState.SETTLED
    charge.basis = item.basis
    charge.settled_picodollars = item.picodollars
    charge.usage = dict(item.usage)
    charge.lines = [asdict(line) for line in item.lines]
    charge.resolved_at = at
    return charge


def _headroom(account: Account, ceiling: int) -> int:
    """What may still be reserved below a limit."""
    if account.frozen:
        return 0
    held = account.spent_picodollars + account.overrun_picodollars + account.reserved_picodollars
    return max(0, ceiling - held)


def _more_granted(
    account: Account, batch: Sequence[Reservation], known: dict[str, bool], now: datetime
) -> int:
    """Return what the budgets above now hold in addition, so that this batch and the next one like it fit, if
    possible."""
    ungranted = account.limit_picodollars - account.granted_picodollars
    wanted = sum(item.picodollars for item in batch if item.id not in known)
    if not ungranted or account.frozen or 2 * wanted <= _headroom(account, account.granted_picodollars):
        return 0
    chain = Chain(account.pk, now)
    missing = 2 * wanted - _headroom(account, account.granted_picodollars)
    grant = chain.room(min(ungranted, max(missing, account.granted_picodollars // _GRANT_SHARE)))
    chain.hold(grant)
    return grant


def _accepted(
    ceiling: int, account: Account, batch: Sequence[Reservation], known: dict[str, bool]
) -> dict[str, bool]:
    room = _headroom(account, ceiling)
    accepted = dict(known)
    for item in batch:
        if item.picodollars < 0:
            raise ValueError(f"{item.id} would reserve {item.picodollars} picodollars")
        if item.id not in accepted:
            accepted[item.id] = item.picodollars <= room and not account.frozen
            room -= item.picodollars if accepted[item.id] else 0
    return accepted
