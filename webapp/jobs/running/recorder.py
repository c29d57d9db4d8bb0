"""Stores the engine's events: each in one transaction with its number, its own row and the job's latest
figures. A write that failed has changed nothing and may be tried again.

A recorder writes under one epoch of the job's lease and raises LeaseLost once that is over. Ticks are not
stored. Failed calls come in large numbers, so they wait for the next other event (a tick at the latest, so a
second) and are written with it.
"""

import json
import math
from typing import Any

from django.db import transaction
from django.db.models import FloatField
from django.db.models.functions import Coalesce, Greatest, Least

from training.engine.messages import (
    CallFailed,
    CheckpointSaved,
    Evaluated,
    Event,
    RoundFinished,
    Started,
    Stopped,
    Tick,
)
from training.tasks.score import USUAL, Score
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.leases import NOT_HELD
from webapp.job_states import Observed
from webapp.jobs import failpoints
from webapp.jobs.events.event_log import EventEntry, append_events, transition
from webapp.jobs.events.event_text import sentence
from webapp.jobs.models import Checkpoint, Job, Round
from webapp.jobs.reasons import OF_ENGINE, Reason
from webapp.money.amounts import exact_usd
from webapp.money.models import Account
from webapp.money.services import close_books

_FAILED_CALLS_AT_ONCE = 200


def as_json(event: Event) -> dict[str, Any]:
    """Return the event as plain JSON values; non-finite numbers become null, as databases require."""
    return dict(json.loads(event.model_dump_json()))


class Recorder:
    """Stores the events of a run under `epoch`. The last event goes to `finish`, once everything is paid."""

    def __init__(
        self,
        job_id: str,
        epoch: int,
        *,
        keep_checkpoints: int,
        score: Score = USUAL.score,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._job_id = job_id
        self._epoch = epoch
        self._keep_checkpoints = keep_checkpoints
        self._score = score
        self._clock = clock
        self._waiting: list[EventEntry] = []

    def record(self, event: Event) -> None:
        """Store one event. Raises LeaseLost."""
        if isinstance(event, CallFailed):
            if len(self._waiting) >= _FAILED_CALLS_AT_ONCE:
                self.flush()
            self._waiting.append(EventEntry(event.kind, as_json(event)))
        elif isinstance(event, Tick):
            self.flush()
        else:
            self._write(event)
            self._waiting.clear()

    def _write(self, event: Event) -> None:
        """Store the event, with the failed calls that wait."""
        match event:
            case Started():
                self._started(event)
            case RoundFinished():
                self._round(event)
                failpoints.reach("after_round")
            case Evaluated():
                self._append(event, {"evaluated_score": event.score})
            case CheckpointSaved(best=True):
                # Not resumed from, so it has no row; its file is found by its name.
                self._append(event, {})
            case CheckpointSaved():
                failpoints.reach("after_checkpoint_file")
                self._checkpoint(event)

    def flush(self) -> None:
        """Store the failed calls that wait."""
        if self._waiting:
            append_events(self._job_id, self._waiting, clock=self._clock, epoch=self._epoch)
            self._waiting.clear()

    def _append(self, event: Event, changes: dict[str, Any]) -> None:
        """Store the event and changes of the job's row."""
        entries = [*self._waiting, EventEntry(event.kind, as_json(event))]
        append_events(self._job_id, entries, clock=self._clock, epoch=self._epoch, changes=changes)

    @transaction.atomic
    def _started(self, event: Started) -> None:
        job = Job.objects.select_for_update().get(pk=self._job_id)
        if job.observed != Observed.STARTING:  # a stop was requested meanwhile: the job is draining already
            self._append(event, {})
            return
        transition(
            self._job_id,
            Reason.RUNNING.change(),
            clock=self._clock,
            epoch=self._epoch,
            changes={"started_at": job.started_at or self._clock.now()},
            before=[EventEntry(event.kind, as_json(event))],
        )

    @transaction.atomic
    def _round(self, event: RoundFinished) -> None:
        report = event.report
        mine = Round.objects.filter(job_id=self._job_id, round_no=report.round_no, epoch=self._epoch)
        if mine.exists():  # the database kept it, and went down before it said so
            return
        changes: dict[str, Any] = {
            "round_no": report.round_no,
            "total_progress": report.total_progress,
            "actors": report.actors,
            "platform_s": report.started_s + report.total_s,
        }
        if report.score is not None and math.isfinite(report.score):
            changes |= _scores(report.score, self._score)
        self._append(event, changes)

    @transaction.atomic
    def _checkpoint(self, event: CheckpointSaved) -> None:
        self._append(event, {"crashes": 0, "losses": 0})
        mine = Checkpoint.objects.filter(job_id=self._job_id)
        mine.filter(round_no__gte=event.round_no).delete()
        Checkpoint.objects.create(
            job_id=self._job_id,
            round_no=event.round_no,
            epoch=self._epoch,
            name=event.name,
            sha256=event.sha256,
            byte_count=event.byte_count,
            at=self._clock.now(),
        )
        gone = mine.order_by("-round_no").values_list("pk", flat=True)[self._keep_checkpoints :]
        mine.filter(pk__in=list(gone)).delete()

    @transaction.atomic
    def finish(self, stopped: Stopped) -> None:
        """Store the run's last event and the job's new state. Nothing may be paid under this epoch afterwards."""
        # Lock the job's row first, as everywhere: another order would deadlock.
        Job.objects.select_for_update().get(pk=self._job_id)
        close_books(job_id=self._job_id, before_epoch=self._epoch + 1, clock=self._clock)
        transition(
            self._job_id,
            OF_ENGINE[stopped.reason_code].change(words=sentence(stopped.reason)),
            clock=self._clock,
            epoch=self._epoch,
            changes=self._last_figures(stopped) | NOT_HELD,
            before=[*self._waiting, EventEntry(stopped.kind, as_json(stopped))],
        )

    def _last_figures(self, stopped: Stopped) -> dict[str, Any]:
        account = Account.objects.get(job_id=self._job_id)
        summary = as_json(stopped)
        summary["cost_usd"] = exact_usd(account.spent_picodollars + account.overrun_picodollars)
        return {
            "summary": summary,
            "platform_s": stopped.platform_s,
            "evaluated_score": stopped.evaluated_score,
            "training_score": stopped.training_score,
        }


def _scores(value: float, score: Score) -> dict[str, Any]:
    """Return the job's last, best and worst score."""
    best, worst = (Greatest, Least) if score.higher_is_better else (Least, Greatest)
    return {
        "training_score": value,
        "best_training_score": best(Coalesce("best_training_score", value), value, output_field=FloatField()),
        "worst_training_score": worst(
            Coalesce("worst_training_score", value), value, output_field=FloatField()
        ),
    }
