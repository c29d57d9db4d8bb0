"""A budget holds: whatever happens on the simulated cloud, its bill is never above it.

The oracle is the simulated cloud's own meter, priced here in fractions, apart from tariff and ledger.
"""

from __future__ import annotations

import random
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloud.ledger import MemoryLedger
from cloud.meter import Meter
from cloud.metering import MeteredPlatform
from cloud.price_book import PriceBook
from cloud.simulated import SimulatedOptions
from tests.cloud import calls, clouds
from tests.cloud.instant_executor import InstantExecutor
from training.messages import Outcome

_OPTIONS = SimulatedOptions(seed=11)
_TARIFF = _OPTIONS.tariff(PriceBook.load(), 1024)


def true_bill(meter: Meter) -> Fraction:
    """What the cloud would charge, in picodollars, without any rounding."""
    gb_s = sum(Fraction(call.billed_ms * call.memory_mb, 1000 * 1024) for call in meter.calls)
    bill = gb_s * 16_666_700 + len(meter.calls) * 200_000
    if meter.server_from_ns is not None and meter.server_to_ns is not None:
        hours = Fraction(meter.server_to_ns - meter.server_from_ns, 3600 * 10**9)
        bill += hours * (680_000_000_000 + Fraction(17_920_000_000_000, 720))
    return Fraction(bill)


class Job:
    """Rounds of rollouts and updates as an engine sends them: retries, stragglers cancelled, stops when refused."""

    def __init__(self, seed: int, budget_picodollars: int, **chances: float) -> None:
        self.random = random.Random(seed)
        self.inner = clouds.platform(
            options=_OPTIONS,
            executor=InstantExecutor(pick=self.random.randrange),
            cold_sigma=0.4,
            straggler_sigma=0.4,
            **chances,
        )
        self.ledger = MemoryLedger(budget_picodollars)
        self.platform = MeteredPlatform(self.inner, self.ledger, _TARIFF)
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
        flying = {name for name in self.sent if name not in {outcome.call_id for outcome in self.heard}}
        while flying:
            outcome = self.platform.next(self.random.choice([0.1, 1.0, 30.0]))
            self.check()
            if outcome is None:
                if self.random.random() < 0.1:
                    self.platform.cancel(self.random.choice(sorted(flying)))
                continue
            flying.remove(outcome.call_id)
            self.heard.append(outcome)
            self.over = self.over or outcome.status == "refused"
            if outcome.status == "failed" and not self.over and self.random.random() < 0.5:
                retry = f"{outcome.call_id}-again"
                self.send_rollout(retry, 0)
                flying.add(retry)

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
)
def test_spend_is_never_above_the_budget(
    seed: int, budget_usd: float, rounds: int, actors: int, **chances: float
) -> None:
    budget = int(budget_usd * 10**12)
    job = Job(seed, budget, **chances)
    job.run(rounds, actors)
    bill = true_bill(job.inner.meter)
    booked = job.ledger.spend()
    lines = sum(len(settled.lines) for settled in job.ledger.settlements())
    assert bill <= budget + lines
    assert booked.spent_picodollars <= budget
    # The ledger and the cloud agree, but for the rounding of each line.
    assert abs(booked.spent_picodollars - bill) <= Fraction(lines, 2)
    assert booked.reserved_picodollars == 0
    assert not job.ledger.frozen
    names = [outcome.call_id for outcome in job.heard]
    assert len(names) == len(set(names))


def test_schedules_really_meet_the_budget_and_faults() -> None:
    """The property above would be empty if no schedule ended at its budget, failed, came late or was cancelled."""
    seen: set[str] = set()
    for seed in range(20):
        job = Job(seed, 30 * 10**9, failure_share=0.3, late_share=0.3)
        job.run(4, 5)
        seen |= {f"{outcome.status} {outcome.reason_code}".strip() for outcome in job.heard}
    assert {"done", "failed function_failed", "failed deadline", "refused budget", "cancelled budget"} <= seen
    assert "cancelled cancelled" in seen
