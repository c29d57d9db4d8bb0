"""A job's history as columns, kept by the process that shows it and brought up to date by new events only.

A page of a job with 100,000 rounds costs one long look, and then next to nothing. What a resume repeats is forgotten
as soon as it is told, exactly as pages do it.
"""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from webapp.charts.columns import AXES, NAMES, READERS, USD, WALL
from webapp.jobs.models import Event, EventKind

MARKED = (EventKind.CHECKPOINT, EventKind.CALL_FAILED, EventKind.RESUMED, EventKind.BUDGET)
MOST_MARKS = 400
"""Of each kind; of more, the last."""
MOST_ROUNDS_KEPT = 400_000
"""Over all jobs this process has shown; those that were not looked at for longest are read again when they are."""
_KINDS = (EventKind.STARTED, EventKind.ROUND, EventKind.EVALUATION, *MARKED)
_EVENTS_AT_ONCE = 2_000


class Evaluation(NamedTuple):
    round_no: int
    steps: int
    mean: float
    std: float
    episodes: int


class History:
    """What is known of one job up to event number `seq`."""

    def __init__(self, started_at: datetime | None) -> None:
        self._started_at = started_at
        self.seq = 0
        self.columns: dict[str, array[float]] = {
            name: array("d" if name in AXES or name == WALL else "f") for name in NAMES
        }
        self.evaluations: list[Evaluation] = []
        self.marks: dict[str, list[int]] = {kind: [] for kind in MARKED}

    @property
    def rounds(self) -> int:
        return len(self.columns["round"])

    def spent_usd_after(self, round_no: int) -> float:
        """What had been spent by the end of that round; 0 before the first."""
        known = bisect_right(self.columns["round"], round_no)
        return self.columns["spent_usd"][known - 1] if known else 0.0

    def take(self, seq: int, at: datetime, kind: str, payload: Mapping[str, Any]) -> None:
        """One event of a kind in _KINDS, in order."""
        self.seq = seq
        if kind == EventKind.STARTED:
            self._started_at = self._started_at or at
        elif kind == EventKind.ROUND:
            self._round(payload["report"], at)
        elif kind == EventKind.EVALUATION:
            self._evaluation(payload)
        elif kind == EventKind.CHECKPOINT:
            self._mark(kind, payload["round_no"])
        elif kind == EventKind.RESUMED:
            self.forget_after(payload["from_round"])
            self._mark(kind, payload["from_round"])
        else:
            self._mark(kind, self._last_round() + 1)

    def forget_after(self, round_no: int) -> None:
        """A job that goes on from there makes the later rounds again."""
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

    def _round(self, report: Mapping[str, Any], at: datetime) -> None:
        self.forget_after(report["round_no"] - 1)
        if self._started_at is None:
            self._started_at = at
        spent = self.columns["spent_usd"]
        before = spent[-1] if spent else 0.0
        for name, read in READERS.items():
            value = read(report)
            if value is None and name == "spent_usd":  # nothing was metered: what the rounds say they cost
                value = before + report["cost_picodollars"] / USD
            self.columns[name].append(math.nan if value is None else value)
        self.columns[WALL].append((at - self._started_at).total_seconds())

    def _evaluation(self, payload: Mapping[str, Any]) -> None:
        while self.evaluations and self.evaluations[-1].round_no >= payload["round_no"]:
            self.evaluations.pop()
        self.evaluations.append(
            Evaluation(
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
    """The histories this process holds, by job; safe to ask from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[threading.Lock, History]] = OrderedDict()

    def of(self, job_id: str, started_at: datetime | None, upto: int) -> tuple[threading.Lock, History]:
        """The job's history up to event `upto`, or a little further; read it while holding its lock."""
        with self._lock:
            lock, history = self._known.pop(job_id, None) or (threading.Lock(), History(started_at))
            self._known[job_id] = lock, history
        with lock:
            if history.seq < upto:
                for row in _rows(job_id, history.seq, upto):
                    history.take(*row)
                history.seq = max(history.seq, upto)
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


def _rows(job_id: str, after: int, upto: int) -> Iterable[tuple[int, datetime, str, dict[str, Any]]]:
    rows = Event.objects.filter(job_id=job_id, seq__gt=after, seq__lte=upto, kind__in=_KINDS).order_by("seq")
    return rows.values_list("seq", "at", "kind", "payload").iterator(chunk_size=_EVENTS_AT_ONCE)


histories = Histories()
