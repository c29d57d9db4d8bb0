"""What a simulated cloud would bill, computed without any ledger: the oracle for money."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.simulation.core import Simulation
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.virtual_time import billed_ms


@dataclass(frozen=True)
class BilledCall:
    call_id: str
    memory_mb: int
    billed_ms: int
    provisioned: bool = False


class Meter:
    """Functions by call; servers and actors of a pool from their order to their end. Times are virtual."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._next, self._close = simulation.next, simulation.close
        simulation.next, simulation.close = self._noted_next, self._noted_close  # type: ignore[method-assign]
        self.calls: list[BilledCall] = []
        self.updates: list[BilledCall] = []

    def _noted_next(self, until_ns: int) -> SimulatedCall | None:
        call = self._next(until_ns)
        if call is not None:
            self._add(call)
        return call

    def _noted_close(self) -> list[SimulatedCall]:
        stopped = self._close()
        for call in stopped:
            self._add(call)
        return stopped

    def _add(self, call: SimulatedCall) -> None:
        """Add a call that has ended. One that never began is not billed, and rented resources are billed by time."""
        billed = BilledCall(
            call.work.id, call.work.memory_mb, billed_ms(call.billed_ns), provisioned=call.provisioned
        )
        if not billed.billed_ms:
            return
        if call.work.where == "actor" and self._simulation.pool is None:
            self.calls.append(billed)
        elif call.work.where == "learner" and self._simulation.learner.where == "function":
            self.updates.append(billed)

    @property
    def now_ns(self) -> int:
        return self._simulation.now_ns

    @property
    def server_from_ns(self) -> int | None:
        """When the learner's server was ordered."""
        return self._simulation.learner.ordered_ns

    @property
    def server_to_ns(self) -> int | None:
        return self._simulation.now_ns if self.server_from_ns is not None else None

    def actors_stood_ns(self) -> list[tuple[int, int]]:
        """Return from when to when each actor of a pool existed."""
        pool = self._simulation.pool
        now_ns = self._simulation.now_ns
        return [
            (actor.ordered_ns, now_ns if actor.gone_ns is None else actor.gone_ns)
            for actor in (pool.actors if pool is not None else [])
        ]


class SimulatedOnMeter(SimulatedPlatform):
    """The simulated cloud with a meter beside it."""

    def __init__(self, options: SimulatedOptions, **made: Any) -> None:
        super().__init__(options, **made)
        self.meter = Meter(self._simulation)
