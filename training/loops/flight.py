"""Calls in flight and what becomes of them: retries, ticks, and the two ways to be told to stop."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from training.deadlines import Deadlines
from training.messages import Call, CallFailed, Event, Outcome, RolloutRequest, StopCode, Tick
from training.ports import ControlSource, Platform

_TICK_S = 1.0


@dataclass(frozen=True)
class Halt:
    """The run has to stop before its rule says so: a person wants it, or the money is gone."""

    code: StopCode
    reason: str


@dataclass
class Gathered:
    """What came of a set of calls: outcomes of those that were done, by the position of their call."""

    done: dict[int, Outcome] = field(default_factory=dict)
    failed_calls: int = 0
    retried_calls: int = 0
    cost_picodollars: int = 0
    last_failure: str = ""
    halt: Halt | None = None

    def in_order(self) -> list[Outcome]:
        return [self.done[position] for position in sorted(self.done)]


class Flight:
    """Sends calls out and gathers their outcomes, telling events while it waits."""

    def __init__(self, platform: Platform, control: ControlSource, deadlines: Deadlines) -> None:
        self._platform = platform
        self._control = control
        self._deadlines = deadlines
        self._told_s = platform.now_s()

    def wanted(self) -> Halt | None:
        """What the person wants now."""
        desired = self._control().desired
        if desired == "cancelled":
            return Halt("cancelled", "stopped by hand")
        return Halt("paused", "paused") if desired == "paused" else None

    def gather(
        self, calls: Sequence[Call], attempts: int, waiting_for: str
    ) -> Generator[Event, None, Gathered]:
        """Every call to its end. A failed one is sent again with the same seed and state, so a retry changes nothing.

        When the run has to halt, what is in flight is cancelled, and gathered all the same: it was paid for.
        """
        gathered = Gathered()
        flying: dict[str, tuple[int, Call]] = {}
        for position, call in enumerate(calls):
            flying[call.id] = (position, call)
            self._platform.submit(call)
        while flying:
            if gathered.halt is None:
                gathered.halt = self.wanted()
                if gathered.halt is not None:
                    self._cancel(flying)
            outcome = self._platform.next(_TICK_S)
            if outcome is not None and outcome.call_id in flying:
                position, call = flying.pop(outcome.call_id)
                yield from self._take(outcome, call, position, attempts, gathered, flying)
            now_s = self._platform.now_s()
            if outcome is None or now_s - self._told_s >= _TICK_S:
                self._told_s = now_s
                yield Tick(at_s=now_s, calls_in_flight=len(flying), waiting_for=waiting_for)
        return gathered

    def _take(
        self,
        outcome: Outcome,
        call: Call,
        position: int,
        attempts: int,
        gathered: Gathered,
        flying: dict[str, tuple[int, Call]],
    ) -> Generator[Event, None, None]:
        gathered.cost_picodollars += outcome.cost_picodollars or 0
        self._deadlines.learn(call, outcome)
        if outcome.status == "done":
            gathered.done[position] = outcome
        elif outcome.status == "refused" or outcome.reason_code == "budget":  # the latter was cut off in flight
            if gathered.halt is None:
                gathered.halt = Halt("budget", outcome.reason)
                self._cancel(flying)
        elif outcome.status == "failed":
            gathered.failed_calls += 1
            gathered.last_failure = outcome.reason
            again = call.attempt < attempts and gathered.halt is None
            if again:
                gathered.retried_calls += 1
                retry = self._next_attempt(call)
                flying[retry.id] = (position, retry)
                self._platform.submit(retry)
            yield CallFailed(
                call_id=call.id,
                call_kind=call.kind,
                round_no=call.round_no,
                slot=call.request.slot if isinstance(call.request, RolloutRequest) else None,
                attempt=call.attempt,
                reason=outcome.reason,
                reason_code=outcome.reason_code,
                will_retry=again,
            )

    def _next_attempt(self, call: Call) -> Call:
        attempt = call.attempt + 1
        base = call.id.rsplit("-a", 1)[0]
        deadline_s = max(call.deadline_s, self._deadlines.for_kind(call.kind))
        return call.model_copy(
            update={"attempt": attempt, "id": f"{base}-a{attempt}", "deadline_s": deadline_s}
        )

    def _cancel(self, flying: dict[str, tuple[int, Call]]) -> None:
        for call_id in flying:
            self._platform.cancel(call_id)
