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
from math import ceil
from typing import Any, ClassVar, Literal

from cloud import failures
from cloud.actor import wire
from cloud.actor.watchdog import GRACE_S
from cloud.failures import Failure
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.price_parts import machine_parts, own_price
from cloud.money.pricing import PricedPart, RentPrice, Tariff
from cloud.money.rents.payer import NoPayer, Payer
from cloud.platforms.model import Access
from cloud.platforms.outcomes import call_outcome, learner_outcome, read_answer
from cloud.platforms.own_machines import LearnerPrice, OwnMachines, rents
from cloud.platforms.ray import driver as ray_driver
from cloud.platforms.ray.actor_pool import ActorPool, why_ended
from cloud.platforms.ray.head import NoRay, RayHead
from cloud.timing.forecasting.this_machine import assumed, machines_like_this_one
from cloud.timing.numbers.profile import Profile
from cloud.workers.execution import Execution
from cloud.workers.executor import cores
from cloud.workers.learner_thread import LearnerThread
from training.base_model import setting
from training.engine.messages import BlobRef, Call, Outcome
from training.functions.body import Result
from training.rl import packages
from training.tasks.training import Training

_VERSIONS_KEPT = 8
_SENDING_S = 20.0
_LOOK_EVERY_S = 0.5

__all__ = ["NoRay", "RayOptions", "RayPlatform"]


class RayOptions(OwnMachines):
    """A Ray cluster: its actors sample, the learner runs here. Without an address, a cluster starts on this machine."""

    kind: Literal["ray"] = "ray"
    address: str = setting(
        "",
        "Address",
        "Address of the cluster's head, as 10.0.0.5:6379. Empty: a cluster is started here.",
        pattern=r"^$|^[A-Za-z0-9][A-Za-z0-9.-]*:\d{1,5}$",
        max_length=260,
    )
    actors: int | None = setting(
        None,
        "Actors at once",
        "Empty: as many as the cluster has cores for. A cluster that grows needs a number.",
        ge=1,
        le=10_000,
    )
    cpus_per_actor: float = setting(1.0, "Cores of an actor", gt=0.0, le=64.0, advanced=True)
    start_cap_s: float = setting(
        120.0,
        "Longest start",
        "An actor that has its core and does not answer by then is ended.",
        ge=5.0,
        le=900.0,
        unit="s",
        own=True,
        advanced=True,
    )
    nodes: int = setting(
        1, "Machines", "How many of them are paid while an actor of the job has a core.", ge=1, le=1000
    )
    machine: str = setting(
        "",
        "Kind of machine",
        "Its name in the price book, as c5.4xlarge. Empty: the price below.",
        max_length=100,
        advanced=True,
    )
    region: str = setting("us-east-1", "Region", max_length=40, advanced=True)
    node_usd_per_hour: Decimal = setting(
        Decimal(0),
        "Price of a machine",
        "Where no kind is named. Your own cost nothing unless you say so.",
        ge=0,
        le=10_000,
        unit="USD/h",
        advanced=True,
    )
    learner_usd_per_hour: LearnerPrice = Decimal(0)

    place: ClassVar[str] = "a Ray cluster"

    @property
    def most_actors(self) -> int:
        """An estimate until the cluster is attached."""
        return self.actors or max(1, int(cores() * self.nodes / self.cpus_per_actor))

    @property
    def subject(self) -> str:
        return "the Ray cluster"

    @property
    def actor_slots(self) -> int:
        return self.most_actors

    def forecast_profile(self, training: Training) -> Profile:
        """Return machines like this one: as much as is known before the cluster is contacted."""
        network = {
            "round_trip_s": assumed(0.003, 0.001, 0.01, "a call of a Ray actor"),
            "actor_mbit_per_s": assumed(1000.0, 100.0, 10_000.0, "the network of a computing centre"),
            "coordinator_mbit_per_s": assumed(1000.0, 100.0, 10_000.0, "the network of a computing centre"),
        }
        # An actor steps copies on whole cores only.
        cpus = self.cpus_per_actor if self.cpus_per_actor < 1 else int(self.cpus_per_actor)
        return machines_like_this_one(self.most_actors, cpus, network)

    def processes_here(self, actors: int) -> int:
        return 0 if self.address else min(self.most_actors, actors)

    def open_for_job(self, access: Access) -> RayPlatform:
        return self.open()

    def open(self) -> RayPlatform:
        """Return the platform. Raises NoRay, which says what to do."""
        return RayPlatform(self)

    def tariff(self, book: PriceBook, memory_mb: int) -> Tariff:
        """Return the rent of the time in which an actor has a core. Raises UnknownSku if the machine has no price."""
        prices = [*rents(learner=self.learner_usd_per_hour)]
        if self.machine:
            parts = machine_parts(book, self.machine, self.region, count=self.nodes, ip_and_disk=False)
            prices.append(RentPrice("nodes", parts))
        elif self.node_usd_per_hour:
            price = own_price("nodes", self.node_usd_per_hour)
            prices.append(RentPrice("nodes", (PricedPart(price, self.nodes),)))
        return Tariff(rents=tuple(prices), rents_while_held=True)


@dataclass
class _Flight:
    call: Call
    submitted_s: float
    weights: Any = None
    actor: str | None = None
    sent_s: float | None = None
    give_up_s: float = float("inf")


@dataclass(frozen=True)
class _Started:
    """The process of an actor has answered, or its future says why it cannot."""

    actor: str
    future: Any


@dataclass(frozen=True)
class _Ended:
    """A call has ended: with a finished future, or with the reason why it has none."""

    call_id: str
    end: Any


class RayPlatform:
    """Implements `training.engine.ports.Platform`, `cloud.money.rents.payer.RentsItsResources` and
    `cloud.platforms.throttling.ReportsThrottling`. The learner's calls run in a thread here.

    Calls wait here for actors that have answered. An actor whose call is cancelled, takes too long or breaks is ended;
    another is requested when there is a call for it. Rent is paid while an actor has a core.
    """

    def __init__(self, options: RayOptions) -> None:
        ray_driver.require()
        self._options = options
        self._run = secrets.token_hex(16)
        self.head = None
        if not options.address:
            self.head = RayHead(ceil((options.actors or options.most_actors) * options.cpus_per_actor))
        address = options.address if self.head is None else self.head.address
        try:
            self._ray = ray_driver.attached(address, f"starling-{self._run}")
        except NoRay:
            self._end_head()
            raise
        self._finished: queue.SimpleQueue[Execution | _Started | _Ended] = queue.SimpleQueue()
        self._actors = ActorPool(
            self._ray,
            cores_each=options.cpus_per_actor,
            most=options.actors,
            start_cap_s=options.start_cap_s,
            started=lambda actor, future: self._finished.put(_Started(actor, future)),
            now_s=self.now_s,
        )
        self._refs: OrderedDict[str, Any] = OrderedDict()
        self._queue: deque[_Flight] = deque()
        self._flights: dict[str, _Flight] = {}
        self._busy = 0
        self._learner = LearnerThread(self._finished.put)
        self._next_look_s = 0.0
        self._payer: Payer = NoPayer()
        self._paying = False
        self._closed = False

    @property
    def at_once(self) -> int:
        return self._actors.most

    def set_payer(self, payer: Payer) -> None:
        self._payer = payer

    def throttling_reasons(self) -> str:
        return self._actors.throttling_reasons()

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
            self._look()
            now_s = self.now_s()
            wait_s = min(end_s - now_s, self._learner.seconds_to_limit(), self._next_look_s - now_s)
            try:
                finished = self._finished.get(timeout=min(max(0.0, wait_s), threading.TIMEOUT_MAX))
            except queue.Empty:
                if self.now_s() >= end_s:
                    return None
                continue
            if isinstance(finished, _Started):
                if not self._closed:
                    self._note(self._actors.note_start(finished.actor, finished.future))
                continue
            # A call that was cancelled or given up may still be answered; its outcome has been returned.
            flight = self._flights.pop(finished.call_id, None)
            if flight is None:
                continue
            if isinstance(finished, Execution):
                return learner_outcome(flight.call, flight.submitted_s, finished)
            return self._landed(flight, finished.end)
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
        self._actors.close()
        self._refs.clear()
        self._ray.shutdown()
        self._end_head()

    def _end_head(self) -> None:
        if self.head is not None:
            self.head.close()

    def _look(self) -> None:
        """Twice a second: follow what the cluster says of actors, and give calls up that are overdue."""
        if self._closed or self.now_s() < self._next_look_s:
            return
        self._next_look_s = self.now_s() + _LOOK_EVERY_S
        self._note(self._actors.look())
        for flight in [one for one in self._flights.values() if one.give_up_s <= self.now_s()]:
            flight.give_up_s = float("inf")
            deadline_s = flight.call.deadline_s
            words = f"no answer came within its deadline of {deadline_s:g} s and {_SENDING_S:g} s for its way"
            self._fail(flight.call.id, Failure("lost", words))

    def _note(self, failed_start: Failure | None) -> None:
        """Go on after actors have changed: pay for them, and send calls or fail one that they cannot take."""
        self._pay()
        if failed_start is not None and self._queue:
            self._fail(self._queue.popleft().call.id, failed_start)
        self._send_waiting()

    def _pay(self) -> None:
        """Begin the rent once an actor has a core, and end it while none has."""
        held = self._actors.with_core > 0
        if held and not self._paying:
            unpaid = self._payer.begin_rents()
            self._paying = not unpaid
            while unpaid and self._queue:
                self._fail(self._queue.popleft().call.id, Failure("budget", unpaid))
        elif self._paying and not held:
            self._payer.end_rents()
            self._paying = False

    def _send_waiting(self) -> None:
        self._actors.request(len(self._queue) + self._busy)
        while self._paying and self._queue and (actor := self._actors.take()) is not None:
            self._send(self._queue.popleft(), actor)

    def _send(self, flight: _Flight, actor: str) -> None:
        call = flight.call
        flight.actor, flight.sent_s = actor, self.now_s()
        flight.give_up_s = flight.sent_s + call.deadline_s + GRACE_S + _SENDING_S
        not_after_s = time.time() + self._options.start_cap_s
        request = wire.ActorRequest(
            run=self._run, call=call, not_after_unix_s=not_after_s, packages=packages.enabled()
        )
        handle = self._actors.handle(actor)
        self._busy += 1
        answered = handle.answer.remote(wire.pack_request(request), flight.weights).future()
        answered.add_done_callback(lambda future: self._finished.put(_Ended(call.id, future)))

    def _fail(self, call_id: str, why: Failure) -> None:
        self._finished.put(_Ended(call_id, why))

    def _landed(self, flight: _Flight, end: Any) -> Outcome:
        """Return the outcome. `end` is a finished future, or a Failure."""
        landed_s = self.now_s()
        answer, result = (None, end) if isinstance(end, Failure) else self._read(flight, end)
        if flight.actor is not None:
            self._busy -= 1
            if answer is not None:
                self._actors.put_back(flight.actor)
            else:
                self._actors.end(flight.actor)
            self._send_waiting()
        total_s = landed_s - flight.submitted_s
        waited_s = total_s if flight.sent_s is None else flight.sent_s - flight.submitted_s
        # Without an answer, the actor's whole time counts as running.
        reported_s = total_s if answer is None else answer.run_s
        run_s = min(reported_s, total_s - waited_s)
        way_s = total_s - waited_s - run_s
        cold = answer is not None and answer.calls_before == 0
        outcome = call_outcome(
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
        return (
            outcome.model_copy(update={"status": "refused"}) if outcome.reason_code == "budget" else outcome
        )

    def _read(self, flight: _Flight, future: Any) -> tuple[wire.ActorAnswer | None, Result | Failure]:
        error = future.exception()
        if error is None:
            return read_answer(flight.call, self._run, future.result())
        assert flight.sent_s is not None
        why = why_ended(error)
        if why.code != "bundle" and self.now_s() - flight.sent_s >= flight.call.deadline_s:
            why = Failure("deadline", f"took longer than its deadline of {flight.call.deadline_s:g} s")
        return None, why
