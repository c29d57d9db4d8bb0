"""A cloud in virtual time: the real work is done here, its time and price come from a profile and a seed.

A thousand "functions" run on two cores: bodies are executed for real, in any order, and each outcome is handed over
at the virtual moment at which the profile says it would have come. The clock moves only in `next`.
"""

from __future__ import annotations

import heapq
import time
from typing import Literal

from pydantic import Field, field_validator

from cloud import profile as profiles
from cloud import timing
from cloud.blobs import BlobShelf, MissingWeights
from cloud.executor import Executor, LocalExecutor
from cloud.failures import Failure
from cloud.fleet import Fleet, LearnerServer
from cloud.flight import Flight
from cloud.meter import Meter
from cloud.price_book import PriceBook, UnknownSku
from cloud.pricing import FunctionPrice, Part, Standing, Tariff
from cloud.profile import Profile
from cloud.timing import NS, Timing, to_ns
from training.frozen import Frozen
from training.functions.body import Result
from training.messages import BlobRef, Call, Outcome

_REAL_LIMIT_S = 900.0
_PATIENCE_S = 1.0


class SimulatedOptions(Frozen):
    """Simulated cloud: real training here, with the time and the bill that a cloud's functions would have had."""

    kind: Literal["simulated"] = "simulated"
    profile: str = Field(
        "lambda",
        title="Profile",
        description="The timing model: start-up, speed, failures. Every number has a source.",
    )
    learner: Literal["server"] = Field(
        "server",
        title="Learner's place",
        description="A machine of its own, paid from its start to the end of the job.",
        json_schema_extra={"advanced": True},
    )
    learner_sku: str = Field("c5.4xlarge", title="Learner's machine", json_schema_extra={"advanced": True})
    region: str = Field("us-east-1", title="Region", json_schema_extra={"advanced": True})
    seed: int = Field(
        0,
        ge=0,
        le=2**31 - 1,
        title="Seed of the cloud",
        description="Start-up times, stragglers and failures are drawn from it.",
        json_schema_extra={"advanced": True},
    )
    workers: int | None = Field(
        None,
        ge=1,
        le=64,
        title="Workers",
        description="Processes on this machine that do the real work; empty means one for each core.",
        json_schema_extra={"advanced": True},
    )

    @field_validator("profile")
    @classmethod
    def known_profile(cls, value: str) -> str:
        profiles.load(value)
        return value

    @field_validator("learner_sku")
    @classmethod
    def priced_machine(cls, value: str) -> str:
        try:
            row = PriceBook.load().row(value)
        except UnknownSku as error:
            raise ValueError(str(error)) from None
        if row.unit != "h":
            raise ValueError(f"{value} is not a machine: it is priced per {row.unit}")
        return value

    def open(self) -> SimulatedPlatform:
        return SimulatedPlatform(self)

    def tariff(self, book: PriceBook) -> Tariff:
        """Functions by started millisecond and memory, start-up included; the learner's server by time."""
        cap_s = profiles.load(self.profile).start.cold_cap_s.value
        function = FunctionPrice(
            duration=book.row("lambda.duration.x86", self.region),
            request=book.row("lambda.request", self.region),
            start_cap_s=cap_s,
        )
        server = Standing("learner", (Part(book.row(self.learner_sku, self.region)),), "learner_call")
        return Tariff(actor=function, learner=None, standing=(server,))


class SimulatedPlatform:
    """Implements `training.ports.Platform` in virtual time, from 0.

    `next` first waits until all calls in flight have really run. If that takes longer than `patience_s` of real time
    it returns None without moving the clock, so that its caller can look after other things and ask again.
    """

    def __init__(
        self,
        options: SimulatedOptions,
        *,
        profile: Profile | None = None,
        executor: Executor | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._profile = profile or profiles.load(options.profile)
        self._seed = options.seed
        self._executor = executor or LocalExecutor(options.workers)
        self._patience_s = patience_s
        self._shelf = BlobShelf()
        self._now_ns = 0
        self._flights: dict[str, Flight] = {}
        self._unscheduled: list[Flight] = []
        self._running = 0
        self._by_finish: list[tuple[int, str]] = []
        start, account = self._profile.start, self._profile.account
        self._fleet = Fleet(int(account.concurrent_functions.value), to_ns(start.keep_warm_s.value))
        self._server = LearnerServer(to_ns(self._profile.learner.server_start_s.value))
        self._closed = False
        self.meter = Meter()

    def publish(self, version: int, blob: bytes) -> BlobRef:
        return self._shelf.publish(version, blob)

    def submit(self, call: Call) -> None:
        flight = self._flights[call.id] = Flight(call, self._now_ns, self._now_ns)
        self._unscheduled.append(flight)
        if self._closed:
            flight.result = Failure("closed", "the platform is closed")
            return
        if call.where == "learner":
            self._server.order(self._now_ns)
            self.meter.server_from_ns = self._server.ordered_ns
        try:
            # The call's own deadline is virtual; the real limit only catches bodies that hang.
            self._executor.submit(
                call, self._shelf.weights_of(call), max(_REAL_LIMIT_S, 10 * call.deadline_s)
            )
            self._running += 1
        except MissingWeights as error:
            flight.result = Failure("weights", str(error))

    def next(self, timeout_s: float) -> Outcome | None:
        if not self._flights or not self._collect():
            return None
        self._schedule()
        flight = self._earliest()
        horizon_ns = self._now_ns + to_ns(timeout_s)
        if flight.finish_ns > horizon_ns:
            self._now_ns = horizon_ns
            return None
        heapq.heappop(self._by_finish)
        del self._flights[flight.call.id]
        self._now_ns = max(self._now_ns, flight.finish_ns)
        outcome = flight.outcome()
        self.meter.add(flight.call, outcome.usage)
        return outcome

    def cancel(self, call_id: str) -> None:
        flight = self._flights.get(call_id)
        if flight is None or flight.cancelled:
            return
        if not flight.scheduled:
            # Not scheduled means submitted at this very moment: nothing of it can have run.
            flight.cancelled = True
            if flight.result is None:
                self._executor.cancel(call_id)
            return
        if flight.finish_ns <= self._now_ns:
            return
        flight.cancelled = True
        self._free(flight)
        flight.finish_ns = self._now_ns
        heapq.heappush(self._by_finish, (flight.finish_ns, call_id))

    def now_s(self) -> float:
        return self._now_ns / NS

    def close(self) -> None:
        """Stop everything at this virtual moment; what ran until now is on the meter."""
        if self._closed:
            return
        self._closed = True
        for call_id in list(self._flights):
            self.cancel(call_id)
        self._executor.close()
        self.meter.server_to_ns = self._now_ns if self.meter.server_from_ns is not None else None
        for flight in self._flights.values():
            self.meter.add(flight.call, flight.usage())
        self._flights.clear()
        self._unscheduled.clear()
        self._by_finish.clear()

    def _collect(self) -> bool:
        """Wait for the real work of all calls in flight; False when patience ran out first."""
        end_s = time.monotonic() + self._patience_s
        while self._running:
            execution = self._executor.take(max(0.0, end_s - time.monotonic()))
            if execution is None:
                return False
            self._running -= 1
            flight = self._flights.get(execution.call_id)
            if flight is not None:
                flight.result = execution.result
        return True

    def _schedule(self) -> None:
        """Give each new call its turn and its times, in the order of submission."""
        for flight in self._unscheduled:
            flight.scheduled = True
            if not flight.cancelled:
                self._schedule_one(flight)
            heapq.heappush(self._by_finish, (flight.finish_ns, flight.call.id))
        self._unscheduled.clear()

    def _schedule_one(self, flight: Flight) -> None:
        if flight.call.where == "learner":
            self._schedule_update(flight)
        else:
            self._schedule_function(flight)

    def _schedule_function(self, flight: Flight) -> None:
        call = flight.call
        begin_ns = self._fleet.turn(flight.submitted_ns)
        warm = self._fleet.take(begin_ns, call.memory_mb)
        flight.cold = warm is None
        draws = timing.draw(self._seed, call.id)
        times = timing.function_timing(
            self._profile, call, flight.work(), sum(flight.byte_counts()), flight.cold, draws
        )
        survives = not times.fault and isinstance(flight.result, Result)
        until_ns = begin_ns + times.billed_ns
        flight.instance = self._fleet.occupy(warm, call.memory_mb, until_ns, survives)
        self._set_times(flight, begin_ns, times)

    def _schedule_update(self, flight: Flight) -> None:
        begin_ns = self._server.turn(flight.submitted_ns)
        times = timing.update_timing(self._profile, flight.call, flight.work(), sum(flight.byte_counts()))
        self._server.occupy(begin_ns + times.run_ns)
        self._set_times(flight, begin_ns, times)

    def _set_times(self, flight: Flight, begin_ns: int, times: Timing) -> None:
        flight.timing = times
        flight.wait_ns = begin_ns - flight.submitted_ns
        flight.finish_ns = begin_ns + times.total_ns

    def _earliest(self) -> Flight:
        """The flight that ends first, by call id among equals. Entries of calls cancelled since are passed over."""
        while True:
            finish_ns, call_id = self._by_finish[0]
            flight = self._flights.get(call_id)
            if flight is not None and flight.finish_ns == finish_ns:
                return flight
            heapq.heappop(self._by_finish)

    def _free(self, flight: Flight) -> None:
        if flight.call.where == "actor" and flight.instance is not None:
            self._fleet.stop(flight.instance, self._now_ns)
        elif flight.timing is not None:
            self._server.stop(flight.begin_ns + flight.timing.run_ns, self._now_ns)
