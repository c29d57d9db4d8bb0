"""Calls in flight: retries, ticks, and stopping by the user or by the budget."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from training.calls import KINDS
from training.engine.deadlines import Deadlines
from training.engine.messages import (
    FAULTS_NOT_RETRIED,
    Call,
    CallFailed,
    Event,
    Outcome,
    Tick,
)
from training.engine.ports import ControlSource, Platform
from training.engine.reports import Usage
from training.engine.stopping import RunEnd, end_by_outcome, wished_end

_TICK_S = 1.0
_SAME_AGAIN = FAULTS_NOT_RETRIED | {"refused_gradient"}
"""An equal call would fail in the same way: the same parameters and samples give the same gradient."""


@dataclass(frozen=True)
class Landed:
    """A call that has ended: with its outcome if it was done, else with the reason why it never will be."""

    name: str
    call: Call
    outcome: Outcome | None
    reason: str = ""
    reason_code: str = ""


@dataclass
class Tally:
    """What calls did and cost since the tally was last taken. `usages` are those of sampling and judging, wherever it
    ran, `learned` those of calls that learned and made no version; versions come with their usage themselves.
    `unusable` are outcomes of such calls that were refused or not finite.
    """

    cost_picodollars: int = 0
    failed_calls: int = 0
    retried_calls: int = 0
    cold_starts: int = 0
    usages: list[Usage] = field(default_factory=list)
    learned: list[Usage] = field(default_factory=list)
    unusable: list[Outcome] = field(default_factory=list)


@dataclass(frozen=True)
class _CallInFlight:
    call: Call
    attempts: int


class Flight:
    """Sends calls and receives their outcomes, yielding events while it waits.

    A call has a name; a retry is another call of the same name with the same seed and state, so it changes no result.
    When the run must halt, calls in flight are cancelled, and their outcomes still counted because they were paid
    for.
    """

    def __init__(self, platform: Platform, control: ControlSource, deadlines: Deadlines) -> None:
        self._platform = platform
        self._control = control
        self._deadlines = deadlines
        self._in_flight: dict[str, _CallInFlight] = {}
        self._last_tick_s = platform.now_s()
        self._tally = Tally()
        self.run_end: RunEnd | None = None
        self.waiting_for = ""

    def __len__(self) -> int:
        return len(self._in_flight)

    def launch(self, call: Call, attempts: int, after: Sequence[str] = ()) -> str:
        """Send `call`, which needs the tasks `after`; names may repeat or be empty. Return the name of its task."""
        needed = tuple(dict.fromkeys(name for name in after if name))
        self._send(call.model_copy(update={"after": needed}), attempts)
        return call.name

    def _send(self, call: Call, attempts: int) -> None:
        self._in_flight[call.id] = _CallInFlight(call, attempts)
        self._platform.submit(call)

    def check_control(self) -> RunEnd | None:
        """Return why the run must halt, if the user wants it to stop; cancels the calls in flight then."""
        if self.run_end is None:
            wished = wished_end(self._control().desired)
            if wished is not None:
                self.stop(wished)
        return self.run_end

    def stop(self, run_end: RunEnd) -> None:
        self.run_end = self.run_end or run_end
        for call_id in self._in_flight:
            self._platform.cancel(call_id)

    def take_tally(self) -> Tally:
        tally, self._tally = self._tally, Tally()
        return tally

    def next(self) -> Generator[Event, None, Landed | None]:
        """Wait for the next event. Return a call that landed, or None after a second or a retry."""
        self.check_control()
        outcome = self._platform.next(_TICK_S)
        landed = None
        if outcome is not None and outcome.call_id in self._in_flight:
            landed = yield from self._take(outcome, self._in_flight.pop(outcome.call_id))
        now_s = self._platform.now_s()
        if outcome is None or now_s - self._last_tick_s >= _TICK_S:
            self._last_tick_s = now_s
            yield Tick(at_s=now_s, calls_in_flight=len(self._in_flight), waiting_for=self.waiting_for)
        return landed

    def gather(
        self, calls: Sequence[Call], attempts: int, waiting_for: str, after: Sequence[str]
    ) -> Generator[Event, None, list[Landed]]:
        """Run `calls`, which need the tasks `after`, to their ends and return them in their order. No other call may be
        in flight.
        """
        self.waiting_for = waiting_for
        names = [self.launch(call, attempts, after) for call in calls]
        landed: dict[str, Landed] = {}
        while self._in_flight:
            landing = yield from self.next()
            if landing is not None:
                landed[landing.name] = landing
        return [landed[name] for name in names]

    def drain(self, run_end: RunEnd) -> Generator[Event, None, list[Landed]]:
        """Cancel all calls in flight and return their ends: some may have been done before. Afterwards new calls may
        be sent and the user may stop again.
        """
        self.stop(run_end)
        ended = []
        while self._in_flight:
            landed = yield from self.next()
            if landed is not None:
                ended.append(landed)
        self.run_end = None
        return ended

    def _take(self, outcome: Outcome, in_flight: _CallInFlight) -> Generator[Event, None, Landed | None]:
        call = in_flight.call
        self._tally.cost_picodollars += outcome.cost_picodollars or 0
        self._learn(call, outcome)
        kind = KINDS[call.kind]
        if kind.role != "learning":
            self._tally.usages.append(outcome.usage)
        elif outcome.status == "done" and not kind.makes_version:
            self._tally.learned.append(outcome.usage)
        if call.where == "actor":
            self._tally.cold_starts += outcome.usage.cold_start
        if outcome.status == "done":
            return Landed(call.name, call, outcome)
        end = end_by_outcome(outcome)
        if end is not None:
            self.stop(end)
        if outcome.status == "failed" and outcome.reason_code != "budget":
            self._tally.failed_calls += 1
            is_bad = outcome.reason_code == "numbers" or outcome.reason_code.startswith("refused_")
            if is_bad and kind.role == "learning" and not kind.makes_version:
                self._tally.unusable.append(outcome)
            in_vain = outcome.reason_code in _SAME_AGAIN
            again = call.attempt < in_flight.attempts and self.run_end is None and not in_vain
            yield _call_failed(call, outcome, again)
            if again:
                self._tally.retried_calls += 1
                self._launch_again(in_flight)
                return None
        return Landed(call.name, call, None, outcome.reason, outcome.reason_code)

    def _learn(self, call: Call, outcome: Outcome) -> None:
        usage = outcome.usage
        if outcome.status == "done":
            self._deadlines.record_done(call.kind, usage.startup_s + usage.run_s + usage.transfer_s)
        elif outcome.reason_code == "deadline":
            self._deadlines.record_timeout(call.kind, call.deadline_s)

    def _launch_again(self, in_flight: _CallInFlight) -> None:
        call, attempt = in_flight.call, in_flight.call.attempt + 1
        deadline_s = self._deadlines.for_retry(call.kind, call.deadline_s)
        changes = {"attempt": attempt, "id": f"{call.name}-a{attempt}", "deadline_s": deadline_s}
        self._send(call.model_copy(update=changes), in_flight.attempts)


def _call_failed(call: Call, outcome: Outcome, again: bool) -> CallFailed:
    return CallFailed(
        call_id=call.id,
        call_kind=call.kind,
        round_no=call.round_no,
        slot=call.slot,
        attempt=call.attempt,
        reason=outcome.reason,
        reason_code=outcome.reason_code,
        will_retry=again,
    )
