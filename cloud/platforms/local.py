"""This machine as a platform: worker processes and the wall clock."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Literal

from cloud.actor.blobs import BlobShelf, MissingWeights
from cloud.failures import Failure
from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import Tariff
from cloud.platforms.model import Access
from cloud.platforms.outcomes import call_outcome
from cloud.platforms.own_machines import OwnMachines, rents
from cloud.timing.forecasting.this_machine import machines_like_this_one
from cloud.timing.numbers.profile import Profile
from cloud.workers.execution import Execution
from cloud.workers.executor import Executor, LocalExecutor, cores
from training.base_model import setting
from training.engine.messages import BlobRef, Call, Outcome
from training.tasks.training import Training


class LocalOptions(OwnMachines):
    """This machine: worker processes here do the calls. It costs nothing unless you give it a price."""

    kind: Literal["local"] = "local"
    workers: int | None = setting(
        None, "Workers", "Processes that sample; empty means one for each core.", ge=1, le=64, advanced=True
    )
    learner_usd_per_hour: Decimal = setting(
        Decimal(0),
        "Price of the learner",
        "Rent from the job's start to its end. Your own machine costs nothing unless you say so.",
        ge=0,
        le=10_000,
        unit="USD/h",
        advanced=True,
    )
    worker_usd_per_hour: Decimal = setting(
        Decimal(0),
        "Price of a worker",
        "Rent of each worker from the job's start to its end.",
        ge=0,
        le=10_000,
        unit="USD/h",
        advanced=True,
    )

    place: ClassVar[str] = "this machine"
    report_name: ClassVar[str] = "This machine"
    computes_here: ClassVar[bool] = True

    @property
    def worker_count(self) -> int:
        return self.workers or cores()

    @property
    def actor_slots(self) -> int:
        return self.worker_count

    def forecast_profile(self, training: Training) -> Profile:
        """Return this machine. Its processes share the cores with the learner, unless the loop makes them wait."""
        busy = self.worker_count + (training.loop.collects != "before learning")
        return machines_like_this_one(self.worker_count, min(1.0, cores() / busy))

    def processes_here(self, actors: int) -> int:
        return self.worker_count

    def open_for_job(self, access: Access) -> LocalPlatform:
        return self.open()

    def open(self) -> LocalPlatform:
        return LocalPlatform(self)

    def tariff(self, book: PriceBook, memory_mb: int) -> Tariff:
        """Return the rent of what has a price. Calls themselves cost nothing."""
        workers = self.worker_usd_per_hour * self.worker_count
        return Tariff(rents=rents(learner=self.learner_usd_per_hour, workers=workers))


@dataclass(frozen=True)
class _Flight:
    call: Call
    submitted_s: float


class LocalPlatform:
    """Implements `training.engine.ports.Platform` with the executor's processes on the wall clock."""

    def __init__(self, options: LocalOptions, *, executor: Executor | None = None) -> None:
        self._executor = executor or LocalExecutor(options.worker_count)
        self._shelf = BlobShelf()
        self._flights: dict[str, _Flight] = {}
        self._ended: deque[Execution] = deque()
        self._closed = False

    def publish(self, version: int, blob: bytes) -> BlobRef:
        return self._shelf.publish(version, blob, (flight.call for flight in self._flights.values()))

    def submit(self, call: Call) -> None:
        self._flights[call.id] = _Flight(call, self.now_s())
        if self._closed:
            self._ended.append(Execution(call.id, Failure("closed", "the platform is closed")))
            return
        try:
            self._executor.submit(call, self._shelf.weights_of(call), call.deadline_s)
        except MissingWeights as error:
            self._ended.append(Execution(call.id, Failure("weights", str(error))))

    def next(self, timeout_s: float) -> Outcome | None:
        if not self._flights:
            return None
        execution = self._ended.popleft() if self._ended else self._executor.take(timeout_s)
        if execution is None:
            return None
        return self._outcome(self._flights.pop(execution.call_id), execution)

    def cancel(self, call_id: str) -> None:
        if call_id in self._flights and not self._closed:
            self._executor.cancel(call_id)

    def now_s(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._executor.close()
        self._flights.clear()
        self._ended.clear()

    def _outcome(self, flight: _Flight, execution: Execution) -> Outcome:
        return call_outcome(
            flight.call,
            flight.submitted_s,
            flight.submitted_s + execution.waited_s + execution.run_s + execution.transfer_s,
            execution.result,
            cold_start=execution.cold,
            startup_s=execution.waited_s,
            run_s=execution.run_s,
            transfer_s=execution.transfer_s,
            billed_s=execution.run_s,
        )
