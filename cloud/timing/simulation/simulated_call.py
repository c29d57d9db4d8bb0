"""A call on its way through a simulated cloud. All times are virtual nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cloud.money.billing.work import CallRecord
from cloud.timing.simulation.draws import Draws

Stage = Literal["waiting", "out", "back", "landed"]
Fault = Literal["", "function_failed", "out_of_memory", "deadline", "body", "cancelled", "closed"]

_UNKNOWN_NS = 2**62


@dataclass(slots=True, eq=False)
class SimulatedCall:
    """Submitted, begun (its turn came), arrived at its actor, started, ended there, finished here.

    `place` is what runs it, `starting_ns` how long that takes to start. `detours` counts payloads that went by
    storage. `leg` counts the plans for this call: events of an earlier leg are void.
    """

    work: CallRecord
    draws: Draws
    submitted_ns: int
    stage: Stage = "waiting"
    starting_ns: int = 0
    begin_ns: int = _UNKNOWN_NS
    arrived_ns: int = _UNKNOWN_NS
    started_ns: int = _UNKNOWN_NS
    end_ns: int = _UNKNOWN_NS
    finished_ns: int = _UNKNOWN_NS
    cold: bool = False
    provisioned: bool = False
    detours: int = 0
    fault: Fault = ""
    leg: int = 0
    place: Any = None

    @property
    def wait_ns(self) -> int:
        return self._passed(self.submitted_ns, self.begin_ns)

    @property
    def start_ns(self) -> int:
        return self._passed(self.arrived_ns, self.started_ns)

    @property
    def run_ns(self) -> int:
        return self._passed(self.started_ns, self.end_ns)

    @property
    def transfer_ns(self) -> int:
        """Both transfers, the coordinator's turn included."""
        return self.way_there_ns + self.way_back_ns

    @property
    def way_there_ns(self) -> int:
        return self._passed(self.begin_ns, self.arrived_ns)

    @property
    def way_back_ns(self) -> int:
        return self._passed(self.end_ns, self.finished_ns)

    @property
    def billed_ns(self) -> int:
        """A function is billed from its start to the end of its run."""
        return self._passed(self.arrived_ns, self.end_ns)

    def _passed(self, from_ns: int, to_ns: int) -> int:
        """Return how much of a stage passed before the call's end: a cancelled call may not have reached it."""
        last_ns = self.finished_ns
        return (to_ns if to_ns < last_ns else last_ns) - (from_ns if from_ns < last_ns else last_ns)
