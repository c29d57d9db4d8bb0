"""A run's time and bill computed again from the record of its work: on another cloud, another stack, other prices.

No training happens. Each call is sent when its dependencies have landed. Times come from the same simulation as those
of a simulated job, retries and deadlines from the engine's rules, rent from the meter's. On the cloud where the run
was simulated the result is the same, to the last digit.
"""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cloud.money.billing.bill import Bill, BookedLedger
from cloud.money.billing.replay_schedule import Cut, ReplaySchedule, ReplayTask
from cloud.money.billing.work import CallRecord
from cloud.money.rents.job import Rents
from cloud.timing.place import TimingPlace
from cloud.timing.simulation.core import Simulation
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.virtual_time import NS
from training.calls import KINDS
from training.engine.deadlines import Deadlines

_NEVER_NS = 2**62


@dataclass(frozen=True)
class RoundTimes:
    """A round as its report describes it, in seconds of the platform."""

    round_no: int
    began_s: float
    collect_s: float
    update_s: float
    total_s: float


@dataclass(frozen=True)
class CompletedCall:
    """A call that succeeded: the run time of its body, and how long it waited to start."""

    kind: str
    round_no: int
    run_s: float
    startup_s: float


@dataclass
class RetimedRun:
    """What a run takes and costs at a place."""

    bill: Bill = field(default_factory=Bill)
    rounds: list[RoundTimes] = field(default_factory=list)
    done: list[CompletedCall] = field(default_factory=list)
    end_ns: int = 0
    calls: int = 0
    failed: int = 0
    cold_starts: int = 0

    @property
    def time_s(self) -> float:
        return self.end_ns / NS


def retime(schedule: ReplaySchedule, place: TimingPlace, *, seed: int) -> RetimedRun:
    """Return the time and bill of one run segment at `place`, with chance drawn from `seed`."""
    # A replay makes thousands of small objects and no cycles: searching for those would take a third of its time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _Replay(schedule, place, seed).run()
    finally:
        if collecting:
            gc.enable()


class _Replay:
    """One replay. `_left` counts, for each task and each cut, the dependencies that have not landed yet."""

    def __init__(self, schedule: ReplaySchedule, place: TimingPlace, seed: int) -> None:
        self._schedule = schedule
        self._simulation = Simulation(place.profile, place.stack, place.setting(seed))
        self._tariff = place.tariff(schedule.memory_mb)
        self._found = RetimedRun()
        self._rents = Rents(self._tariff, BookedLedger(self._found.bill), "")
        self._deadlines = Deadlines(schedule.longest_s)
        self._left = list(schedule.waits)
        self._attempts = [0] * len(schedule.tasks)
        self._in_flight: dict[str, int] = {}
        self._actors_flying = 0
        self._last_try: set[int] = set()
        self._given_up: set[int] = set()
        self._cuts: deque[tuple[int, Cut]] = deque()
        self._sent_ns = [0] * len(schedule.tasks)
        self._deadline_s = [0.0] * len(schedule.tasks)
        self._landed_ns = [0] * len(schedule.tasks)
        self._updates: dict[int, list[tuple[ReplayTask, SimulatedCall]]] = {}
        self._learning: list[tuple[int, int]] = []
        self._version_ns = 0
        # When rent falls due, or earlier: the caller checks again then.
        self._due_ns = 0

    def run(self) -> RetimedRun:
        self._pay()
        self._send(self._freed(self._schedule.first))
        while self._in_flight or self._cuts:
            cut_ns = self._cuts[0][0] if self._cuts else _NEVER_NS
            call = self._simulation.next(min(cut_ns, self._due_ns))
            if call is not None:
                self._land(call)
            elif self._cuts and (cut_ns <= self._simulation.now_ns or not self._in_flight):
                self._cut(self._cuts.popleft()[1])
            if call is None or self._due_ns <= self._simulation.now_ns:
                self._pay()
        self._simulation.close()
        self._rents.end(self._now_s)
        self._found.end_ns = self._simulation.now_ns
        self._learning = _disjoint(self._learning)
        self._found.rounds = [self._round(updates) for updates in self._updates.values()]
        return self._found

    @property
    def _now_s(self) -> float:
        return self._simulation.now_ns / NS

    def _pay(self) -> None:
        """Pay rent, as the meter does before it sends or waits."""
        now_s, before = self._now_s, self._rents.actors
        self._rents.need(self._actors_flying, now_s)
        if self._rents.is_due(now_s):
            self._rents.pay(now_s, 0)
            self._prepare(before)
        self._due_ns = self._rents.due_ns() or _NEVER_NS

    def _prepare(self, before: int | None) -> None:
        actors = self._rents.actors
        if actors is not None and actors != before:
            self._simulation.prepare(actors)

    def _send(self, numbers: Sequence[int]) -> None:
        """Send tasks whose dependencies have landed, in the engine's order."""
        usual: dict[tuple[str, int], float] = {}
        works = [self._next_attempt(number, usual) for number in numbers]
        more = sum(work.where == "actor" for work in works)
        if more:
            before = self._rents.actors
            self._rents.grow(self._actors_flying + more, self._now_s, 0)
            self._prepare(before)
            self._due_ns = self._rents.due_ns() or _NEVER_NS
        self._actors_flying += more
        for number, work in zip(numbers, works, strict=True):
            if work.attempt == 1:
                self._sent_ns[number] = self._simulation.now_ns
            self._in_flight[work.id] = number
            self._simulation.submit(work)

    def _next_attempt(self, number: int, usual: dict[tuple[str, int], float]) -> CallRecord:
        """Return its next attempt with the current deadline; `usual` caches those of first attempts."""
        task = self._schedule.tasks[number]
        attempt = self._attempts[number] = self._attempts[number] + 1
        work = task.work(attempt)
        if attempt == 1:
            key = task.kind, task.trials
            if key not in usual:
                usual[key] = self._deadlines.for_kind(*key)
            deadline_s = usual[key]
        else:
            deadline_s = self._deadlines.for_retry(work.kind, self._deadline_s[number])
        self._deadline_s[number] = deadline_s
        return work if work.deadline_s == deadline_s else work.with_deadline(deadline_s)

    def _land(self, call: SimulatedCall) -> None:
        self._rents.need(self._actors_flying, self._now_s)
        number = self._in_flight.pop(call.work.id)
        task = self._schedule.tasks[number]
        self._actors_flying -= task.where == "actor"
        self._book(call)
        self._learn(call)
        if not call.fault:
            startup_s = (call.wait_ns + call.start_ns) / NS
            self._found.done.append(CompletedCall(task.kind, task.round_no, call.run_ns / NS, startup_s))
            if KINDS[task.kind].makes_version:
                self._updates.setdefault(task.round_no, []).append((task, call))
        elif call.fault != "cancelled":
            self._found.failed += 1
            if self._attempts[number] < task.allowed and number not in self._last_try:
                self._send([number])
                return
        self._landed(number)

    def _landed(self, number: int) -> None:
        """End the task, and send the tasks that only waited for it."""
        now_ns, task = self._simulation.now_ns, self._schedule.tasks[number]
        self._landed_ns[number] = now_ns
        if KINDS[task.kind].role == "learning":
            self._learning.append((self._sent_ns[number], now_ns))
        freed = self._freed(self._schedule.followers[number])
        if freed:
            self._send(freed)

    def _freed(self, numbers: Sequence[int]) -> list[int]:
        """Return the tasks that wait for nothing any more, in the order of sending, with the cuts among them."""
        freed: list[int] = []
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            self._left[number] -= 1
            if self._left[number]:
                continue
            if number >= len(self._schedule.tasks):
                cut = self._schedule.cuts[number - len(self._schedule.tasks)]
                self._cuts.append((self._simulation.now_ns + cut.after_ns, cut))
            elif number in self._given_up:
                waiting += self._schedule.followers[number]
            else:
                freed.append(number)
        return sorted(freed)

    def _cut(self, cut: Cut) -> None:
        """Stop the run here: cancel calls in flight and send no more."""
        numbers = set(cut.tasks)
        self._last_try |= set(self._in_flight.values())
        self._given_up |= {number for number in numbers if not self._attempts[number]}
        for call_id, number in list(self._in_flight.items()):
            if number in numbers:
                self._simulation.cancel(call_id)

    def _book(self, call: SimulatedCall) -> None:
        self._found.calls += 1
        self._found.cold_starts += call.cold and call.work.where == "actor"
        self._found.bill.add_call(self._tariff, call)

    def _learn(self, call: SimulatedCall) -> None:
        if not call.fault:
            # The sum of the parts in its usage, rounded as they are there.
            took_s = (call.wait_ns + call.start_ns) / NS + call.run_ns / NS + call.transfer_ns / NS
            self._deadlines.record_done(call.work.kind, took_s)
        elif call.fault == "deadline":
            self._deadlines.record_timeout(call.work.kind, call.work.deadline_s)

    def _learned_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return how much of this time anything learned, in whichever round its call was sent."""
        learned_ns = 0
        first = bisect_right(self._learning, begin_ns, key=lambda span: span[1])
        for sent_ns, landed_ns in self._learning[first:]:
            if sent_ns >= end_ns:
                break
            learned_ns += min(landed_ns, end_ns) - max(sent_ns, begin_ns)
        return learned_ns

    def _wave_ns(self, round_no: int) -> tuple[int, int]:
        """Return when the round's first call was sent, and when its last one landed, without those that judge."""
        numbers = self._schedule.by_round[round_no]
        return min(self._sent_ns[number] for number in numbers), max(self._landed_ns[one] for one in numbers)

    def _round(self, updates: Sequence[tuple[ReplayTask, SimulatedCall]]) -> RoundTimes:
        """Return the round that these updates make, the last of which ends it. Each loop reports its beginning and its
        collection in its own way.
        """
        task, call = updates[-1]
        end_ns, sent_s = call.finished_ns, call.submitted_ns / NS
        update_s = sum(max(0.0, update.finished_ns / NS - update.submitted_ns / NS) for _, update in updates)
        match self._schedule.collects:
            case "before learning":
                began_s = max((self._sent_ns[number] for number in task.after), default=0) / NS
                collect_s = sent_s - began_s
            case "beside learning":
                # Actors sample meanwhile, and the round waits for both.
                end_ns = max(self._landed_ns[number] for number in self._schedule.beside(task))
                began_s = self._sent_ns[task.number] / NS
                collect_s = end_ns / NS - began_s
            case "beside gradients":
                began_ns = self._version_ns
                if self._schedule.by_waves:
                    began_ns, end_ns = self._wave_ns(task.round_no)
                began_s = began_ns / NS
                update_s = self._learned_ns(began_ns, end_ns) / NS
                collect_s = max(0.0, end_ns / NS - began_s - update_s)
            case _:
                began_s = self._version_ns / NS
                collect_s = max(0.0, end_ns / NS - began_s - update_s)
        self._version_ns = end_ns
        return RoundTimes(task.round_no, began_s, collect_s, update_s, end_ns / NS - began_s)


def _disjoint(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return these spans of time in order, those that overlap or touch as one."""
    disjoint: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if disjoint and begin <= disjoint[-1][1]:
            disjoint[-1] = disjoint[-1][0], max(disjoint[-1][1], end)
        else:
            disjoint.append((begin, end))
    return disjoint
