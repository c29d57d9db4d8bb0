"""A stored run as a schedule to replay: its tasks, their dependencies, and where the run was cut short."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from cloud.money.billing.work import CallRecord, WorkError
from cloud.money.billing.work_file import RunSegment
from cloud.timing.virtual_time import to_ns
from training.calls import KINDS
from training.loops.attempts import attempts_of
from training.loops.loop import Collects
from training.tasks.kinds import read_training
from training.tasks.training import Training


class ReplayTask:
    """A call with its attempts. `allowed` is how many there may be, `trials` what its deadline depends on."""

    def __init__(
        self, number: int, works: Sequence[CallRecord], allowed: int, trials: int, *, simulated: bool
    ) -> None:
        most = max(works, key=_amount)
        self.number = number
        self.kind = most.kind
        self.where = most.where
        self.round_no = most.round_no
        self.stepped = most.stepped
        self.allowed = allowed
        self.trials = trials
        self.after: tuple[int, ...] = ()
        self._most = most
        self._works = {work.attempt: self._made_whole(work, simulated) for work in works}

    def work(self, attempt: int) -> CallRecord:
        """Return the attempt's work. An attempt that did not exist does the same work as the existing ones."""
        record = self._works.get(attempt)
        if record is None:
            record = self._works[attempt] = self._as_attempt(attempt)
        return record

    def _made_whole(self, work: CallRecord, simulated: bool) -> CallRecord:
        """Return the work of a call that failed without a record of it.

        On a simulated cloud its body had raised. Elsewhere its work was not counted, and another attempt did the same
        work.
        """
        if work.broken or work.cancelled or _amount(work):
            return work
        return replace(work, broken=True) if simulated else self._as_attempt(work.attempt)

    def _as_attempt(self, attempt: int) -> CallRecord:
        return replace(self._most, id=f"{self._most.name}-a{attempt}", attempt=attempt)


@dataclass(frozen=True)
class Cut:
    """These tasks were cancelled, so long after the last of their predecessors had landed."""

    tasks: tuple[int, ...]
    after_ns: int


@dataclass(frozen=True)
class ReplaySchedule:
    """Tasks in the order in which they were sent. All that waits is numbered: first the tasks, then the cuts.

    `waits` counts the dependencies of each, `followers` are those that wait for a task, `first` those that wait for
    the start. `by_waves`: actors wait for all passes over what they sampled once.
    """

    tasks: list[ReplayTask]
    cuts: list[Cut]
    waits: list[int]
    followers: list[list[int]]
    first: list[int]
    collects: Collects
    by_waves: bool
    longest_s: float
    memory_mb: int
    notes: tuple[str, ...]

    def beside(self, task: ReplayTask) -> list[int]:
        """Return the tasks that were sent together with this one, with the same dependencies, without those that
        judge.
        """
        together = self.followers[task.after[0]] if task.after else self.first
        numbers = [number for number in together if number < len(self.tasks)]
        return [number for number in numbers if KINDS[self.tasks[number].kind].role != "judging"]

    @cached_property
    def by_round(self) -> dict[int, list[int]]:
        """The tasks of each round, without those that judge."""
        numbers: dict[int, list[int]] = {}
        for task in self.tasks:
            if KINDS[task.kind].role != "judging":
                numbers.setdefault(task.round_no, []).append(task.number)
        return numbers

    @staticmethod
    def of(segment: RunSegment, earlier: Collection[str] = ()) -> ReplaySchedule:
        """Return the schedule of a run segment. Raises WorkError if its spec cannot be understood.

        `earlier` are tasks of segments before it, whose gradients it may have used: it did not wait for them.
        """
        spec = training_spec(segment.spec)
        usages: list[Any] = [one.usage for one in segment.settlements if "work" in one.usage]
        landed_s = {usage["work"]["id"]: usage["landed_s"] for usage in usages if "landed_s" in usage}
        by_name: dict[str, list[CallRecord]] = {}
        for work in sorted(segment.works, key=lambda work: work.serial):
            by_name.setdefault(work.name, []).append(work)
        simulated = segment.simulated
        tasks = _tasks(list(by_name.values()), spec, simulated=simulated)
        numbers = {name: number for number, name in enumerate(by_name)}
        missing = 0
        for task, works in zip(tasks, by_name.values(), strict=True):
            known = [numbers[name] for name in works[0].after if name in numbers]
            missing += sum(name not in numbers and name not in earlier for name in works[0].after)
            task.after = tuple(known)
        cuts = _cuts(list(by_name.values()), landed_s)
        return _wired(tasks, cuts, spec, _notes(spec, segment, missing))


def schedules_of(segments: Iterable[RunSegment]) -> list[ReplaySchedule]:
    """Return the schedules of a run's segments in which something was sent. Raises WorkError."""
    earlier: set[str] = set()
    schedules = []
    for segment in segments:
        if segment.works:
            schedules.append(ReplaySchedule.of(segment, earlier))
        earlier |= {work.name for work in segment.works}
    return schedules


def training_spec(spec: Mapping[str, Any]) -> Training:
    try:
        return read_training(spec.get("training", {"kind": "none"}))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise WorkError(f"the run's spec cannot be read here: {place}: {first['msg']}") from None
    except ValueError as error:
        raise WorkError(f"the run's spec cannot be read here: {error}") from None


def _tasks(works: list[list[CallRecord]], spec: Training, *, simulated: bool) -> list[ReplayTask]:
    # The deadlines of an evaluation's calls depend on the largest share of the trials.
    shares: dict[tuple[str, int], int] = {}
    for first, *_ in works:
        if KINDS[first.kind].grows_with_trials:
            key = first.kind, first.round_no
            shares[key] = max(shares.get(key, 1), first.trials)
    return [
        ReplayTask(
            number,
            attempted,
            attempts_of(spec, attempted[0].kind),
            shares.get((attempted[0].kind, attempted[0].round_no), 1),
            simulated=simulated,
        )
        for number, attempted in enumerate(works)
    ]


def _cuts(works: list[list[CallRecord]], landed_s: Mapping[str, float]) -> list[tuple[Cut, list[int]]]:
    """Return each cut, and the tasks that had landed before it."""
    ended = [landed_s.get(attempted[-1].id) for attempted in works]
    by_moment: dict[float, list[int]] = {}
    for number, attempted in enumerate(works):
        at_s = ended[number]
        if attempted[-1].cancelled and at_s is not None:
            by_moment.setdefault(at_s, []).append(number)
    cuts = []
    for moment_s, numbers in by_moment.items():
        before = [
            number
            for number, at_s in enumerate(ended)
            if at_s is not None and at_s <= moment_s and not works[number][-1].cancelled
        ]
        last_s = max((at_s for number in before if (at_s := ended[number]) is not None), default=0.0)
        cuts.append((Cut(tuple(numbers), to_ns(moment_s) - to_ns(last_s)), before))
    return cuts


def _wired(
    tasks: list[ReplayTask], cuts: list[tuple[Cut, list[int]]], spec: Training, notes: tuple[str, ...]
) -> ReplaySchedule:
    before = [list(task.after) for task in tasks] + [earlier for _, earlier in cuts]
    followers: list[list[int]] = [[] for _ in tasks]
    for number, earlier in enumerate(before):
        for other in earlier:
            followers[other].append(number)
    return ReplaySchedule(
        tasks=tasks,
        cuts=[cut for cut, _ in cuts],
        waits=[max(1, len(earlier)) for earlier in before],
        followers=followers,
        first=[number for number, earlier in enumerate(before) if not earlier],
        collects=spec.loop.collects,
        by_waves=spec.loop.goes_by_waves,
        longest_s=spec.longest_call_s,
        memory_mb=spec.memory_mb,
        notes=notes,
    )


def _notes(spec: Training, segment: RunSegment, missing: int) -> tuple[str, ...]:
    """Return why another cloud might have made another run of it, one sentence each."""
    notes = []
    if spec.scaling.reads_times:
        notes.append(
            f"The scaling policy ({spec.scaling.kind}) reads times, so that elsewhere it would have chosen other"
            " numbers of actors; here those of the stored run are kept."
        )
    if spec.loop.depends_on_timing:
        notes.append(
            f"In this loop times decide {spec.loop.decided_by_times}; here that is as in the stored run."
        )
    if spec.stop.minutes is not None:
        notes.append("The run may be stopped by its time limit; here it has the rounds of the stored run.")
    if any(work.cancelled for work in segment.works) and not spec.loop.depends_on_timing:
        notes.append("The stored run was stopped in the middle of a round.")
    unknown = sum(settlement.basis == "assumed" for settlement in segment.settlements)
    if missing or unknown:
        notes.append(
            f"The record has holes: {unknown} calls were booked without a result,"
            f" {missing} that others waited for are not in it."
        )
    return tuple(notes)


def _amount(work: CallRecord) -> int:
    # Where trials are requested, a call that failed has their number as well.
    done = 0 if KINDS[work.kind].grows_with_trials else work.trials
    return work.steps + work.minibatches + done
