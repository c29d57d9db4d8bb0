"""An emulated account with the actor function set up as a newcomer's is, and a platform on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from cloud.accounts.connections import AwsConnection
from cloud.actor import bundle
from cloud.actor.bundle import Bundle
from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws.functions import deploy, function_name
from cloud.platforms.aws_lambda import LambdaOptions, LambdaPlatform
from emulator.aws.account import EmulatedAccount
from emulator.aws.demo import DemoAccount, furnish
from emulator.aws.server import AwsEmulator
from emulator.faults import AwsFaults

MEMORY_MB = 1769


@cache
def thin() -> Bundle:
    return bundle.thin()


@contextmanager
def account(
    *, at_once: int = 2, faults: AwsFaults | None = None
) -> Iterator[tuple[AwsEmulator, DemoAccount]]:
    """As many functions at once as this machine has cores."""
    with AwsEmulator(account=EmulatedAccount(concurrency=at_once), faults=faults) as aws:
        yield aws, furnish(aws)


def set_up(demo: DemoAccount, memory_mb: Sequence[int] = (MEMORY_MB,), *, timeout_s: int = 120) -> None:
    clients = demo.by_role.open()
    for size in memory_mb:
        deploy(
            clients.client("lambda"),
            function_name(demo.by_role.prefix, size),
            thin(),
            demo.actor_role,
            size,
            timeout_s=timeout_s,
            log_client=clients.client("logs"),
        )


@contextmanager
def opened(
    *,
    at_once: int = 2,
    faults: AwsFaults | None = None,
    connection: Any = None,
    timeout_s: int = 120,
    memory_mb: int = MEMORY_MB,
    **options: Any,
) -> Iterator[tuple[LambdaPlatform, AwsEmulator]]:
    """`connection` changes the one that the demo account gives."""
    with account(at_once=at_once, faults=faults) as (aws, demo):
        set_up(demo, [memory_mb], timeout_s=timeout_s)
        connected: AwsConnection = demo.by_role if connection is None else connection(demo.by_role)
        platform = LambdaOptions(function_timeout_s=timeout_s, **options).open(connected)
        try:
            yield platform, aws
        finally:
            platform.close()


@contextmanager
def metered() -> Iterator[MeteredPlatform]:
    """Such a platform behind a ledger, which has paid for something once the block is over."""
    with opened() as (inner, _):
        ledger = MemoryLedger(10**12)
        platform = MeteredPlatform(inner, ledger, LambdaOptions().tariff(PriceBook.load(), MEMORY_MB))
        yield platform
        platform.close()
        assert ledger.spend().spent_picodollars > 0
