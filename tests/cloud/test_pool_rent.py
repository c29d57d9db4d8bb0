"""Actors of a pool: rented before they are ordered, given up when they stay idle, never more than can be paid."""

from __future__ import annotations

from typing import Any

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.tariffs import Purchase, tariff_of
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.timing.virtual_time import NS
from tests.cloud import calls, clouds
from tests.cloud.meter import SimulatedOnMeter
from training.engine.messages import Call, Outcome

CONTAINERS = {"core_sku": "aci.vcpu.linux", "memory_sku": "aci.memory.linux"}
USD = 10**12
# One core and one GB for an hour, and for the minute that a slice of rent lasts.
MINUTE = 44_950_000_000 // 60
SERVER_MINUTE = 51_000_000_000 + 414_814_815


def containers(limit: int, **changes: Any) -> tuple[MeteredPlatform, SimulatedOnMeter, MemoryLedger]:
    profile = clouds.profile(pool=CONTAINERS, **changes)
    tariff = tariff_of(
        profile, Purchase("server", "Standard_NC6s_v3", "eastus", memory_mb=1024), PriceBook.load()
    )
    inner = clouds.platform(pool=CONTAINERS, **changes)
    ledger = MemoryLedger(limit)
    return MeteredPlatform(inner, ledger, tariff), inner, ledger


def rollout(name: str, steps: int = 10) -> Call:
    return calls.rollout(name, None, steps=steps, deadline_s=900.0)


def gather(platform: MeteredPlatform, count: int) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    while len(outcomes) < count:
        outcome = platform.next(1000.0)
        if outcome is not None:
            outcomes[outcome.call_id] = outcome
    return outcomes


def rents(ledger: MemoryLedger) -> dict[str, float]:
    """Seconds paid by resource."""
    paid: dict[str, float] = {}
    for one in ledger.settlements():
        if "resource" in one.usage:
            name = str(one.usage["resource"])
            stood_s = one.usage["to_s"] - one.usage["from_s"]  # type: ignore[operator]
            paid[name] = paid.get(name, 0.0) + stood_s
    return {name: round(stood_s, 3) for name, stood_s in paid.items()}


def test_a_pool_has_an_actor_for_each_call_and_gives_up_what_stays_idle() -> None:
    platform, inner, ledger = containers(USD, idle_s=50.0)
    for name in "abc":
        platform.submit(rollout(name))
    # Ordered at 0, ready at 20 s, then 0.5 + 1 + 0.25.
    assert {round(one.finished_s, 3) for one in gather(platform, 3).values()} == {21.75}
    platform.submit(rollout("long", steps=2000))
    gather(platform, 1)
    # 200 s of work from 22.25 s on. The other two were last needed at 21.75 s and stood 50 s more.
    platform.close()
    stood_s = [(from_ns / NS, round(to_ns / NS, 3)) for from_ns, to_ns in inner.meter.actors_stood_ns()]
    assert stood_s == [(0.0, 222.5), (0.0, 71.75), (0.0, 71.75)]
    assert rents(ledger) == {"learner": 222.5, "actor-1": 222.5, "actor-2": 71.75, "actor-3": 71.75}


def test_calls_wait_for_the_actors_that_the_budget_allows() -> None:
    """Room for the server and two actors: the first renewals come at 55 s, when all is done."""
    platform, inner, ledger = containers(SERVER_MINUTE + 2 * MINUTE + MINUTE // 2)
    for name in "abcd":
        platform.submit(rollout(name))
    outcomes = gather(platform, 4)
    assert [round(outcomes[name].finished_s, 3) for name in "abcd"] == [21.75, 21.75, 23.25, 23.25]
    platform.close()
    assert len(inner.meter.actors_stood_ns()) == 2
    assert not ledger.frozen


def test_without_money_for_one_actor_calls_are_refused() -> None:
    platform, inner, _ = containers(SERVER_MINUTE + MINUTE // 2)
    platform.submit(rollout("a"))
    (outcome,) = gather(platform, 1).values()
    assert (outcome.status, outcome.reason_code) == ("refused", "budget")
    assert "even one actor" in outcome.reason
    assert inner.meter.actors_stood_ns() == []


def test_when_an_actors_next_minute_cannot_be_paid_everything_stops() -> None:
    platform, inner, ledger = containers(SERVER_MINUTE + MINUTE + MINUTE // 2)
    platform.submit(rollout("a", steps=5000))
    (outcome,) = gather(platform, 1).values()
    assert (outcome.status, outcome.reason_code, outcome.finished_s) == ("cancelled", "budget", 55.0)
    platform.close()
    assert ledger.spend().reserved_picodollars == 0
    assert inner.meter.actors_stood_ns() == [(0, 55_000_000_000)]
