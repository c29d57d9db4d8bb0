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
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.simulation.speed import Speeds
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
    """Single-threaded. `now_ns` is 0 at first; each call is returned once, at the moment its outcome is known."""

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
        self._events: list[tuple[int, int, Callable[..., None], SimulatedCall | SimulatedActor, int]] = []
        self._count = 0
        self._in_flight: dict[str, SimulatedCall] = {}
        self._landed: list[SimulatedCall] = []
        self._coordinator_free_ns = 0

    def __len__(self) -> int:
        return len(self._in_flight)

    def submit(self, work: CallRecord) -> None:
        """Accept a call at this moment."""
        call = self._in_flight[work.id] = SimulatedCall(work, draw(self._seed, work.id), self.now_ns)
        self.learner.order(self.now_ns)
        if self._units and self.pool is not None:
            self.prepare(self._units)
            self._units = 0
        admitted = self._place_of(call).admit(call)
        if admitted is not None:
            self._begin(admitted)

    def prepare(self, actors: int) -> None:
        """Keep this many actors in a pool from now on. Functions need no preparation."""
        if self.pool is not None:
            self.pool.prepare(actors, self.now_ns)

    def next(self, until_ns: int) -> SimulatedCall | None:
        """Return the next call to end and move the clock to its end; None if that is after `until_ns` (the clock
        moves there) or if no call is in flight.
        """
        while True:
            if self._landed:
                call = self._landed.pop(0)
                del self._in_flight[call.work.id]
                return call
            if not self._in_flight:
                return None
            if not self._events or self._events[0][0] > until_ns:
                self.now_ns = max(self.now_ns, until_ns)
                return None
            at_ns, _, happen, what, leg = heapq.heappop(self._events)
            if isinstance(what, SimulatedCall) and what.leg != leg:
                continue
            self.now_ns = at_ns
            happen(what)

    def cancel(self, call_id: str) -> None:
        """Stop a call where it is. An outcome in transit is dropped, though its run is billed."""
        call = self._in_flight.get(call_id)
        if call is None or call.stage == "landed":
            return
        call.fault, call.finished_ns = "cancelled", self.now_ns
        if call.stage == "waiting":
            self._place_of(call).withdraw(call)
        elif call.stage == "out":
            self._release(call, survives=False)
        self._deliver(call)

    def shares_of_run(self, work: CallRecord) -> tuple[float, float]:
        """Return how much of an actor's run is spent on what it samples and on the policy."""
        return self._speeds.shares_of_run(work) if work.where == "actor" else (0.0, 0.0)

    def close(self) -> list[SimulatedCall]:
        """Stop everything now and return the calls that were in flight, with their times until now."""
        stopped = list(self._in_flight.values())
        for call in stopped:
            if call.stage != "landed":
                call.fault, call.stage, call.finished_ns = "closed", "landed", self.now_ns
        if self.pool is not None:
            self.pool.close(self.now_ns)
        self._in_flight.clear()
        self._events.clear()
        self._landed.clear()
        return stopped

    def _place_of(self, call: SimulatedCall) -> FunctionFleet | SimulatedActorPool | SimulatedLearner:
        return self.learner if call.work.where == "learner" else self._actors

    def _at(self, at_ns: int, happen: Callable[..., None], what: SimulatedCall | SimulatedActor) -> None:
        self._count += 1
        leg = what.leg if isinstance(what, SimulatedCall) else 0
        heapq.heappush(self._events, (at_ns, self._count, happen, what, leg))

    def _when_ready(self, actor: SimulatedActor) -> None:
        self._at(actor.ready_ns, self._ready, actor)

    def _ready(self, actor: SimulatedActor) -> None:
        assert self.pool is not None
        call = self.pool.ready(actor)
        if call is not None:
            self._begin(call)

    def _begin(self, call: SimulatedCall) -> None:
        """Start the call on its place at once, or when that place is ready."""
        call.stage = "out"
        call.begin_ns = self._place_of(call).begin(call, self.now_ns)
        if call.begin_ns > self.now_ns:
            self._at(call.begin_ns, self._go, call)
        else:
            self._go(call)

    def _go(self, call: SimulatedCall) -> None:
        work = call.work
        here = work.where == "learner" and self.learner.where == "server"
        call.arrived_ns = self.now_ns if here else self._transfers.to_actor(self.now_ns, work.bytes_in)
        call.detours += not here and self._transfers.is_detour(work.bytes_in)
        call.started_ns = call.arrived_ns + call.starting_ns
        if work.where == "learner":
            self._at(call.started_ns, self._compute, call)
        else:
            self._at(call.started_ns + self._actor_run_ns(call), self._ended, call)

    def _actor_run_ns(self, call: SimulatedCall) -> int:
        """Return the whole run time, or that until the call fails or reaches its deadline."""
        full_ns = self._speeds.run_ns(call.work, call.draws)
        if call.work.broken:
            call.fault = "body"
        if call.draws.failure < self._speeds.failure_share:
            call.fault, full_ns = "function_failed", round(full_ns * call.draws.failure_at)
        elif self._speeds.lacks_memory(call.work):
            call.fault = "out_of_memory"
        deadline_ns = to_ns(call.work.deadline_s)
        if full_ns > deadline_ns:
            call.fault, full_ns = "deadline", deadline_ns
        return full_ns

    def _compute(self, call: SimulatedCall) -> None:
        """Begin an update's computation, which slows all others on the machine from now on."""
        self.learner.run(call, self._speeds.update_ns(call.work), self.now_ns)
        self._at(self.now_ns + to_ns(call.work.deadline_s), self._too_long, call)
        self._plan_next_update()

    def _plan_next_update(self) -> None:
        planned = self.learner.next_end()
        if planned is not None:
            at_ns, call = planned
            self._at(at_ns, self._computed, call)

    def _computed(self, call: SimulatedCall) -> None:
        """End an update, unless another update joined since this end was planned."""
        if call.stage == "out" and self.learner.next_end() == (self.now_ns, call):
            call.fault = "body" if call.work.broken else ""
            self._ended(call)

    def _too_long(self, call: SimulatedCall) -> None:
        if call.stage == "out":
            call.fault = "deadline"
            self._ended(call)

    def _ended(self, call: SimulatedCall) -> None:
        """End the run: the place takes the next call in the queue, the outcome goes back."""
        call.stage, call.end_ns = "back", self.now_ns
        self._release(call, survives=not call.fault)
        here = call.work.where == "learner" and self.learner.where == "server"
        byte_count = 0 if call.fault else call.work.bytes_out
        back_ns = self.now_ns if here else self._transfers.to_coordinator(self.now_ns, byte_count)
        call.detours += not here and self._transfers.is_detour(byte_count)
        if not call.fault and not here and call.draws.late < self._speeds.late_share:
            back_ns += self._speeds.late_ns
        self._at(back_ns, self._arrived, call)

    def _release(self, call: SimulatedCall, *, survives: bool) -> None:
        following = self._place_of(call).release(call, self.now_ns, survives)
        if following is not None:
            self._begin(following)
        if call.work.where == "learner":
            self._plan_next_update()

    def _arrived(self, call: SimulatedCall) -> None:
        """Pass an outcome through the coordinator, which takes one after the other; after an update's it decides on
        the round.
        """
        busy_ns = self._speeds.coordinator_ns + self._speeds.decision_ns(call.work)
        self._coordinator_free_ns = max(self.now_ns, self._coordinator_free_ns) + busy_ns
        call.finished_ns = self._coordinator_free_ns
        if call.finished_ns > self.now_ns:
            self._at(call.finished_ns, self._deliver, call)
        else:
            self._deliver(call)

    def _deliver(self, call: SimulatedCall) -> None:
        call.stage = "landed"
        call.leg += 1
        self._landed.append(call)
