"""Short real runs on a simulated cloud of round numbers, with the record of their work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cloud import failures
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.work_file import RunSegment
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.place import TimingPlace
from cloud.workers.execution import Execution
from tests.cloud import clouds
from tests.training.runs import events_of
from training.engine.messages import Call, Event
from training.engine.ports import Control, Settlement
from training.functions.body import WarmCache
from training.functions.run import execute
from training.tasks.training import Training

CHANCE: dict[str, float] = {
    "cold_sigma": 0.4,
    "straggler_sigma": 0.4,
    "failure_share": 0.1,
    "late_share": 0.1,
    "late_s": 3.0,
    "concurrent": 5.0,
    "coordinator_ms": 7.0,
    "coordinator_mbit_per_s": 4.0,
    "call_ms": 3.0,
    "update_us_per_megabyte": 1e6,
    "starts_per_s": 2.0,
    "starts_at_once": 2.0,
    "environment_step_fallback_us": 20_000.0,
}


class RealExecutor:
    """Runs bodies here and now, when they are asked for. Those in `broken` raise."""

    def __init__(self, broken: Callable[[Call], bool] = lambda call: False) -> None:
        self._broken = broken
        self._waiting: list[tuple[Call, bytes | None]] = []
        self._warmth = WarmCache()

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None:
        self._waiting.append((call, weights))

    def take(self, timeout_s: float) -> Execution | None:
        if not self._waiting:
            return None
        call, weights = self._waiting.pop(0)
        if self._broken(call):
            return Execution(call.id, failures.Failure("error", "ValueError: made to fail"))
        return Execution(call.id, execute(call, weights, self._warmth))

    def cancel(self, call_id: str) -> None:
        pass

    def close(self) -> None:
        self._waiting.clear()


@dataclass
class Recorded:
    """A run: what the engine told, the time at its end, what the ledger says, and its record."""

    events: list[Event]
    end_s: float
    spent_picodollars: int
    segment: RunSegment
    place: TimingPlace
    seed: int


def record(
    spec: Training,
    *,
    options: SimulatedOptions | None = None,
    pool: dict[str, Any] | None = None,
    broken: Callable[[Call], bool] = lambda call: False,
    control: Callable[[], Control] = Control,
    budget_usd: float = 1000,
    **changes: float,
) -> Recorded:
    options = options or SimulatedOptions()
    profile, stack = clouds.profile(pool=pool, **changes), clouds.stack(**changes)
    inner = SimulatedPlatform(options, profile=profile, stack=stack, executor=RealExecutor(broken))
    place = TimingPlace(profile, stack, options, PriceBook.load())
    settled: list[Settlement] = []
    ledger = MemoryLedger(int(budget_usd * 10**12), on_settled=settled.append)
    platform = MeteredPlatform(inner, ledger, place.tariff(spec.memory_mb))
    events = events_of(spec, platform, control=control)
    platform.close()
    document = {"training": spec.model_dump(mode="json"), "platform": options.model_dump(mode="json")}
    segment = RunSegment.of(document, settled)
    spent = ledger.spend().spent_picodollars
    return Recorded(events, platform.now_s(), spent, segment, place, options.seed)
