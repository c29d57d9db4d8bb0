"""A budget holds: whatever happens on the simulated cloud, its bill is never above it.

The oracle is the simulated cloud's own meter, priced here in fractions, apart from tariff and ledger. They agree to the
last picodollar.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.tariffs import Purchase, tariff_of
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.money.pricing import Tariff
from cloud.platforms.simulated_options import SimulatedOptions
from tests.cloud import calls, clouds
from tests.cloud.instant_executor import InstantExecutor
from tests.cloud.meter import Meter
from training.engine.messages import Outcome

CONTAINERS = {"actors_per_unit": 2, "core_sku": "aci.vcpu.linux", "memory_sku": "aci.memory.linux"}
MACHINES = {"units": 2, "actors_per_unit": 2, "machine_sku": "c5.4xlarge"}
_HOUR_NS = 3600 * 10**9
_EXTRAS = Fraction(17_920_000_000_000, 720)


@dataclass(frozen=True)
class Kind:
    """One way to buy a cloud, and what its learner's machine and its actors cost an hour, in picodollars a line."""

    options: SimulatedOptions
    learner_hour: tuple[Fraction, ...]
    pool: dict[str, Any] | None = None
    actor_hour: tuple[Fraction, ...] = ()
    rented_together: int = 1
    region: str = "us-east-1"
    learner_sku: str = "c5.4xlarge"

    def tariff(self) -> Tariff:
        profile = clouds.profile(pool=self.pool, idle_s=20.0)
        chosen = self.options
        purchase = Purchase(chosen.learner, self.learner_sku, self.region, 1024, chosen.provisioned)
        return tariff_of(profile, purchase, PriceBook.load())


_C5 = Fraction(680_000_000_000)
KINDS = {
    "functions": Kind(SimulatedOptions(seed=11), (_C5, _EXTRAS)),
    "kept warm, learner a function": Kind(SimulatedOptions(seed=11, learner="function", provisioned=2), _C5),
    "containers": Kind(
        SimulatedOptions(seed=11),
        (Fraction(3_060_000_000_000), _EXTRAS),
        pool=CONTAINERS,
        actor_hour=(Fraction(40_500_000_000), Fraction(4_450_000_000)),
        region="eastus",
        learner_sku="Standard_NC6s_v3",
    ),
    # Two machines with two actors each, on one bill.
    "machines": Kind(
        SimulatedOptions(seed=11),
        (_C5, _EXTRAS),
        pool=MACHINES,
        actor_hour=(2 * _C5, 2 * _EXTRAS),
        rented_together=4,
    ),
}


def true_bill(meter: Meter, kind: Kind) -> int:
    """What the cloud would charge, in picodollars: each call and each minute of rent rounded half up once a line."""
    bill = 0
    for call in meter.calls:
        gb_s = Fraction(call.billed_ms * call.memory_mb, 1000 * 1024)
        bill += _rounded(gb_s * (9_722_200 if call.provisioned else 16_666_700)) + 200_000
    for update in meter.updates:
        bill += _rounded(Fraction(update.billed_ms, 3_600_000) * kind.learner_hour[0])
    if meter.server_from_ns is not None and meter.server_to_ns is not None:
        bill += _rent(meter.server_from_ns, meter.server_to_ns, kind.learner_hour)
    for from_ns, to_ns in meter.actors_stood_ns()[:: kind.rented_together]:
        bill += _rent(from_ns, to_ns, kind.actor_hour)
    if kind.options.provisioned and meter.now_ns:
        started = -(-meter.now_ns // (300 * 10**9))
        # Two functions of 1 GB, five minutes each time.
        bill += started * 300 * 2 * 4_166_700
    return bill


def _rent(from_ns: int, to_ns: int, hour: tuple[Fraction, ...]) -> int:
    minutes = range(from_ns, to_ns, 60 * 10**9)
    stretches = [min(begin + 60 * 10**9, to_ns) - begin for begin in minutes]
    return sum(_rounded(Fraction(stretch, _HOUR_NS) * part) for stretch in stretches for part in hour)


def _rounded(amount: Fraction) -> int:
    return int(amount + Fraction(1, 2))


class Job:
    """Rounds of rollouts and updates as an engine sends them: retries, stragglers cancelled, stops when refused."""

    def __init__(self, seed: int, budget_picodollars: int, kind: Kind, **chances: float) -> None:
        self.random = random.Random(seed)
        self.inner = clouds.platform(
            options=kind.options,
            pool=kind.pool,
            executor=InstantExecutor(pick=self.random.randrange),
            cold_sigma=0.4,
            straggler_sigma=0.4,
            **chances,
        )
        self.ledger = MemoryLedger(budget_picodollars)
        self.platform = MeteredPlatform(self.inner, self.ledger, kind.tariff())
        self.over = False
        self.sent: set[str] = set()
        self.heard: list[Outcome] = []

    def run(self, rounds: int, actors: int) -> None:
        for round_no in range(rounds):
            self.platform.publish(round_no, b"weights")
            for slot in range(actors):
                self.send_rollout(f"r{round_no}-s{slot}", round_no)
            self.gather(f"r{round_no}")
            if not self.over:
                name = f"r{round_no}-update"
                self.sent.add(name)
                minibatches = self.random.choice([1, 50, 500])
                self.platform.submit(
                    calls.update(name, (), seed=minibatches, round_no=round_no, deadline_s=900.0)
                )
                self.gather(name)
            if self.over:
                break
        if self.random.random() < 0.5:
            self.send_rollout("left in flight", rounds)
            self.platform.next(0.5)
        self.platform.close()

    def send_rollout(self, name: str, round_no: int) -> None:
        self.sent.add(name)
        self.platform.submit(
            calls.rollout(
                name,
                None,
                steps=self.random.choice([1, 10, 100]),
                deadline_s=self.random.choice([0.5, 5.0, 60.0]),
                memory_mb=self.random.choice([128, 1000, 3008]),
                round_no=round_no,
            )
        )

    def gather(self, what: str) -> None:
        in_flight = {name for name in self.sent if name not in {outcome.call_id for outcome in self.heard}}
        while in_flight:
            outcome = self.platform.next(self.random.choice([0.1, 1.0, 30.0]))
            self.check()
            if outcome is None:
                if self.random.random() < 0.1:
                    self.platform.cancel(self.random.choice(sorted(in_flight)))
                continue
            in_flight.remove(outcome.call_id)
            self.heard.append(outcome)
            self.over = self.over or outcome.status == "refused"
            if outcome.status == "failed" and not self.over and self.random.random() < 0.5:
                retry = f"{outcome.call_id}-again"
                self.send_rollout(retry, 0)
                in_flight.add(retry)

    def check(self) -> None:
        spend = self.ledger.spend()
        assert spend.spent_picodollars + spend.reserved_picodollars <= spend.limit_picodollars


@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    budget_usd=st.one_of(st.floats(0.0001, 0.02), st.floats(0.01, 0.2)),
    rounds=st.integers(1, 4),
    actors=st.integers(1, 6),
    failure_share=st.sampled_from([0.0, 0.1, 0.5]),
    late_share=st.sampled_from([0.0, 0.3]),
    concurrent=st.sampled_from([1.0, 3.0, 1000.0]),
    kind=st.sampled_from(list(KINDS)),
)
def test_spend_is_never_above_the_budget(
    seed: int, budget_usd: float, rounds: int, actors: int, kind: str, **chances: float
) -> None:
    budget = int(budget_usd * 10**12)
    job = Job(seed, budget, KINDS[kind], **chances)
    job.run(rounds, actors)
    bill = true_bill(job.inner.meter, KINDS[kind])
    booked = job.ledger.spend()
    assert bill <= budget
    assert booked.spent_picodollars == bill
    assert booked.reserved_picodollars == 0
    assert not job.inner.in_flight
    assert not job.ledger.frozen
    names = [outcome.call_id for outcome in job.heard]
    assert len(names) == len(set(names))


def test_schedules_really_meet_the_budget_and_faults() -> None:
    """The property above would be empty if no schedule ended at its budget, failed, came late or was cancelled."""
    seen: set[str] = set()
    for seed in range(20):
        job = Job(seed, 30 * 10**9, KINDS["functions"], failure_share=0.3, late_share=0.3)
        job.run(4, 5)
        seen |= {f"{outcome.status} {outcome.reason_code}".strip() for outcome in job.heard}
    assert {"done", "failed function_failed", "failed deadline", "refused budget", "cancelled budget"} <= seen
    assert "cancelled cancelled" in seen
