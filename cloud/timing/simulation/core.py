"""A cloud in virtual time: takes calls with known work and returns their ends in the order of time.

All events are on one heap. A call's work is known when it is submitted, so all its times follow from the profile, the
stack, the seed and the other calls; the clock moves only in `next`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cloud.money.billing.work import CallRecord
from cloud.timing.numbers.profile import Functions, Profile
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.draws import draw
from cloud.timing.simulation.functions import FunctionFleet
from cloud.timing.simulation.learner import SimulatedLearner
from cloud.timing.simulation.network import Transfers
from cloud.timing.simulation.pool import SimulatedActor, SimulatedActorPool
from cloud.timing.simulation.speed import Speeds
from cloud.timing.simulation.trip import Trip
from cloud.timing.virtual_time import to_ns


@dataclass(frozen=True)
class SimulatedSetting:
    """A job's choices on a cloud: the learner's place and machines, warm capacity, and the seed of chance.

    Up to `learner_lanes` calls learn at once, on `learner_gpus` GPUs; a machine without one counts as one.
    """

    learner: Literal["server", "function"] = "server"
    learner_gpu: bool = False
    learner_gpus: int = 1
    learner_lanes: int = 1
    provisioned: int = 0
    seed: int = 0


_PLAIN = SimulatedSetting()


class Simulation:
    """Single-threaded. `now_ns` is 0 at first; each trip is returned once, at the moment its outcome is known."""

    def __init__(self, profile: Profile, stack: Stack, setting: SimulatedSetting = _PLAIN) -> None:
        self.now_ns = 0
        self._seed = setting.seed
        self._speeds = Speeds(profile, stack, gpu=setting.learner_gpu)
        self._transfers = Transfers(profile.network)
        self.learner = SimulatedLearner(
            profile.learner, setting.learner, setting.learner_lanes, self._speeds, setting.learner_gpus
        )
        self._actors: FunctionFleet | SimulatedActorPool
        self.pool: SimulatedActorPool | None = None
        self._units = 0
        if isinstance(profile.actors, Functions):
            self._actors = FunctionFleet(profile.actors, self._speeds, setting.provisioned)
        else:
            self._actors = self.pool = SimulatedActorPool(
                profile.actors, self._speeds, setting.seed, self._when_ready
            )
            self._units = (profile.actors.units or 0) * profile.actors.actors_per_unit
        self._events: list[tuple[int, int, Callable[..., None], Trip | SimulatedActor, int]] = []
        self._count = 0
        self._flying: dict[str, Trip] = {}
        self._landed: list[Trip] = []
        self._coordinator_free_ns = 0

    def __len__(self) -> int:
        return len(self._flying)

    def submit(self, work: CallRecord) -> None:
        """Accept a call at this moment."""
        trip = self._flying[work.id] = Trip(work, draw(self._seed, work.id), self.now_ns)
        self.learner.order(self.now_ns)
        if self._units and self.pool is not None:
            self.prepare(self._units)
            self._units = 0
        admitted = self._place_of(trip).admit(trip)
        if admitted is not None:
            self._begin(admitted)

    def prepare(self, actors: int) -> None:
        """Keep this many actors in a pool from now on. Functions need no preparation."""
        if self.pool is not None:
            self.pool.prepare(actors, self.now_ns)

    def next(self, until_ns: int) -> Trip | None:
        """Return the next call to end and move the clock to its end; None if that is after `until_ns` (the clock
        moves there) or if no call is in flight.
        """
        while True:
            if self._landed:
                trip = self._landed.pop(0)
                del self._flying[trip.work.id]
                return trip
            if not self._flying:
                return None
            if not self._events or self._events[0][0] > until_ns:
                self.now_ns = max(self.now_ns, until_ns)
                return None
            at_ns, _, happen, what, leg = heapq.heappop(self._events)
            if isinstance(what, Trip) and what.leg != leg:
                continue
            self.now_ns = at_ns
            happen(what)

    def cancel(self, call_id: str) -> None:
        """Stop a call where it is. An outcome in transit is dropped, though its run is billed."""
        trip = self._flying.get(call_id)
        if trip is None or trip.stage == "landed":
            return
        trip.fault, trip.finished_ns = "cancelled", self.now_ns
        if trip.stage == "waiting":
            self._place_of(trip).withdraw(trip)
        elif trip.stage == "out":
            self._release(trip, survives=False)
        self._deliver(trip)

    def shares_of_run(self, work: CallRecord) -> tuple[float, float]:
        """Return how much of an actor's run is spent on what it samples and on the policy."""
        return self._speeds.shares_of_run(work) if work.where == "actor" else (0.0, 0.0)

    def close(self) -> list[Trip]:
        """Stop everything now and return the calls that were in flight, with their times until now."""
        stopped = list(self._flying.values())
        for trip in stopped:
            if trip.stage != "landed":
                trip.fault, trip.stage, trip.finished_ns = "closed", "landed", self.now_ns
        if self.pool is not None:
            self.pool.close(self.now_ns)
        self._flying.clear()
        self._events.clear()
        self._landed.clear()
        return stopped

    def _place_of(self, trip: Trip) -> FunctionFleet | SimulatedActorPool | SimulatedLearner:
        return self.learner if trip.work.where == "learner" else self._actors

    def _at(self, at_ns: int, happen: Callable[..., None], what: Trip | SimulatedActor) -> None:
        self._count += 1
        leg = what.leg if isinstance(what, Trip) else 0
        heapq.heappush(self._events, (at_ns, self._count, happen, what, leg))

    def _when_ready(self, actor: SimulatedActor) -> None:
        self._at(actor.ready_ns, self._ready, actor)

    def _ready(self, actor: SimulatedActor) -> None:
        assert self.pool is not None
        trip = self.pool.ready(actor)
        if trip is not None:
            self._begin(trip)

    def _begin(self, trip: Trip) -> None:
        """Start the trip on its place at once, or when that place is ready."""
        trip.stage = "out"
        trip.begin_ns = self._place_of(trip).begin(trip, self.now_ns)
        if trip.begin_ns > self.now_ns:
            self._at(trip.begin_ns, self._go, trip)
        else:
            self._go(trip)

    def _go(self, trip: Trip) -> None:
        work = trip.work
        here = work.where == "learner" and self.learner.where == "server"
        trip.arrived_ns = self.now_ns if here else self._transfers.to_actor(self.now_ns, work.bytes_in)
        trip.detours += not here and self._transfers.is_detour(work.bytes_in)
        trip.started_ns = trip.arrived_ns + trip.starting_ns
        if work.where == "learner":
            self._at(trip.started_ns, self._compute, trip)
        else:
            self._at(trip.started_ns + self._actor_run_ns(trip), self._ended, trip)

    def _actor_run_ns(self, trip: Trip) -> int:
        """Return the whole run time, or that until the call fails or reaches its deadline."""
        full_ns = self._speeds.run_ns(trip.work, trip.draws)
        if trip.work.broken:
            trip.fault = "body"
        if trip.draws.failure < self._speeds.failure_share:
            trip.fault, full_ns = "function_failed", round(full_ns * trip.draws.failure_at)
        elif self._speeds.lacks_memory(trip.work):
            trip.fault = "out_of_memory"
        deadline_ns = to_ns(trip.work.deadline_s)
        if full_ns > deadline_ns:
            trip.fault, full_ns = "deadline", deadline_ns
        return full_ns

    def _compute(self, trip: Trip) -> None:
        """Begin an update's computation, which slows all others on the machine from now on."""
        self.learner.run(trip, self._speeds.update_ns(trip.work), self.now_ns)
        self._at(self.now_ns + to_ns(trip.work.deadline_s), self._too_long, trip)
        self._plan_next_update()

    def _plan_next_update(self) -> None:
        planned = self.learner.next_end()
        if planned is not None:
            at_ns, trip = planned
            self._at(at_ns, self._computed, trip)

    def _computed(self, trip: Trip) -> None:
        """End an update, unless another update joined since this end was planned."""
        if trip.stage == "out" and self.learner.next_end() == (self.now_ns, trip):
            trip.fault = "body" if trip.work.broken else ""
            self._ended(trip)

    def _too_long(self, trip: Trip) -> None:
        if trip.stage == "out":
            trip.fault = "deadline"
            self._ended(trip)

    def _ended(self, trip: Trip) -> None:
        """End the run: the place takes the next call in the queue, the outcome goes back."""
        trip.stage, trip.end_ns = "back", self.now_ns
        self._release(trip, survives=not trip.fault)
        here = trip.work.where == "learner" and self.learner.where == "server"
        byte_count = 0 if trip.fault else trip.work.bytes_out
        back_ns = self.now_ns if here else self._transfers.to_coordinator(self.now_ns, byte_count)
        trip.detours += not here and self._transfers.is_detour(byte_count)
        if not trip.fault and not here and trip.draws.late < self._speeds.late_share:
            back_ns += self._speeds.late_ns
        self._at(back_ns, self._arrived, trip)

    def _release(self, trip: Trip, *, survives: bool) -> None:
        following = self._place_of(trip).release(trip, self.now_ns, survives)
        if following is not None:
            self._begin(following)
        if trip.work.where == "learner":
            self._plan_next_update()

    def _arrived(self, trip: Trip) -> None:
        """Pass an outcome through the coordinator, which takes one after the other; after an update's it decides on
        the round.
        """
        busy_ns = self._speeds.coordinator_ns + self._speeds.decision_ns(trip.work)
        self._coordinator_free_ns = max(self.now_ns, self._coordinator_free_ns) + busy_ns
        trip.finished_ns = self._coordinator_free_ns
        if trip.finished_ns > self.now_ns:
            self._at(trip.finished_ns, self._deliver, trip)
        else:
            self._deliver(trip)

    def _deliver(self, trip: Trip) -> None:
        trip.stage = "landed"
        trip.leg += 1
        self._landed.append(trip)
