"""Measures an account from the command line, within a ledger, and writes the result as a profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cloud.accounts.profiling_runs import first_weights, likely_picodollars
from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws_lambda import LambdaOptions, LambdaPlatform
from cloud.timing.calibration.account import ENVIRONMENT, AccountEffort, CallSample, measure
from cloud.timing.calibration.account_profile import CalibratedAccount, account_profile, billed_beside_s
from cloud.timing.calibration.toml_writer import write_toml
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Profile
from cloud.workers.learner_thread import NoLearner
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.account_lease import AccountLease, LeaseRefused, claim_account, leased_account
from webapp.connections.models import Connection
from webapp.resources.profiling.services import require_room

LIMIT_PICODOLLARS = 10**12
_BASE = "lambda"


@dataclass(frozen=True)
class MeasuredAccount:
    """The measured numbers, and what measuring them cost."""

    profile: Profile
    samples: list[CallSample]
    spent_picodollars: int

    @property
    def heading(self) -> str:
        """The heading of the file."""
        beside_ms = 1000 * billed_beside_s(self.samples)
        return "\n".join(
            (
                "Measured by `manage.py calibrate --account aws`.",
                f"A warm call is billed {beside_ms:.1f} ms beyond its body's own time (the middle one).",
                "What this does not name as measured is as in the profile `lambda`.",
            )
        )


def likely_cost(connection: Connection, effort: AccountEffort, sizes: tuple[int, ...]) -> int:
    """About what a calibration costs, in picodollars. Raises UnknownSku if the region has no prices."""
    tariff = LambdaOptions(region=connection.region).tariff(PriceBook.load(), sizes[0])
    return likely_picodollars(effort.plan(sizes), tariff, stacks.load(stacks.OURS))


def calibrate_account(
    connection: Connection,
    effort: AccountEffort,
    sizes: Sequence[int],
    *,
    tell: Callable[[str], None],
    clock: Clock = SYSTEM_CLOCK,
) -> MeasuredAccount:
    """Measure it. LeaseRefused where the account cannot be had, NotMeasured where a call fails, NoRoom in no budget.

    Functions that are missing are made for it and taken away; no more than the limit is spent, whatever happens.
    """
    require_room(connection.project, None, LIMIT_PICODOLLARS, clock.now())
    claim = claim_account(connection, sizes, clock=clock)

    def on_step(step: dict[str, Any]) -> None:
        tell(f"{step['name']}: {step['words']}")

    with leased_account(claim, on_step=on_step, clock=clock) as account:
        weights = first_weights(ENVIRONMENT)
        options = LambdaOptions(region=connection.region)
        ledger = MemoryLedger(LIMIT_PICODOLLARS)
        inner = LambdaPlatform(options, account.clients, learner=NoLearner)
        platform = MeteredPlatform(inner, ledger, options.tariff(PriceBook.load(), sizes[0]))
        name = f"calibrate-{connection.pk}-{clock.now():%H%M%S}"
        try:
            samples = measure(
                platform, weights, effort, tuple(sizes), name=name, report=_and_look(account, tell)
            )
        finally:
            platform.close()
        about = CalibratedAccount(connection.region, inner.limits.concurrent, connection.emulated)
    measured = account_profile(
        samples, about, profiles.load(_BASE), stacks.load(stacks.OURS), clock.now().astimezone(UTC).date()
    )
    return MeasuredAccount(measured, samples, ledger.spend().spent_picodollars)


def _and_look(account: AccountLease, tell: Callable[[str], None]) -> Callable[[str], None]:
    """Wrap `tell`, so that it raises LeaseRefused once another process has the account."""

    def on_line(line: str) -> None:
        tell(line)
        if not account.renew():
            raise LeaseRefused("Another set-up of the account began, so this one ended.")

    return on_line


def write(measured: MeasuredAccount, connection: Connection, folder: Path, today: datetime) -> Path:
    """Write a dated file, which forms and commands then offer; returns its path."""
    path = folder / f"{_BASE}-{connection.region}-{connection.pk.replace('_', '-')}-{today:%Y-%m-%d}.toml"
    write_toml(path, measured.profile, measured.heading)
    return path
