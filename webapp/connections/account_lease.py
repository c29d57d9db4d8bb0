"""A lease of a connection's account, for a profile: missing functions are made for it and removed afterwards.

Meanwhile the job holds the account's lease, so set-up and removal wait. The row lists the sizes, so that after a crash
the next holder can continue some minutes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.views.decorators.debug import sensitive_variables

from cloud.accounts.checks import scrubbed
from cloud.accounts.connections import AwsClients
from cloud.accounts.provision import aws, aws_removal
from cloud.accounts.provision.steps import SetUpStep
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import account_setup, decrypt, queries
from webapp.connections.models import SECRET_FIELDS, Aim, CheckState, Connection, SetUp
from webapp.connections.services import ConnectionRefused


class LeaseRefused(Exception):
    """The account cannot be leased, or the lease was lost; the text says why."""


@dataclass(frozen=True)
class LeaseClaim:
    """A claimed account: `number` of the set-up's row, and in `made_mb` the sizes that have no function yet."""

    connection: Connection
    number: int
    made_mb: tuple[int, ...]


def claim_account(
    connection: Connection, memory_mb: Sequence[int], *, clock: Clock = SYSTEM_CLOCK
) -> LeaseClaim:
    """Claim the account. LeaseRefused if its test did not succeed, or if the account is in use."""
    try:
        decrypt.require_usable(connection)
        if not (connection.test_report or {}).get("ok"):
            raise LeaseRefused("The connection's test has not passed yet. Test it first.")
        before = queries.set_up_of(connection)
        missing = [size for size in memory_mb if before is None or size not in before.ready_mb]
        claimed = account_setup.claim_for_profile(connection=connection, memory_mb=missing, clock=clock)
    except (ConnectionRefused, decrypt.CannotOpen) as error:
        raise LeaseRefused(str(error)) from None
    return LeaseClaim(connection, claimed.number, tuple(missing))


class AccountLease:
    """A leased account. `on_step` is called with each step of making and removing functions."""

    def __init__(self, claim: LeaseClaim, on_step: Callable[[dict[str, Any]], None], clock: Clock) -> None:
        self._claim = claim
        self._on_step = on_step
        self._clock = clock
        self._secrets: list[str] = []
        self._wanting: list[dict[str, Any]] = []
        self.clients: AwsClients

    def renew(self) -> bool:
        """Renew the lease in the set-up's row. False once another set-up has claimed it."""
        return bool(self._row.filter(state=CheckState.RUNNING).update(since=self._clock.now()))

    def scrubbed(self, document: dict[str, Any]) -> dict[str, Any]:
        """The document without the connection's secrets, which a cloud may repeat."""
        cleaned: dict[str, Any] = scrubbed(document, self._secrets)
        return cleaned

    @property
    def _row(self) -> QuerySet[SetUp]:
        return SetUp.objects.filter(connection=self._claim.connection, number=self._claim.number)

    def _begin(self) -> None:
        requested = self._row.filter(state=CheckState.REQUESTED)
        if not requested.update(state=CheckState.RUNNING, since=self._clock.now()):
            raise LeaseRefused("Another set-up claimed the account meanwhile. Nothing was started.")

    @sensitive_variables()
    def _open(self) -> None:
        connection = self._claim.connection
        try:
            self.clients = decrypt.aws_connection(connection).open()
            fields = SECRET_FIELDS[connection.kind]
            self._secrets = [decrypt.secret(connection, field).reveal() for field in fields]
        except decrypt.CannotOpen as error:
            raise LeaseRefused(str(error)) from None

    def _make(self) -> None:
        connection, sizes = self._claim.connection, self._claim.made_mb
        if not sizes:
            return
        packed = partial(account_setup.package, connection.emulated)
        steps = aws.set_up(self.clients, account_setup.owner_of(connection), sizes, packed)
        if self._missing_among(steps):
            raise LeaseRefused("The functions could not be made; the steps say why.")

    def _take_away(self) -> bool:
        """Remove the functions that were made. Returns whether all are gone."""
        owner = account_setup.owner_of(self._claim.connection)
        return not self._missing_among(aws_removal.remove_sizes(self.clients, owner, self._claim.made_mb))

    def _missing_among(self, steps: Iterator[SetUpStep]) -> bool:
        missing = False
        for step in steps:
            document = self.scrubbed(step.as_dict())
            self._on_step(document)
            self.renew()
            if step.state == "missing":
                missing = True
                self._wanting.append(document)
        return missing

    def _give_back(self, kept: Sequence[int], left: Sequence[int]) -> None:
        """End the lease. The row keeps the sizes that stay, and those that could not be removed."""
        made = self._row.first()
        if made is None:
            return
        before = {size for size in made.requested_mb if size not in self._claim.made_mb}
        remaining = sorted(before | {*kept, *left})
        self._row.update(
            state=CheckState.DONE,
            since=self._clock.now(),
            aim=Aim.SET_UP if remaining or made.requested_bucket else Aim.TAKE_DOWN,
            requested_mb=remaining,
            ready_mb=sorted({*made.ready_mb, *kept}),
            steps=self._wanting,
        )


@contextmanager
def leased_account(
    claim: LeaseClaim,
    *,
    keep: bool = False,
    on_step: Callable[[dict[str, Any]], None] = lambda step: None,
    clock: Clock = SYSTEM_CLOCK,
) -> Iterator[AccountLease]:
    """The account with functions of all sizes. Functions that were made are removed at the end, unless `keep`."""
    account = AccountLease(claim, on_step, clock)
    account._begin()
    kept: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    try:
        account._open()
        try:
            account._make()
            kept = claim.made_mb if keep else ()
            yield account
        finally:
            if claim.made_mb and not kept and not account._take_away():
                left = claim.made_mb
    finally:
        account._give_back(kept, left)
