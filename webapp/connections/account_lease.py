"""An account borrowed for a while by whoever measures there: functions of the sizes that are missing come and go.

Meanwhile the set-up's row is the borrower's: nobody sets the account up or clears it. Whoever dies while he has it
leaves its sizes written down there, and after some minutes the next one may go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.views.decorators.debug import sensitive_variables

from cloud.checks import scrubbed
from cloud.connections import AwsClients
from cloud.provision import aws, aws_removal
from cloud.provision.steps import Step
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import account_setup, decrypt, queries
from webapp.connections.key_ring import KeysUnusable
from webapp.connections.models import SECRET_FIELDS, Aim, CheckState, Connection, SetUp
from webapp.connections.sealing import CannotUnseal
from webapp.connections.services import ConnectionRefused


class NotBorrowed(Exception):
    """The account cannot be had, or not any longer; the text says why."""


@dataclass(frozen=True)
class Loan:
    """What was asked for: `number` is that of the set-up's row, `made_mb` the sizes there is no function of yet."""

    connection: Connection
    number: int
    made_mb: tuple[int, ...]


def ask(connection: Connection, memory_mb: Sequence[int], *, clock: Clock = SYSTEM_CLOCK) -> Loan:
    """Claim the account. NotBorrowed where it was not tested well, or somebody works on it."""
    try:
        decrypt.require_usable(connection)
        if not (connection.test_report or {}).get("ok"):
            raise NotBorrowed("The connection has not been tested well yet. Test it first.")
        before = queries.set_up_of(connection)
        missing = [size for size in memory_mb if before is None or size not in before.ready_mb]
        claimed = account_setup.claim_for_profile(connection=connection, memory_mb=missing, clock=clock)
    except (ConnectionRefused, decrypt.CannotOpen) as error:
        raise NotBorrowed(str(error)) from None
    return Loan(connection, claimed.number, tuple(missing))


class Borrowed:
    """The account while one has it. `told` hears each step of making functions and of taking them away."""

    def __init__(self, loan: Loan, told: Callable[[dict[str, Any]], None], clock: Clock) -> None:
        self._loan = loan
        self._told = told
        self._clock = clock
        self._secrets: list[str] = []
        self._wanting: list[dict[str, Any]] = []
        self.clients: AwsClients

    def still_ours(self) -> bool:
        """A sign of life in the set-up's row; False once it is somebody else's."""
        return bool(self._row.filter(state=CheckState.RUNNING).update(since=self._clock.now()))

    def scrubbed(self, document: dict[str, Any]) -> dict[str, Any]:
        """The same without the connection's secrets, whatever a cloud repeats of them."""
        cleaned: dict[str, Any] = scrubbed(document, self._secrets)
        return cleaned

    @property
    def _row(self) -> QuerySet[SetUp]:
        return SetUp.objects.filter(connection=self._loan.connection, number=self._loan.number)

    def _begin(self) -> None:
        asked = self._row.filter(state=CheckState.ASKED)
        if not asked.update(state=CheckState.RUNNING, since=self._clock.now()):
            raise NotBorrowed("Somebody else set the account up meanwhile, and nothing was begun.")

    @sensitive_variables()
    def _open(self) -> None:
        connection = self._loan.connection
        try:
            self.clients = decrypt.aws_connection(connection).open()
            fields = SECRET_FIELDS[connection.kind]
            self._secrets = [decrypt.secret(connection, field).reveal() for field in fields]
        except (decrypt.CannotOpen, CannotUnseal, KeysUnusable) as error:
            raise NotBorrowed(str(error)) from None

    def _make(self) -> None:
        connection, sizes = self._loan.connection, self._loan.made_mb
        if not sizes:
            return
        packed = partial(account_setup.package, connection.emulated)
        steps = aws.set_up(self.clients, account_setup.owner_of(connection), sizes, packed)
        if self._missing_among(steps):
            raise NotBorrowed("The functions could not be made; the steps say why.")

    def _take_away(self) -> bool:
        """Whether all of them are gone."""
        owner = account_setup.owner_of(self._loan.connection)
        return not self._missing_among(aws_removal.remove_sizes(self.clients, owner, self._loan.made_mb))

    def _missing_among(self, steps: Iterator[Step]) -> bool:
        missing = False
        for step in steps:
            document = self.scrubbed(step.as_dict())
            self._told(document)
            self.still_ours()
            if step.state == "missing":
                missing = True
                self._wanting.append(document)
        return missing

    def _give_back(self, kept: Sequence[int], left: Sequence[int]) -> None:
        """To whoever sets it up next: with what was kept, and with what could not be taken away."""
        made = self._row.first()
        if made is None:
            return
        before = {size for size in made.asked_mb if size not in self._loan.made_mb}
        asked = sorted(before | {*kept, *left})
        self._row.update(
            state=CheckState.DONE,
            since=self._clock.now(),
            aim=Aim.SET_UP if asked or made.asked_bucket else Aim.TAKE_DOWN,
            asked_mb=asked,
            ready_mb=sorted({*made.ready_mb, *kept}),
            steps=self._wanting,
        )


@contextmanager
def borrowed(
    loan: Loan,
    *,
    keep: bool = False,
    told: Callable[[dict[str, Any]], None] = lambda step: None,
    clock: Clock = SYSTEM_CLOCK,
) -> Iterator[Borrowed]:
    """The account with functions of all sizes; those that were missing are gone at the end unless they are to stay."""
    account = Borrowed(loan, told, clock)
    account._begin()
    kept: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    try:
        account._open()
        try:
            account._make()
            kept = loan.made_mb if keep else ()
            yield account
        finally:
            if loan.made_mb and not kept and not account._take_away():
                left = loan.made_mb
    finally:
        account._give_back(kept, left)
