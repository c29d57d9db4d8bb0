"""The life cycle of what the worker does beside jobs: films, surfaces, reports, bills, data sets.

A row waits until an attempt of a worker begins it, and ends ready or failed. The row is the truth: a tick sends lost
messages again, and rows of dead workers wait again or fail.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db import models, transaction
from django.db.models import QuerySet

from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.storage_faults import storage_fault

log = logging.getLogger(__name__)

TASK = "webapp.background.run"
QUEUED, READY, FAILED = "queued", "ready", "failed"
"""States that all kinds have. Each has its own one for being worked on."""
RESEND_AFTER = timedelta(seconds=4)
_AT_ONCE = 10
_MOST_LETTERS = 500


class BackgroundWork(models.Model):
    """A row that the worker works off."""

    state = models.CharField(max_length=10, default=QUEUED)
    reason = models.TextField(blank=True, default="")
    since = models.DateTimeField()
    attempt = models.IntegerField(default=0)
    """Counts the workers that began it; only the last of them may write."""

    class Meta:
        abstract = True


Row = TypeVar("Row", bound=BackgroundWork)


class Postponed(Exception):
    """The work waits for another attempt. The text says why, and may be empty."""


class WorkRefused(Exception):
    """The work cannot be done. The text says why, as a sentence for people."""


class TakenOver(Exception):
    """The row is gone, or another attempt has begun: nothing more may be written."""


def send(model: type[BackgroundWork], pk: Any) -> bool:
    """Tell the worker of a row that waits; False if no message could be sent."""
    return send_hint(TASK, model._meta.label_lower, pk, expires=60)


def send_on_commit(row: BackgroundWork) -> None:
    transaction.on_commit(lambda: send(type(row), row.pk), robust=True)


class Attempt(Generic[Row]):
    """One worker's work on one row."""

    def __init__(self, row: Row, clock: Clock) -> None:
        self.row = row
        self.clock = clock
        self._mine = type(row)._default_manager.filter(pk=row.pk, state=row.state, attempt=row.attempt)

    def write(self, **changes: Any) -> None:
        """Write to the row, and that this worker is alive. Raises TakenOver."""
        if not self._mine.update(**{"since": self.clock.now(), **changes}):
            raise TakenOver


class LifeCycle(ABC, Generic[Row]):
    """One kind of background work. One row at a time is worked on: it keeps a core busy, and training has priority."""

    model: type[Row]
    working: str
    silent_for: timedelta
    """After so long without a write, the worker of an attempt is taken for dead."""
    interrupted = ""
    """Why a row whose worker is dead has failed. Empty: it waits again."""
    resumes = ""
    """When work that a full disk stopped goes on. Empty: it fails."""
    unforeseen = "It could not be done ({}). The worker's log says more."
    waiting: tuple[str, ...] = (QUEUED,)
    not_begun: dict[str, Any] = {}
    """The columns of a row that waits again."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()

    @property
    def name(self) -> str:
        return str(self.model._meta.label_lower)

    @property
    def rows(self) -> QuerySet[Row]:
        return self.model._default_manager.all()

    @abstractmethod
    def do(self, attempt: Attempt[Row]) -> None:
        """Do the work, and write the row's last state. Raises Postponed, WorkRefused or TakenOver."""

    def may_begin(self, row: Row, clock: Clock) -> bool:
        return True

    def fail(self, attempt: Attempt[Row], reason: str) -> None:
        attempt.write(state=FAILED, reason=reason)

    def finish(self, pk: Any) -> None:
        """Do what follows an attempt, however it ended."""

    def tidy(self, now: datetime) -> None:
        """Remove what no row needs, at each tick."""

    def run(self, pk: Any, *, clock: Clock = SYSTEM_CLOCK) -> None:
        """Work the row off if it waits. Does nothing while this worker works on another."""
        if not self._one_at_a_time.acquire(blocking=False):
            return
        try:
            if (attempt := self.begin(pk, clock)) is not None:
                self.work(attempt)
            self.finish(pk)
        except TakenOver:
            log.warning("%s %s was given up or has another worker now", self.name, pk)
        finally:
            self._one_at_a_time.release()

    @transaction.atomic
    def begin(self, pk: Any, clock: Clock) -> Attempt[Row] | None:
        """Take the row; None if it does not wait, or may not begin now."""
        row = self.rows.select_for_update().filter(pk=pk, state=QUEUED).first()
        if row is None or not self.may_begin(row, clock):
            return None
        row.state, row.attempt, row.since = self.working, row.attempt + 1, clock.now()
        row.save(update_fields=["state", "attempt", "since"])
        return Attempt(row, clock)

    def work(self, attempt: Attempt[Row]) -> None:
        """Do the work of an attempt that has begun. Raises TakenOver."""
        try:
            self.do(attempt)
        except TakenOver:
            raise
        except Postponed as wait:
            attempt.write(**{"reason": str(wait), **self.not_begun}, state=QUEUED)
        except WorkRefused as refusal:
            self.fail(attempt, str(refusal)[:_MOST_LETTERS])
        except Exception as error:
            fault = storage_fault(error) if self.resumes else None
            if fault is None:
                log.exception("%s %s", self.name, attempt.row.pk)
                self.fail(attempt, self.unforeseen.format(type(error).__name__))
            else:
                log.warning("%s %s goes on later: %s", self.name, attempt.row.pk, error)
                reason = f"{fault.why} {self.resumes}"
                attempt.write(**{"reason": reason, **self.not_begun}, state=QUEUED)

    def recover(self, *, clock: Clock = SYSTEM_CLOCK) -> None:
        """Give up the attempts of dead workers, and send lost messages again."""
        now = clock.now()
        lost = self.rows.filter(state=self.working, since__lt=now - self.silent_for)
        if self.interrupted:
            lost.update(state=FAILED, reason=self.interrupted, since=now)
        else:
            lost.update(state=QUEUED, since=now - RESEND_AFTER)
        self.tidy(now)
        if self._one_at_a_time.locked():
            return
        for pk in self.due(now):
            if not send(self.model, pk):
                return

    def due(self, now: datetime) -> list[Any]:
        """Return the rows whose message was lost, or that could not begin."""
        late = self.rows.filter(state__in=self.waiting, since__lte=now - RESEND_AFTER)
        return list(late.order_by("since").values_list("pk", flat=True)[:_AT_ONCE])
