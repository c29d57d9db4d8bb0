"""Money between engine and platform: nothing without a reservation, nothing that stands unpaid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.money.pricing import Tariff, total
from cloud.platforms.simulated_options import SimulatedOptions
from tests.cloud import calls, clouds
from tests.cloud.meter import SimulatedOnMeter
from training.engine.messages import BlobRef, Call, Outcome
from training.engine.ports import Ledger, Reservation, Settlement
from training.engine.reports import Usage

GB_S = 16_666_700
REQUEST = 200_000
# Written and read once for each of two payloads, if they are too large for a call.
STORAGE = 2 * (5_000_000 + 400_000)
WORST = 70 * GB_S + REQUEST + STORAGE
# A c5.4xlarge at $0.68 an hour, and $17.92 a month of 720 hours for its address and disk.
RENT_60_S = 11_333_333_333 + 414_814_815
TARIFF = SimulatedOptions().tariff(PriceBook.load(), 1024)
ACTORS_ONLY = replace(TARIFF, rents=())
USD = 10**12


class CountingLedger(MemoryLedger):
    """A ledger that knows how often it was asked."""

    def __init__(self, limit_picodollars: int) -> None:
        super().__init__(limit_picodollars)
        self.requested: list[str] = []

    def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
        self.requested.append(f"reserve {len(batch)}")
        return super().reserve(batch)

    def settle(self, batch: Sequence[Settlement]) -> None:
        self.requested.append(f"settle {len(batch)}")
        super().settle(batch)


@dataclass
class ScriptedPlatform:
    """Answers with what the test wrote down; its clock is set by the test."""

    answer: Callable[[Call], Outcome]
    clock_s: float = 0.0
    in_flight: dict[str, Call] = field(default_factory=dict)
    closed: bool = False

    def publish(self, version: int, blob: bytes) -> BlobRef:
        return BlobRef(version=version, sha256="", byte_count=len(blob))

    def submit(self, call: Call) -> None:
        self.in_flight[call.id] = call

    def next(self, timeout_s: float) -> Outcome | None:
        if not self.in_flight:
            return None
        return self.answer(self.in_flight.pop(next(iter(self.in_flight))))

    def cancel(self, call_id: str) -> None:
        pass

    def now_s(self) -> float:
        return self.clock_s

    def close(self) -> None:
        self.closed = True


def metered(
    ledger: Ledger, tariff: Tariff = TARIFF, **changes: float
) -> tuple[MeteredPlatform, SimulatedOnMeter]:
    platform = clouds.platform(**changes)
    return MeteredPlatform(platform, ledger, tariff), platform


def rollout(name: str, **changes: Any) -> Call:
    """One second on one core, billed 3 s when cold: 3 GB-s · 1000/1024; at most 10 + 60 s."""
    return calls.rollout(name, None, **{"steps": 10, "memory_mb": 1024, **changes})


def gather(platform: MeteredPlatform, count: int = 1, timeout_s: float = 1000.0) -> dict[str, Outcome]:
    """The next `count` outcomes, asked for every `timeout_s` of platform time; there is none after them."""
    outcomes: dict[str, Outcome] = {}
    for _ in range(1000):
        if len(outcomes) == count:
            break
        outcome = platform.next(timeout_s)
        if outcome is not None:
            assert outcome.call_id not in outcomes
            outcomes[outcome.call_id] = outcome
    assert platform.next(0.0) is None
    return outcomes


def test_an_outcome_knows_its_cost_and_the_ledger_booked_it() -> None:
    ledger = MemoryLedger(USD)
    platform, _ = metered(ledger, ACTORS_ONLY)
    platform.submit(rollout("c"))
    outcome = gather(platform)["c"]
    assert outcome.cost_picodollars == 3 * GB_S + REQUEST
    assert platform.spend().spent_picodollars == outcome.cost_picodollars
    (booked,) = ledger.settlements()
    assert (booked.id, booked.basis, booked.usage["env_steps"]) == ("c", "metered", 10)


def test_reserves_in_one_batch_and_settles_in_batches() -> None:
    ledger = CountingLedger(USD)
    platform, _ = metered(ledger, ACTORS_ONLY)
    for number in range(100):
        platform.submit(rollout(f"c{number:03}"))
    assert ledger.requested == []
    assert len(gather(platform, 100)) == 100
    assert ledger.requested == ["reserve 100", "settle 64", "settle 36"]


def test_a_call_without_room_for_its_worst_case_is_refused_in_words() -> None:
    worst = WORST
    ledger = MemoryLedger(2 * worst + 5)
    platform, inner = metered(ledger, ACTORS_ONLY)
    for name in "abc":
        platform.submit(rollout(name))
    outcomes = gather(platform, 3)
    assert {name: outcome.status for name, outcome in outcomes.items()} == {
        "a": "done",
        "b": "done",
        "c": "refused",
    }
    refused = outcomes["c"]
    assert (refused.reason_code, refused.cost_picodollars) == ("budget", 0)
    assert "$0.00118" in refused.reason
    assert "$0.000000000005" in refused.reason
    assert [billed.call_id for billed in inner.meter.calls] == ["a", "b"]


def test_settled_money_can_be_reserved_again() -> None:
    ledger = MemoryLedger(75 * GB_S + 3 * REQUEST + STORAGE)
    platform, _ = metered(ledger, ACTORS_ONLY)
    for name in ("a", "b", "c"):
        platform.submit(rollout(name))
        assert gather(platform)[name].status == "done"
    # 3 + 1.5 + 1.5 GB-s are gone; 69 are left for a worst case of 70.
    platform.submit(rollout("d"))
    assert gather(platform)["d"].status == "refused"


def test_failed_calls_are_paid_as_billed() -> None:
    ledger = MemoryLedger(USD)
    platform, inner = metered(ledger, ACTORS_ONLY, failure_share=1.0)
    platform.submit(rollout("c"))
    outcome = gather(platform)["c"]
    assert outcome.status == "failed"
    billed_ms = inner.meter.calls[0].billed_ms
    assert outcome.cost_picodollars == round(billed_ms * GB_S / 1000) + REQUEST


def test_a_call_cancelled_before_it_was_sent_reserves_nothing() -> None:
    ledger = CountingLedger(USD)
    platform, inner = metered(ledger, ACTORS_ONLY)
    platform.submit(rollout("c"))
    platform.cancel("c")
    assert gather(platform)["c"].status == "cancelled"
    assert ledger.requested == []
    assert inner.meter.calls == []


def scripted(outcome: dict[str, Any], ledger: Ledger) -> MeteredPlatform:
    def answer(call: Call) -> Outcome:
        return Outcome.model_validate({"call_id": call.id, "started_s": 0, "finished_s": 1, **outcome})

    return MeteredPlatform(ScriptedPlatform(answer), ledger, ACTORS_ONLY)


def test_an_unknown_bill_is_assumed_to_be_the_whole_reservation() -> None:
    ledger = MemoryLedger(USD)
    platform = scripted({"status": "failed"}, ledger)
    platform.submit(rollout("c"))
    assert gather(platform)["c"].cost_picodollars == WORST
    (booked,) = ledger.settlements()
    assert (booked.basis, booked.picodollars) == ("assumed", WORST)


def test_a_bill_above_its_reservation_freezes_the_account() -> None:
    ledger = MemoryLedger(USD)
    platform = scripted({"status": "done", "usage": Usage(billed_s=71.0)}, ledger)
    platform.submit(rollout("c"))
    assert gather(platform)["c"].cost_picodollars == 71 * GB_S + REQUEST
    assert ledger.overrun_picodollars == GB_S - STORAGE
    platform.submit(rollout("d"))
    assert gather(platform)["d"].status == "refused"


def test_what_the_platform_refuses_costs_nothing() -> None:
    ledger = MemoryLedger(USD)
    platform = scripted({"status": "refused"}, ledger)
    platform.submit(rollout("c"))
    assert gather(platform)["c"].cost_picodollars == 0
    assert platform.spend().reserved_picodollars == 0


def test_rent_begins_with_the_first_call_and_is_paid_by_the_minute() -> None:
    ledger = MemoryLedger(USD)
    platform, inner = metered(ledger)
    assert platform.spend().reserved_picodollars == 0
    platform.submit(calls.update("u", (), seed=600, deadline_s=900.0))
    assert gather(platform)["u"].status == "done"
    # The server took 60 s to start and 60 s to learn: the second minute has ended when the outcome comes.
    platform.close()
    rent = [booked for booked in ledger.settlements() if booked.id.startswith("rent")]
    assert [booked.id for booked in rent] == [f"rent-learner-{n}" for n in range(1, len(rent) + 1)]
    server_ns = (inner.meter.server_to_ns or 0) - (inner.meter.server_from_ns or 0)
    assert server_ns == pytest.approx(120 * 10**9, abs=10**5)
    total = sum(booked.picodollars for booked in rent)
    assert total == pytest.approx(2 * RENT_60_S, abs=RENT_60_S * 2e-6)
    assert rent[0].lines[0].sku == "c5.4xlarge"
    assert platform.spend().reserved_picodollars == 0


def test_the_next_minute_is_reserved_before_the_running_one_ends() -> None:
    class Watching(MemoryLedger):
        def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
            reserved_at.extend((item.id, inner.now_s()) for item in batch if item.kind == "rent")
            return super().reserve(batch)

    reserved_at: list[tuple[str, float]] = []
    platform, inner = metered(Watching(USD))
    platform.submit(calls.update("u", (), seed=1200, deadline_s=900.0))
    gather(platform, timeout_s=7.0)
    assert reserved_at == [
        ("rent-learner-1", 0.0),
        ("rent-learner-2", 55.0),
        ("rent-learner-3", 115.0),
        ("rent-learner-4", 175.0),
    ]


def test_rent_that_does_not_fit_stops_everything_and_is_paid_to_the_moment() -> None:
    worst = WORST
    ledger = MemoryLedger(2 * RENT_60_S + worst)
    platform, inner = metered(ledger)
    platform.submit(calls.update("u", (), seed=3000, deadline_s=900.0))
    platform.submit(rollout("r", steps=500, deadline_s=60.0))
    outcomes = gather(platform, 2, timeout_s=11.0)
    # Start-up 60 s and 300 s of work: the third minute is asked for at 115 s and refused.
    stopped = outcomes["u"]
    assert (stopped.status, stopped.reason_code) == ("cancelled", "budget")
    assert "60 s of learner (c5.4xlarge + paper.vm_overhead) would cost $0.0117" in stopped.reason
    assert inner.now_s() == 115.0
    assert inner.meter.server_to_ns == 115 * 10**9
    rent = sum(booked.picodollars for booked in ledger.settlements() if booked.id.startswith("rent"))
    assert rent == RENT_60_S + total(TARIFF.rents[0].lines(55 * 10**9))
    platform.submit(rollout("later"))
    later = gather(platform)["later"]
    assert (later.status, later.reason_code) == ("refused", "budget")
    platform.close()
    assert platform.spend().reserved_picodollars == 0


def test_a_learner_that_cannot_be_rented_for_a_minute_is_not_started() -> None:
    ledger = MemoryLedger(RENT_60_S - 1)
    platform, inner = metered(ledger)
    platform.submit(calls.update("u", ()))
    assert gather(platform)["u"].status == "refused"
    assert inner.meter.server_from_ns is None
    assert platform.spend().spent_picodollars == 0


def test_a_wall_clock_that_ran_on_is_paid_afterwards() -> None:
    """No look for 150 s: the minutes that passed are reserved and booked at the next look."""
    inner = ScriptedPlatform(lambda call: Outcome(call_id=call.id, status="done", started_s=0, finished_s=0))
    ledger = MemoryLedger(USD)
    server = TARIFF.rents[0]
    platform = MeteredPlatform(inner, ledger, Tariff(rents=(server,)))
    platform.publish(0, b"")
    inner.clock_s = 150.0
    platform.next(1.0)
    assert platform.spend().spent_picodollars == 2 * RENT_60_S
    inner.clock_s = 160.0
    platform.close()
    platform.close()
    assert inner.closed
    assert platform.spend().spent_picodollars == 2 * RENT_60_S + total(server.lines(40 * 10**9))
    assert not ledger.frozen


def test_close_books_what_flew_and_gives_back_the_rest() -> None:
    ledger = MemoryLedger(USD)
    platform, _ = metered(ledger)
    platform.submit(rollout("r", steps=500))
    platform.submit(calls.update("u", (), seed=100))
    assert platform.next(3.0) is None
    platform.submit(rollout("never sent"))
    platform.close()
    booked = {settled.id: settled.picodollars for settled in ledger.settlements()}
    assert booked["r"] == 3 * GB_S + REQUEST
    assert booked["rent-learner-1"] == total(TARIFF.rents[0].lines(3 * 10**9))
    assert "never sent" not in booked
    spend = platform.spend()
    assert spend.reserved_picodollars == 0
    assert spend.spent_picodollars == sum(booked.values())


def test_ids_carry_the_prefix_of_their_run() -> None:
    ledger = MemoryLedger(USD)
    inner = clouds.platform()
    platform = MeteredPlatform(inner, ledger, TARIFF, id_prefix="run2-")
    platform.submit(calls.update("u", ()))
    platform.next(1000.0)
    platform.close()
    assert {booked.id for booked in ledger.settlements()} == {
        "run2-u",
        "run2-rent-learner-1",
        "run2-rent-learner-2",
    }
