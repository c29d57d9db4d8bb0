"""A job's history as columns, cached by the web process, updated from new events only and cut into points.

Of a round's event only the packed figures are read, so a first look at 100,000 rounds is fast. A resume drops
the rounds that it repeats, exactly as pages do.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from django.db.models import Case, DateTimeField, JSONField, When

from training.statistics.few_seeds import student_t
from webapp.job_states import TERMINAL
from webapp.jobs.charts.figures import AXES, LINES, NAMES, PACKING, PARTS, WALL, packed, significant, unpacked
from webapp.jobs.models import Event, EventKind, Job
from webapp.money.amounts import PICODOLLARS_PER_USD

BOUNDS = "bounds"
"""A user changed the actor bounds. It is stored as a note with these facts, without an event kind of its own.
"""
_SHOWN = (EventKind.CHECKPOINT, EventKind.CALL_FAILED, EventKind.RESUMED, EventKind.BUDGET)
MARKED = (*_SHOWN, BOUNDS)
MOST_POINTS = 400
MOST_MARKS = 400
"""Of each kind; the last ones are kept."""
MOST_ROUNDS_KEPT = 400_000
"""Over all jobs in this process. The least recently used are dropped and read again on demand."""
_KINDS = (EventKind.STARTED, EventKind.ROUND, EventKind.EVALUATION, EventKind.NOTE, *_SHOWN)
_EVENTS_AT_ONCE = 2_000
_EVERY_ROUND = 2**53

Numbers = npt.NDArray[np.float64]


class EvaluationPoint(NamedTuple):
    round_no: int
    steps: int
    mean: float
    std: float
    trials: int

    @property
    def mean_interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean return, by Student's t; None for a single trial."""
        if self.trials < 2:
            return None
        half = student_t(0.95, self.trials - 1) * self.std / (self.trials - 1) ** 0.5
        return self.mean - half, self.mean + half


class History:
    """A job's history up to event number `seq`."""

    def __init__(self, started_at: datetime | None) -> None:
        self._started_at = started_at
        self.seq = 0
        self.columns: dict[str, array[float]] = {
            name: array("d" if name in AXES or name == WALL else "f") for name in NAMES
        }
        self.evaluations: list[EvaluationPoint] = []
        self.marks: dict[str, list[int]] = {kind: [] for kind in MARKED}

    @property
    def rounds(self) -> int:
        return len(self.columns["round"])

    def spent_usd_after(self, round_no: int) -> float:
        """Return the spending at the end of that round; 0 before the first."""
        known = bisect_right(self.columns["round"], round_no)
        return self.columns["spent_usd"][known - 1] if known else 0.0

    def take(self, seq: int, at: datetime, kind: str, payload: Mapping[str, Any]) -> None:
        """Add one event of a kind in _KINDS, in order."""
        self.seq = seq
        if kind == EventKind.STARTED:
            self._started_at = self._started_at or at
        elif kind == EventKind.ROUND:
            self.take_rounds(seq, unpacked([packed(payload["report"], at)]))
        elif kind == EventKind.EVALUATION:
            self._evaluation(payload)
        elif kind == EventKind.CHECKPOINT:
            self._mark(kind, payload["round_no"])
        elif kind == EventKind.RESUMED:
            self.forget_after(payload["from_round"])
            self._mark(kind, payload["from_round"])
        elif kind != EventKind.NOTE:
            self._mark(kind, self._last_round() + 1)
        elif "actors_least" in payload:
            self._mark(BOUNDS, self._last_round() + 1)

    def take_rounds(self, seq: int, columns: Mapping[str, Numbers]) -> None:
        """Add many packed rounds, in order; `seq` is the last one's."""
        self.seq = seq
        rounds = columns["round"]
        again = np.flatnonzero(np.diff(rounds) <= 0) + 1  # a resume repeats from here
        for begin, end in pairwise((0, *again.tolist(), len(rounds))):
            self._add({name: column[begin:end] for name, column in columns.items()})

    def _add(self, columns: Mapping[str, Numbers]) -> None:
        """Add consecutive rounds."""
        self.forget_after(int(columns["round"][0]) - 1)
        if self._started_at is None:
            self._started_at = datetime.fromtimestamp(columns["at_s"][0], UTC)
        spent = self.columns["spent_usd"]
        before = spent[-1] if spent else 0.0
        added = {**columns, WALL: columns["at_s"] - self._started_at.timestamp()}
        if np.isnan(columns["spent_usd"]).any():  # nothing was metered: use the cost in the rounds' reports
            added["spent_usd"] = before + np.cumsum(columns["cost_usd"])
        for name, column in self.columns.items():
            column.frombytes(added[name].astype(column.typecode).tobytes())

    def forget_after(self, round_no: int) -> None:
        """Drop the later rounds: a resumed job repeats them."""
        rounds = self.columns["round"]
        keep = len(rounds)
        while keep and rounds[keep - 1] > round_no:
            keep -= 1
        for column in self.columns.values():
            del column[keep:]
        while self.evaluations and self.evaluations[-1].round_no > round_no:
            self.evaluations.pop()

    def _last_round(self) -> int:
        return int(self.columns["round"][-1]) if self.rounds else 0

    def _evaluation(self, payload: Mapping[str, Any]) -> None:
        while self.evaluations and self.evaluations[-1].round_no >= payload["round_no"]:
            self.evaluations.pop()
        self.evaluations.append(
            EvaluationPoint(
                payload["round_no"],
                payload["total_env_steps"],
                payload["return_mean"],
                payload.get("return_std") or 0.0,
                len(payload.get("episode_returns") or ()),
            )
        )

    def _mark(self, kind: str, round_no: int) -> None:
        marks = self.marks[kind]
        if not marks or marks[-1] != round_no:
            marks.append(round_no)
            del marks[:-MOST_MARKS]


class Histories:
    """The histories in this process, by job. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[threading.Lock, History]] = OrderedDict()

    def of(self, job_id: str, started_at: datetime | None, upto: int) -> tuple[threading.Lock, History]:
        """Return the job's history up to event `upto` or later. Hold its lock while reading."""
        with self._lock:
            if job_id not in self._known:
                self._known[job_id] = threading.Lock(), History(started_at)
            self._known.move_to_end(job_id)
            lock, history = self._known[job_id]
        with lock:
            if history.seq < upto:
                _bring_up_to_date(job_id, history, upto)
        self._make_room()
        return lock, history

    def forget(self) -> None:
        with self._lock:
            self._known.clear()

    def _make_room(self) -> None:
        with self._lock:
            kept = sum(history.rounds for _, history in self._known.values())
            while kept > MOST_ROUNDS_KEPT and len(self._known) > 1:
                _, (_, history) = self._known.popitem(last=False)
                kept -= history.rounds


def _bring_up_to_date(job_id: str, history: History, upto: int) -> None:
    waiting: list[bytes] = []
    last = history.seq
    for seq, figures, at, kind, payload in _rows(job_id, history.seq, upto):
        if payload is None:
            waiting.append(figures)
            last = seq
            continue
        if waiting:
            history.take_rounds(last, unpacked(waiting))
            waiting = []
        history.take(seq, at, kind, payload)
    if waiting:
        history.take_rounds(last, unpacked(waiting))
    history.seq = max(history.seq, upto)


def _rows(job_id: str, after: int, upto: int) -> Iterable[tuple[int, Any, Any, str, Any]]:
    """Yield number, figures, time, kind and payload of events; only the first two of rounds in this packing."""
    rows = Event.objects.filter(job_id=job_id, seq__gt=after, seq__lte=upto, kind__in=_KINDS).order_by("seq")
    ours = When(packing=PACKING, then=None)
    rows = rows.annotate(
        other_at=Case(ours, default="at", output_field=DateTimeField()),
        other_payload=Case(ours, default="payload", output_field=JSONField()),
    )
    values = rows.values_list("seq", "figures", "other_at", "kind", "other_payload")
    return values.iterator(chunk_size=_EVENTS_AT_ONCE)


histories = Histories()


def series_of(job: Job, first: int = 1, last: int = _EVERY_ROUND) -> dict[str, Any]:
    """Return rounds `first` to `last` of the job, up to its row's last event or later."""
    lock, history = histories.of(job.pk, job.started_at, job.last_seq)
    with lock:
        drawn = make_buckets(history.columns, first, last)
        if job.observed in TERMINAL and history.rounds and last >= history.columns["round"][-1]:
            _end_at_the_sum(job, drawn)
        evaluations = [one for one in history.evaluations if first <= one.round_no <= last]
        return {
            "per_point": drawn.per_point,
            "rounds": history.rounds,
            "lines": list(LINES),
            "parts": list(PARTS),
            "columns": drawn.columns,
            "low": drawn.low,
            "high": drawn.high,
            "evaluations": {
                "round": [evaluation.round_no for evaluation in evaluations],
                "steps": [evaluation.steps for evaluation in evaluations],
                "mean": [evaluation.mean for evaluation in evaluations],
            },
            "marks": {kind: list(rounds) for kind, rounds in history.marks.items()},
        }


def _end_at_the_sum(job: Job, drawn: Bucketed) -> None:
    """Let a finished job's spending end at what its page's head says: rent and calls are booked until its end."""
    spent = job.account.spent_picodollars + job.account.overrun_picodollars
    if drawn.columns.get("spent_usd"):
        drawn.columns["spent_usd"][-1] = spent / PICODOLLARS_PER_USD


# Many rounds as few points, without hiding a spike: each point has the last value, the minimum and the maximum. A point
# stands for 1, 2, 4, 8, ... rounds, aligned to multiples of that number. So a growing run only ever merges two
# neighbouring points, and a page can do the same (static/js/charts/columns.js).


class Bucketed(NamedTuple):
    """Points of `per_point` rounds each. `low` and `high` are empty if a point is one round."""

    per_point: int
    columns: dict[str, list[float | None]]
    low: dict[str, list[float | None]]
    high: dict[str, list[float | None]]


def make_buckets(
    columns: Mapping[str, Sequence[float]], first: int, last: int, most: int = MOST_POINTS
) -> Bucketed:
    """Return rounds `first` to `last` as at most about `most` points."""
    rounds = np.asarray(columns["round"], dtype=np.float64)
    chosen = slice(int(np.searchsorted(rounds, first)), int(np.searchsorted(rounds, last, side="right")))
    rounds = rounds[chosen]
    if not len(rounds):
        return Bucketed(1, {}, {}, {})
    per_point = 1
    while len(rounds) / per_point > most:
        per_point *= 2
    starts = _starts(rounds, per_point)
    ends = np.append(starts[1:], len(rounds)) - 1
    values = {name: np.asarray(column, dtype=np.float64)[chosen] for name, column in columns.items()}
    points = {name: values[name][ends] for name in (*AXES, WALL)}
    low: dict[str, Numbers] = {}
    high: dict[str, Numbers] = {}
    with np.errstate(invalid="ignore"):
        for name in LINES:
            points[name] = _last_known(values[name], starts)
            if per_point > 1:
                low[name] = np.fmin.reduceat(values[name], starts)
                high[name] = np.fmax.reduceat(values[name], starts)
        for name in PARTS:
            points[name] = _means(values[name], starts)
    return Bucketed(per_point, _listed(points), _listed(low), _listed(high))


def _starts(rounds: Numbers, per_point: int) -> npt.NDArray[np.intp]:
    """Return where each point begins: rounds 1 to n, n + 1 to 2n, ... share a point."""
    ids = np.floor((rounds - 1) / per_point)
    return np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))


def _last_known(values: Numbers, starts: npt.NDArray[np.intp]) -> Numbers:
    where = np.where(np.isnan(values), -1, np.arange(len(values)))
    last = np.maximum.reduceat(where, starts)
    return np.where(last < 0, np.nan, values[np.maximum(last, 0)])


def _means(values: Numbers, starts: npt.NDArray[np.intp]) -> Numbers:
    known = ~np.isnan(values)
    counts = np.add.reduceat(known, starts)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _digits(name: str) -> int:
    """Horizontal positions need more digits than heights: a screen shows only some hundreds of heights."""
    return 6 if name in AXES or name == WALL else 4


def _listed(columns: Mapping[str, Numbers]) -> dict[str, Any]:
    """Return the column as a JSON list; None if it has no value."""
    return {
        name: [None if value != value else significant(value, _digits(name)) for value in column.tolist()]
        for name, column in columns.items()
        if name in AXES or name == WALL or not np.isnan(column).all()
    }
