"""Slices of rent: never booked above what was reserved, whole units where a resource is billed by units."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.price_parts import container_parts, machine_parts, provisioned_capacity
from cloud.money.ledger import MemoryLedger
from cloud.money.pricing import RentPrice, Tariff, total
from cloud.money.rents.job import Rents
from cloud.money.rents.slices import RentedResource, rent_from_start, rent_going_on
from training.engine.ports import Settlement

BOOK = PriceBook.load()
NS = 10**9
USD = 10**12
READY = provisioned_capacity(BOOK, "us-east-1", memory_mb=1024, instances=64)
MACHINE = RentPrice("server", machine_parts(BOOK, "c5.4xlarge", "us-east-1"))
GROUP = RentPrice("group", container_parts(BOOK, "eastus", vcpu=4, memory_mb=8192))


def rent(price: RentPrice, looks_s: list[float], end_s: float) -> tuple[MemoryLedger, list[Settlement]]:
    """The ledger and its settlements of a resource that was looked after at these times."""
    ledger = MemoryLedger(10**6 * USD)
    rented = RentedResource(price, ledger, "", 0.0)
    for now_s in [0.0, *looks_s]:
        assert rented.keep(now_s, 1) is None
    rented.end(end_s)
    return ledger, ledger.settlements()


def test_capacity_kept_ready_is_billed_by_started_five_minutes() -> None:
    """64 GB for 301 s are 600 s: 64 * 600 GB-s at $0.0000041667."""
    ledger, booked = rent(READY, [100.0, 200.0, 296.0], 301.0)
    assert [(item.id, item.lines[0].quantity) for item in booked] == [
        ("rent-provisioned-1", "19200"),
        ("rent-provisioned-2", "19200"),
    ]
    assert sum(item.picodollars for item in booked) == total(READY.lines(301 * NS)) == 160_001_280_000
    assert not ledger.frozen
    assert ledger.spend().reserved_picodollars == 0


def test_a_machine_is_billed_to_the_moment_with_its_address_and_disk() -> None:
    _, booked = rent(MACHINE, [50.0, 58.0], 90.0)
    assert [[line.sku for line in item.lines] for item in booked] == [["c5.4xlarge", "paper.vm_overhead"]] * 2
    hours = Fraction(90, 3600)
    exact = hours * (Fraction("0.68") + Fraction("17.92") / 720) * USD
    assert sum(item.picodollars for item in booked) == pytest.approx(float(exact), abs=2)


def test_a_container_group_has_a_line_for_cores_and_one_for_memory() -> None:
    lines = GROUP.lines(3600 * NS)
    assert [(line.sku, line.quantity, line.picodollars) for line in lines] == [
        ("aci.vcpu.linux", "4", 162_000_000_000),
        ("aci.memory.linux", "8", 35_600_000_000),
    ]


@pytest.mark.parametrize(
    ("round_up_s", "slice_s"), [(0, 60), (1, 60), (7, 56), (60, 60), (61, 61), (300, 300)]
)
def test_slices_are_whole_units_of_about_a_minute(round_up_s: int, slice_s: int) -> None:
    assert (
        RentedResource(replace(MACHINE, round_up_s=round_up_s), MemoryLedger(0), "", 0.0).slice_s == slice_s
    )


@given(
    price=st.sampled_from([READY, MACHINE, GROUP]),
    round_up_s=st.sampled_from([0, 1, 7, 45, 60, 300, 3600]),
    gaps_s=st.lists(st.floats(0.0, 4.0), max_size=120),
    last_s=st.floats(0.0, 4.0),
)
def test_no_slice_is_booked_above_its_reservation(
    price: RentPrice, round_up_s: int, gaps_s: list[float], last_s: float
) -> None:
    """Looked after in time, a resource never costs more than what was set aside, whenever it ends."""
    price = replace(price, round_up_s=round_up_s)
    looks_s = [sum(gaps_s[: count + 1]) for count in range(len(gaps_s))]
    end_s = (looks_s[-1] if looks_s else 0.0) + last_s
    ledger, booked = rent(price, looks_s, end_s)
    assert not ledger.frozen
    assert ledger.overrun_picodollars == 0
    assert ledger.spend().reserved_picodollars == 0
    for item in booked:
        assert item.picodollars == total(item.lines)
    # All slices together are the rent of the whole stand, but for the rounding of each line.
    whole = total(price.lines(round(end_s * NS)))
    assert abs(sum(item.picodollars for item in booked) - whole) <= len(price.parts) * (len(booked) + 1)


@given(st.sampled_from([MACHINE, READY, GROUP]), st.floats(0, 2000), st.floats(0, 2000))
def test_rent_ahead_is_what_will_be_set_aside_until_then(
    price: RentPrice, now_s: float, for_s: float
) -> None:
    """All slices of that time, of which there may be many: a round may be longer than one."""
    ledger = MemoryLedger(10**6 * USD)
    rented = RentedResource(price, ledger, "", 0.0)
    rented.keep(now_s, 1)
    before = ledger.spend()
    ahead = rented.ahead(round((now_s + for_s) * NS))
    rented.keep(now_s + for_s, 1)
    after = ledger.spend()
    held = [one.spent_picodollars + one.reserved_picodollars for one in (before, after)]
    assert held[1] - held[0] == ahead
    assert held[1] == rent_from_start(price, now_s + for_s)
    assert ahead <= rent_going_on(price, for_s)


def test_rents_that_are_paid_while_held_cost_only_that_time_however_often_they_begin() -> None:
    ledger = MemoryLedger(10**6 * USD)
    rents = Rents(Tariff(rents=(MACHINE,), rents_while_held=True), ledger, "")
    assert not rents.is_due(0.0), "nothing is held yet"
    assert rents.ahead(0.0, 3600.0) == 0
    for begin_s, end_s in [(100.0, 190.0), (500.0, 501.5), (600.0, 600.0)]:
        assert rents.begin(begin_s, 1) == ""
        assert rents.pay(end_s, 1) == ""
        rents.suspend(end_s)
        assert ledger.spend().reserved_picodollars == 0
        assert rents.due_ns() is None
    assert rents.begin(700.0, 1) == ""
    rents.end(708.5)
    rents.suspend(709.0)
    exact = Fraction(100, 3600) * (Fraction("0.68") + Fraction("17.92") / 720) * USD
    assert ledger.spend().spent_picodollars == pytest.approx(float(exact), abs=8)
    names = [one.id for one in ledger.settlements()]
    assert len(names) == len(set(names))
    assert not ledger.frozen


def test_held_rents_that_cannot_be_paid_do_not_begin_and_reserve_nothing() -> None:
    ledger = MemoryLedger(total(MACHINE.lines(60 * NS)) - 1)
    rents = Rents(Tariff(rents=(MACHINE, MACHINE), rents_while_held=True), ledger, "")
    assert "60 s of server (c5.4xlarge" in rents.begin(0.0, 1)
    assert ledger.spend().reserved_picodollars == 0
    assert ledger.spend().spent_picodollars == 0
    assert rents.due_ns() is None
