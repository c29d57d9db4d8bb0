"""A cloud in virtual time: the real work is done here, its time and price come from a profile, a stack and a seed.

A thousand "functions" run on two cores: bodies are executed for real, in any order, and each outcome is returned at
the virtual moment that follows from the profile. The clock moves only in `next`.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Literal

from cloud import failures
from cloud.actor import blobs
from cloud.actor.blobs import BlobShelf, MissingWeights
from cloud.failures import Failure
from cloud.money.billing.work import CallRecord, work_of
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.core import Simulation
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.virtual_time import NS, billed_ms, to_ns
from cloud.workers.executor import Executor, LocalExecutor
from training.engine.messages import BlobRef, Call, Outcome
from training.engine.reports import Usage
from training.functions.body import Result

_REAL_LIMIT_S = 900.0
_PATIENCE_S = 1.0


@dataclass
class _Flight:
    """A call whose body is running, or has run."""

    call: Call
    submitted_ns: int
    result: Result | Failure | None = None
    cancelled: bool = False
    handed_in: bool = False

    def work(self) -> CallRecord:
        """Return the body's work; a body that really failed did nothing that can be counted."""
        done = self.result if isinstance(self.result, Result) else None
        usage = (done.usage if done is not None else Usage()).model_copy(
            update={
                "bytes_in": blobs.bytes_in(self.call),
                "bytes_out": blobs.bytes_out(done.payload, done.slot_state) if done is not None else 0,
            }
        )
        return work_of(self.call, usage, broken=done is None)


class SimulatedPlatform:
    """Implements `training.engine.ports.Platform` in virtual time, from 0.

    `next` first waits until all calls in flight have really run. If that takes longer than `patience_s` of real time
    it returns None without moving the clock, so that its caller can do other things and call again.
    """

    def __init__(
        self,
        options: SimulatedOptions,
        *,
        profile: Profile | None = None,
        stack: Stack | None = None,
        executor: Executor | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._executor = executor or LocalExecutor(options.workers)
        self._patience_s = patience_s
        self._shelf = BlobShelf()
        self._simulation = Simulation(
            profile or profiles.load(options.profile), stack or stacks.load(options.stack), options.setting()
        )
        self._flights: dict[str, _Flight] = {}
        self._new: list[_Flight] = []
        self._unbegun: deque[_Flight] = deque()
        self._running = 0
        self._closed = False

    def publish(self, version: int, blob: bytes) -> BlobRef:
        return self._shelf.publish(version, blob, (flight.call for flight in self._flights.values()))

    def prepare(self, actors: int) -> None:
        """Keep this many actors in the pool, if this cloud has one."""
        self._simulation.prepare(actors)

    def submit(self, call: Call) -> None:
        flight = self._flights[call.id] = _Flight(call, self._simulation.now_ns)
        self._new.append(flight)
        if self._closed:
            flight.result = Failure("closed", "the platform is closed")
            return
        self._simulation.learner.order(self._simulation.now_ns)
        try:
            # The call's own deadline is virtual; the real limit only stops bodies that hang.
            self._executor.submit(
                call, self._shelf.weights_of(call), max(_REAL_LIMIT_S, 10 * call.deadline_s)
            )
            self._running += 1
        except MissingWeights as error:
            flight.result = Failure("weights", str(error))

    def next(self, timeout_s: float) -> Outcome | None:
        if not self._flights or not self._collect():
            return None
        self._hand_in()
        if self._unbegun:
            flight = self._unbegun.popleft()
            del self._flights[flight.call.id]
            return self._never_begun(flight)
        simulated = self._simulation.next(self._simulation.now_ns + to_ns(timeout_s))
        if simulated is None:
            return None
        return _outcome(
            self._flights.pop(simulated.work.id), simulated, self._simulation.shares_of_run(simulated.work)
        )

    def cancel(self, call_id: str) -> None:
        flight = self._flights.get(call_id)
        if flight is None or flight.cancelled:
            return
        if flight.handed_in:
            self._simulation.cancel(call_id)
            return
        # Submitted at this very moment: nothing of it can have run.
        flight.cancelled = True
        if flight.result is None:
            self._executor.cancel(call_id)

    @property
    def in_flight(self) -> int:
        """Calls whose outcome has not been returned."""
        return len(self._flights) + len(self._simulation)

    def now_s(self) -> float:
        return self._simulation.now_ns / NS

    def close(self) -> None:
        """Stop everything at this virtual moment."""
        if self._closed:
            return
        self._closed = True
        self._executor.close()
        self._simulation.close()
        self._flights.clear()
        self._new.clear()
        self._unbegun.clear()

    def _collect(self) -> bool:
        """Wait for the real work of all calls in flight. Return False if patience ran out first."""
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

    def _hand_in(self) -> None:
        """Pass new calls, whose work is known by now, to the simulation, in the order of their submission."""
        for flight in self._new:
            flight.handed_in = True
            if flight.cancelled or self._closed:
                self._unbegun.append(flight)
            else:
                self._simulation.submit(flight.work())
        self._new.clear()

    def _never_begun(self, flight: _Flight) -> Outcome:
        now_s = self.now_s()
        failure = flight.result if isinstance(flight.result, Failure) and self._closed else failures.CANCELLED
        return Outcome(
            call_id=flight.call.id,
            status="cancelled" if failure.code == "cancelled" else "failed",
            started_s=flight.submitted_ns / NS,
            finished_s=now_s,
            usage=Usage(billed_s=0.0, memory_mb=flight.call.memory_mb),
            reason=failure.reason,
            reason_code=failure.code,
        )


def _outcome(flight: _Flight, simulated: SimulatedCall, shares: tuple[float, float]) -> Outcome:
    failure = _failure(flight, simulated)
    given = flight.result if failure is None and isinstance(flight.result, Result) else None
    status: Literal["done", "failed", "cancelled"] = "done"
    if failure is not None:
        status = "cancelled" if failure.code == "cancelled" else "failed"
    return Outcome(
        call_id=flight.call.id,
        status=status,
        started_s=simulated.submitted_ns / NS,
        finished_s=simulated.finished_ns / NS,
        usage=_usage(flight, simulated, shares),
        payload=given.payload if given else b"",
        slot_state=given.slot_state if given else None,
        reason=failure.reason if failure else "",
        reason_code=failure.code if failure else "",
    )


def _failure(flight: _Flight, simulated: SimulatedCall) -> Failure | None:
    """Return why there is no result, or None."""
    ran_s = simulated.run_ns / NS
    match simulated.fault:
        case "":
            return None
        case "cancelled" | "closed":
            return failures.CANCELLED
        case "deadline":
            return Failure("deadline", f"stopped at its deadline of {ran_s:g} s (simulated)")
        case "function_failed":
            return Failure("function_failed", f"the function failed after {ran_s:.3f} s (simulated)")
        case "out_of_memory":
            most_mb, memory_mb = simulated.work.most_memory_mb, simulated.work.memory_mb
            words = f"it needs {most_mb:,} MB and has {memory_mb:,} MB (simulated): give it more memory"
            return Failure("function_failed", words)
    assert isinstance(flight.result, Failure)
    return flight.result


def _usage(flight: _Flight, simulated: SimulatedCall, shares: tuple[float, float]) -> Usage:
    """Return the work and the virtual times; of a cancelled call only the time until then.

    `shares` of its run are those of steps and policy. The body's own measurements are of this machine; where it
    learned from data, that came to it on the way there, and its result went the way back.
    """
    done = flight.result.usage if isinstance(flight.result, Result) else Usage()
    learned = {"fetch_s": 0.0, "compute_s": 0.0, "push_s": 0.0, "processor_s": 0.0}
    if done.compute_s:
        learned = {
            "fetch_s": simulated.way_there_ns / NS,
            "compute_s": simulated.run_ns / NS,
            "push_s": simulated.way_back_ns / NS,
            "processor_s": simulated.run_ns / NS,
        }
    return done.model_copy(
        update={
            **learned,
            "bytes_in": simulated.work.bytes_in,
            "bytes_out": simulated.work.bytes_out,
            "cold_start": simulated.cold,
            "provisioned": simulated.provisioned,
            "detours": simulated.detours,
            "startup_s": (simulated.wait_ns + simulated.start_ns) / NS,
            "run_s": simulated.run_ns / NS,
            "steps_s": simulated.run_ns / NS * shares[0],
            "inference_s": simulated.run_ns / NS * shares[1],
            "transfer_s": simulated.transfer_ns / NS,
            "billed_s": billed_ms(simulated.billed_ns) / 1000,
            "memory_mb": flight.call.memory_mb,
        }
    )
