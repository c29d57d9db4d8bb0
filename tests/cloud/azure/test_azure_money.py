"""Our books against the emulator's own meter, on bad days.

For each group that was ever billed, the time that is paid for holds the time that is metered: it begins before the
request goes out and ends after the group is certainly gone. So the books are never below the meter, and above it by the
price of that margin only.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import Any

import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.money.pricing import total
from cloud.money.rents.slices import SLICE_S
from emulator.azure.meter import GroupSpan
from emulator.azure.server import AzureEmulator
from emulator.faults import AzureFaults
from tests.cloud import calls
from tests.cloud.azure import containers
from tests.cloud.emulated_bills import picodollars_of_groups
from training.engine.ports import Settlement

BOOK = PriceBook.load()
REGION = "eastus"
_KINDS = (
    "throttle",
    "service_error",
    "error_after",
    "lost_request",
    "lost_reply",
    "failed_start",
    "zombie_delete",
)
# Retry-After of a throttled delete, a look at the list, and what this machine makes of it.
_MARGIN_S = 8.0


def _submit(platform: Any, count: int, **changes: Any) -> None:
    ref = platform.publish(0, calls.weights())
    for number in range(count):
        platform.submit(calls.rollout(f"c{number}", ref, slot=number, **changes))


def _by_group(settlements: list[Settlement]) -> dict[int, list[Settlement]]:
    groups: dict[int, list[Settlement]] = defaultdict(list)
    for one in settlements:
        name = str(one.usage.get("resource", ""))
        if name.startswith("actor_group-"):
            groups[int(name.rpartition("-")[2])].append(one)
    return groups


def _require_books_hold_the_meter(ledger: MemoryLedger, azure: AzureEmulator) -> None:
    spans: dict[int, list[GroupSpan]] = defaultdict(list)
    for span in azure.meter.spans:
        spans[int(span.name.rpartition("-")[2])].append(span)
    groups = _by_group(ledger.settlements())
    assert set(spans) <= set(groups), "nothing stood unpaid"
    for number, metered in spans.items():
        paid = groups[number]
        assert all(span.over for span in metered)
        begin_s = min(one.usage["from_s"] for one in paid)  # type: ignore[type-var]
        end_s = max(one.usage["to_s"] for one in paid)  # type: ignore[type-var]
        assert begin_s <= min(span.from_s for span in metered)
        assert end_s >= max(span.to_s for span in metered)  # type: ignore[type-var]
        booked = sum(one.picodollars for one in paid)
        metered_picodollars = picodollars_of_groups(metered, BOOK, REGION)
        assert booked >= metered_picodollars
        assert end_s - begin_s <= sum(span.billed_s for span in metered) + _MARGIN_S
        assert {one.basis for one in paid} == {"metered"}
        assert booked == sum(total(one.lines) for one in paid)
    assert ledger.spend().spent_picodollars + ledger.overrun_picodollars >= picodollars_of_groups(
        azure.meter.spans, BOOK, REGION
    )
    assert ledger.spend().reserved_picodollars == 0


SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 50))]


@pytest.mark.parametrize("seed", SEEDS)
def test_books_hold_the_meter_on_bad_days(seed: int) -> None:
    """Groups without processes: they come and go with the calls that wait, and no call is answered."""
    luck = random.Random(seed)
    faults = AzureFaults(seed=seed, shares={kind: luck.uniform(0.0, 0.2) for kind in _KINDS})  # type: ignore[misc]
    faults.zombie_s, faults.visibility_delay_s = luck.uniform(0.1, 1.0), luck.choice([0.0, 0.5])
    with containers.subscription(cores=luck.choice([6, 100]), faults=faults) as (azure, demo):
        azure.groups.stubs = "*"
        azure.groups.start_s = luck.uniform(0.01, 0.3)
        with containers.on(demo, most_actors=12, containers_a_group=3) as inner:
            ledger = MemoryLedger(10**12)
            platform = MeteredPlatform(inner, ledger, containers.options(most_actors=12).tariff(BOOK))
            _submit(platform, luck.randrange(3, 14), deadline_s=50.0)
            end_s = time.monotonic() + luck.uniform(0.3, 1.5)
            while time.monotonic() < end_s:
                platform.next(0.1)
            platform.close()
        assert azure.groups.all() == []
        _require_books_hold_the_meter(ledger, azure)


def test_the_days_are_bad() -> None:
    """So that the books' holding means something."""
    struck: set[str] = set()
    for seed in range(50):
        luck = random.Random(seed)
        shares = {kind: luck.uniform(0.0, 0.2) for kind in _KINDS}
        faults = AzureFaults(seed=seed, shares=shares)  # type: ignore[arg-type]
        struck |= {kind for kind in _KINDS for _ in range(8) if faults.strikes(kind)}
    assert struck == set(_KINDS)


def test_real_work_is_paid_while_it_runs() -> None:
    """Actors that work, with slices as short as a test can wait for."""
    with containers.opened() as (inner, azure):
        ledger = MemoryLedger(10**12)
        platform = MeteredPlatform(inner, ledger, containers.options().tariff(BOOK))
        _submit(platform, 4)
        outcomes = [platform.next(60.0) for _ in range(4)]
        assert {one.status for one in outcomes if one is not None} == {"done"}
        assert {one.cost_picodollars for one in outcomes if one is not None} == {0}, "their rent pays"
        platform.close()
        _require_books_hold_the_meter(ledger, azure)


def test_slices_are_renewed_and_the_money_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slices are granted and no third: everything is ended, and nothing runs unpaid.

    The machine has half a slice for ending it. The clock of everything here jumps over the rest of each.
    """
    monkeypatch.setattr("cloud.money.rents.slices.RENEW_AHEAD_S", 30.0)
    real_s, skipped_s = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real_s() + skipped_s[0])
    with containers.opened(containers_a_group=1, most_actors=1) as (inner, azure):
        azure.groups.stubs = "*"
        tariff = containers.options(containers_a_group=1).tariff(BOOK)
        assert tariff.pool is not None
        slice_picodollars = total(tariff.pool.group(1, 1).lines(SLICE_S * 10**9))
        ledger = MemoryLedger(2 * slice_picodollars)
        platform = MeteredPlatform(inner, ledger, tariff)
        _submit(platform, 2)
        for slices in (1, 2):
            while (
                ledger.spend().reserved_picodollars + ledger.spend().spent_picodollars
                < slices * slice_picodollars
            ):
                assert platform.next(0.1) is None
            while not azure.meter.spans:
                assert platform.next(0.1) is None
            skipped_s[0] += SLICE_S - 29.0 if slices == 1 else SLICE_S
        outcomes = []
        while len(outcomes) < 2:
            if (outcome := platform.next(1.0)) is not None:
                outcomes.append(outcome)
        assert {one.reason_code for one in outcomes} == {"budget"}
        assert azure.groups.all() == []
        platform.close()
        _require_books_hold_the_meter(ledger, azure)
        assert ledger.overrun_picodollars == 0


def test_who_cannot_pay_for_one_group_gets_none() -> None:
    with containers.opened() as (inner, azure):
        platform = MeteredPlatform(inner, MemoryLedger(10), containers.options().tariff(BOOK))
        _submit(platform, 2)
        outcomes = [platform.next(60.0) for _ in range(2)]
        assert {(one.status, one.reason_code) for one in outcomes if one} == {("refused", "budget")}
        assert all(one is not None and "of the budget" in one.reason for one in outcomes)
        assert azure.meter.spans == []
        platform.close()
