"""An emulated subscription, a gateway for its containers, and a platform on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cloud.accounts.register import CreateCounter, Holder, MemoryCreateCounter, MemoryRegister
from cloud.platforms.azure_container import AzureContainerOptions, AzureContainerPlatform
from cloud.platforms.pulled import Patience, ReachableMailbox
from emulator.azure.demo import IMAGE, DemoSubscription, furnish
from emulator.azure.server import AzureEmulator
from emulator.azure.subscription import Subscription
from emulator.faults import AzureFaults
from tests.cloud.gateway_server import served
from tests.cloud.memory_mailbox import MemoryMailbox


@contextmanager
def subscription(
    *, cores: int = 100, faults: AzureFaults | None = None
) -> Iterator[tuple[AzureEmulator, DemoSubscription]]:
    with AzureEmulator(subscription=Subscription(cores_at_most=cores), faults=faults) as azure:
        yield azure, furnish(azure)


def options(**changes: Any) -> AzureContainerOptions:
    """As many actors as this machine has cores, in one group, unless set otherwise."""
    given = {"image": IMAGE, "containers_a_group": 2, "most_actors": 2, **changes}
    return AzureContainerOptions(**given)


@contextmanager
def on(
    demo: DemoSubscription,
    *,
    job: str = "job-1",
    register: Any = None,
    creates: CreateCounter | None = None,
    **changes: Any,
) -> Iterator[AzureContainerPlatform]:
    """A platform in a subscription that is there."""
    mailbox = MemoryMailbox()
    with served(mailbox) as address:
        reached = ReachableMailbox(mailbox, address, mailbox.new_token)
        counted = creates or MemoryCreateCounter()
        holder = Holder(register or MemoryRegister(), "here", job, 1, "lab", creates=counted)
        chosen = options(**changes)
        # A lost actor is noticed soon: all of them are on this machine.
        patience = Patience(begin_s=chosen.start_cap_s, lease_s=3.0)
        platform = AzureContainerPlatform(chosen, demo.connection, reached, holder, patience=patience)
        try:
            yield platform
        finally:
            platform.close()


@contextmanager
def opened(
    *, cores: int = 100, faults: AzureFaults | None = None, **changes: Any
) -> Iterator[tuple[AzureContainerPlatform, AzureEmulator]]:
    with subscription(cores=cores, faults=faults) as (azure, demo), on(demo, **changes) as platform:
        yield platform, azure
