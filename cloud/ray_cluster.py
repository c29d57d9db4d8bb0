"""Ray as a platform, for training beyond one machine: each actor of the cluster takes one call at a time.

Requests and answers are our own bytes. Weights are put into the cluster once for each version and passed by reference.
A Ray cluster runs whatever its drivers send it and the other way round, so it must be as trusted as this machine.
Answers are checked all the same, as a node may be wrong.
"""

from __future__ import annotations

import hashlib
import queue
import secrets
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from cloud import failures, wire
from cloud.actor.watchdog import GRACE_S
from cloud.billing.price_book import PriceBook
from cloud.billing.price_parts import machine_parts, own_price
from cloud.failures import Failure
from cloud.outcomes import call_outcome, learner_outcome, read_answer
from cloud.own_machines import LearnerPrice, rents
from cloud.platform_model import PlatformModel
from cloud.pricing import Part, RentPrice, Tariff
from cloud.ray import driver as ray_driver
from cloud.ray.head import NoRay, RayHead
from cloud.workers.execution import Execution
from cloud.workers.executor import cores
from cloud.workers.learner_thread import LearnerThread
from training import packages
from training.functions.body import Result
from training.messages import BlobRef, Call, Outcome

_VERSIONS_KEPT = 8
_SENDING_S = 20.0
_LOOK_EVERY_S = 0.5

__all__ = ["NoRay", "RayOptions", "RayPlatform"]


class RayOptions(PlatformModel):
    """A Ray cluster: its actors sample, the learner runs here. Without an address, a cluster starts on this machine."""

    kind: Literal["ray"] = "ray"
    address: str = Field(
        "",
        pattern=r"^$|^[A-Za-z0-9][A-Za-z0-9.-]*:\d{1,5}$",
        max_length=260,
        title="Address",
        description="Address of the cluster's head, as 10.0.0.5:6379. Empty: a cluster is started here.",
    )
    actors: int | None = Field(
        None,
        ge=1,
        le=10_000,
        title="Actors at once",
        description="Empty: as many as the cluster has cores for. A cluster that grows needs a number.",
    )
    cpus_per_actor: float = Field(
        1.0, gt=0.0, le=64.0, title="Cores of an actor", json_schema_extra={"advanced": True}
    )
    start_cap_s: float = Field(
        120.0,
        ge=5.0,
        le=900.0,
        title="Longest start",
        description="A call that no actor has begun by then fails.",
        json_schema_extra={"advanced": True, "unit": "s", "own": True},
    )
    nodes: int = Field(
        1, ge=1, le=1000, title="Machines", description="How many of them are paid while the job is attached."
    )
    machine: str = Field(
        "",
        max_length=100,
        title="Kind of machine",
        description="Its name in the price book, as c5.4xlarge. Empty: the price below.",
        json_schema_extra={"advanced": True},
    )
    region: str = Field("us-east-1", max_length=40, title="Region", json_schema_extra={"advanced": True})
    node_usd_per_hour: Decimal = Field(
        Decimal(0),
        ge=0,
        le=10_000,
        title="Price of a machine",
        description="Where no kind is named. Your own cost nothing unless you say so.",
        json_schema_extra={"unit": "USD/h", "advanced": True},
    )
    learner_usd_per_hour: LearnerPrice = Decimal(0)

    @property
    def most_actors(self) -> int:
        """An estimate until the cluster is attached."""
        return self.actors or max(1, int(cores() * self.nodes / self.cpus_per_actor))

    def open(self) -> RayPlatform:
        """Return the platform. Raises NoRay, which says what to do."""
        return RayPlatform(self)

    def tariff(self, book: PriceBook, memory_mb: int) -> Tariff:
        """Return the rent from the job's start to its end. Raises UnknownSku if the machine has no price."""
        prices = [*rents(learner=self.learner_usd_per_hour)]
        if self.machine:
            parts = machine_parts(book, self.machine, self.region, count=self.nodes, ip_and_disk=False)
            prices.append(RentPrice("nodes", parts))
        elif self.node_usd_per_hour:
            price = own_price("nodes", self.node_usd_per_hour)
            prices.append(RentPrice("nodes", (Part(price, self.nodes),)))
        return Tariff(rents=tuple(prices))


@dataclass
class _Flight:
    call: Call
    submitted_s: float
    weights: Any = None
    actor: Any = None
    sent_s: float | None = None
    give_up_s: float = float("inf")


class RayPlatform:
    """Implements `training.ports.Platform`. The learner's calls run in a thread here.

    An actor whose call is cancelled, takes too long or breaks is ended; another is started when there is a call for it.
    """

    def __init__(self, options: RayOptions) -> None:
        ray_driver.require()
        self._options = options
        self._run = secrets.token_hex(16)
        self.head = None if options.address else RayHead(options.actors or cores())
        address = options.address if self.head is None else self.head.address
        try:
            self._ray = ray_driver.attached(address, f"starling-{self._run}")
        except NoRay:
            self._end_head()
            raise
        self._actor_class = self._ray.remote(
            num_cpus=options.cpus_per_actor, max_restarts=0, max_task_retries=0
        )(ray_driver.RayActor)
        self._most = options.actors or self._room()
        self._refs: OrderedDict[str, Any] = OrderedDict()
        self._actors: list[Any] = []
        self._idle: list[Any] = []
        self._queue: deque[_Flight] = deque()
        self._flights: dict[str, _Flight] = {}
        self._finished: queue.SimpleQueue[Execution | tuple[str, Any]] = queue.SimpleQueue()
        self._learner = LearnerThread(self._finished.put)
        self._next_look_s = 0.0
        self._closed = False

    @property
    def at_once(self) -> int:
        return self._most

    def publish(self, version: int, blob: bytes) -> BlobRef:
        ref = BlobRef(version=version, sha256=hashlib.sha256(blob).hexdigest(), byte_count=len(blob))
        if not self._closed:
            # Calls in flight hold their own references; Ray frees a blob without references.
            self._refs[ref.sha256] = self._refs.pop(ref.sha256, None) or self._ray.put(blob)
            named = {
                one.call.weights.sha256 for one in self._flights.values() if one.call.weights is not None
            }
            for old in list(self._refs)[:-_VERSIONS_KEPT]:
                if old not in named:
                    del self._refs[old]
        return ref

    def submit(self, call: Call) -> None:
        flight = self._flights[call.id] = _Flight(call, self.now_s())
        if self._closed:
            self._fail(call.id, Failure("closed", "the platform is closed"))
            return
        weights = call.weights
        if weights is not None:
            if weights.sha256 not in self._refs:
                words = f"the weights of version {weights.version} are not published here"
                self._fail(call.id, Failure("weights", words))
                return
            flight.weights = self._refs[weights.sha256]
        if call.where == "learner":
            here = None if weights is None else self._ray.get(flight.weights)
            self._learner.submit(call, here, call.deadline_s)
        else:
            self._queue.append(flight)
            self._send_waiting()

    def next(self, timeout_s: float) -> Outcome | None:
        end_s = self.now_s() + timeout_s
        while self._flights:
            self._learner.enforce_limit()
            self._give_up()
            now_s = self.now_s()
            wait_s = min(end_s - now_s, self._learner.seconds_to_limit(), self._next_look_s - now_s)
            try:
                finished = self._finished.get(timeout=min(max(0.0, wait_s), threading.TIMEOUT_MAX))
            except queue.Empty:
                if self.now_s() >= end_s:
                    return None
                continue
            call_id = finished.call_id if isinstance(finished, Execution) else finished[0]
            flight = self._flights.pop(call_id, None)
            # A call that was cancelled or given up may still be answered; its outcome has been returned.
            if flight is None:
                continue
            if isinstance(finished, Execution):
                return learner_outcome(flight.call, flight.submitted_s, finished)
            return self._landed(flight, finished[1])
        return None

    def cancel(self, call_id: str) -> None:
        flight = self._flights.get(call_id)
        if flight is None or self._closed:
            return
        if flight.call.where == "learner":
            self._learner.cancel(call_id)
            return
        if flight in self._queue:
            self._queue.remove(flight)
        flight.give_up_s = float("inf")
        self._fail(call_id, failures.CANCELLED)

    def now_s(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        """End the actors and leave the cluster; a cluster of our own ends with everything that it started."""
        if self._closed:
            return
        self._closed = True
        self._learner.close()
        self._flights.clear()
        self._queue.clear()
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors.clear()
        self._idle.clear()
        self._refs.clear()
        self._ray.shutdown()
        self._end_head()

    def _end_head(self) -> None:
        if self.head is not None:
            self.head.close()

    def _room(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 0.0) / self._options.cpus_per_actor))

    def _send_waiting(self) -> None:
        while self._queue and (self._idle or len(self._actors) < self._most):
            flight = self._queue.popleft()
            if not self._idle:
                self._actors.append(
                    actor := self._actor_class.remote(max(1, int(self._options.cpus_per_actor)))
                )
                self._idle.append(actor)
            self._send(flight, self._idle.pop())

    def _send(self, flight: _Flight, actor: Any) -> None:
        call = flight.call
        flight.actor, flight.sent_s = actor, self.now_s()
        start_cap_s = self._options.start_cap_s
        flight.give_up_s = flight.sent_s + start_cap_s + call.deadline_s + GRACE_S + _SENDING_S
        request = wire.Request(
            run=self._run, call=call, not_after_unix_s=time.time() + start_cap_s, packages=packages.enabled()
        )
        answered = actor.answer.remote(wire.pack_request(request), flight.weights).future()
        answered.add_done_callback(lambda future: self._finished.put((call.id, future)))

    def _fail(self, call_id: str, why: Failure) -> None:
        self._finished.put((call_id, why))

    def _give_up(self) -> None:
        if self.now_s() < self._next_look_s:
            return
        self._next_look_s = self.now_s() + _LOOK_EVERY_S
        for flight in [one for one in self._flights.values() if one.give_up_s <= self.now_s()]:
            flight.give_up_s = float("inf")
            words = f"no answer came within its start and its deadline of {flight.call.deadline_s:g} s"
            self._fail(flight.call.id, Failure("lost", words))

    def _landed(self, flight: _Flight, end: Any) -> Outcome:
        """Return the outcome. `end` is a finished future, or a Failure."""
        landed_s = self.now_s()
        answer, result = (None, end) if isinstance(end, Failure) else self._read(flight, end)
        if flight.actor is not None:
            if answer is not None:
                self._idle.append(flight.actor)
            else:
                self._actors.remove(flight.actor)
                self._ray.kill(flight.actor)
            self._send_waiting()
        total_s = landed_s - flight.submitted_s
        waited_s = total_s if flight.sent_s is None else flight.sent_s - flight.submitted_s
        # Without an answer, the actor's whole time counts as running.
        reported_s = total_s if answer is None else answer.run_s
        run_s = min(reported_s, total_s - waited_s)
        way_s = total_s - waited_s - run_s
        cold = answer is not None and answer.calls_before == 0
        return call_outcome(
            flight.call,
            flight.submitted_s,
            landed_s,
            result,
            cold_start=cold,
            # The first call of an actor waits for its process.
            startup_s=waited_s + (way_s if cold else 0.0),
            run_s=run_s,
            transfer_s=0.0 if cold else way_s,
            billed_s=run_s,
        )

    def _read(self, flight: _Flight, future: Any) -> tuple[wire.Answer | None, Result | Failure]:
        error = future.exception()
        if error is not None:
            return None, self._why_not(flight, error)
        return read_answer(flight.call, self._run, future.result())

    def _why_not(self, flight: _Flight, error: BaseException) -> Failure:
        assert flight.sent_s is not None
        text = str(error)
        if "ModuleNotFoundError" in text or "ImportError" in text:
            words = (
                "the cluster's machines cannot import Starling; put this version of it on their PYTHONPATH"
            )
            return Failure("bundle", f"{words}: {text.strip().splitlines()[-1][:300]}")
        if self.now_s() - flight.sent_s >= flight.call.deadline_s:
            return Failure("deadline", f"took longer than its deadline of {flight.call.deadline_s:g} s")
        first = text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__
        return Failure("function_failed", f"the actor's process ended before it answered: {first}")
