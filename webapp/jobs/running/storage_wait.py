"""Jobs that wait for storage: while a disk is full, read-only or away, a run waits with what it learned in memory, and
jobs that had to pause for it go on by themselves.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from datetime import timedelta

from django.db import DatabaseError
from django.db.models import Q

from training.engine.checkpoints import CheckpointError
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import Observed
from webapp.jobs import services
from webapp.jobs.events.event_log import append_events, note
from webapp.jobs.lineage import load_first_checkpoint
from webapp.jobs.models import Checkpoint, Desired, Job
from webapp.jobs.reasons import ReasonCode
from webapp.jobs.running.checkpoint_files import CheckpointFiles, CheckpointNotWritten, checkpoint_folder
from webapp.money.budgets import NoRoom
from webapp.money.services import LimitTooLow

log = logging.getLogger(__name__)

_TRY_EVERY_S = 1.0
WAITS_IN_PLACE_S = 15 * 60.0
"""After so long the run pauses: its platform is released, and rounds since the last checkpoint are repeated later."""
TRIED_AGAIN_AFTER = timedelta(seconds=10)
LEFT_TO_OTHERS_FOR = timedelta(minutes=2)
"""For so long a machine that cannot read a job's checkpoints leaves the job to machines that can."""
_PROBE = ".can-write"
_SPARE_BYTES = 2**16
_JOBS_AT_ONCE = 100


class StorageWait:
    """Says of a run whose checkpoint cannot be written whether to try again, after a second."""

    def __init__(self, job_id: str, epoch: int, hand_over: threading.Event, *, clock: Clock) -> None:
        self._job_id = job_id
        self._epoch = epoch
        self._hand_over = hand_over
        self._clock = clock
        self._since_s: float | None = None

    def __call__(self, unwritten: CheckpointNotWritten) -> bool:
        """Return True after a while; False if the run is to end, or has waited for long."""
        if self._since_s is None:
            self._since_s = time.monotonic()
            log.warning("job %s waits: %s", self._job_id, unwritten)
            self._note(f"{unwritten} The job waits and goes on by itself.", str(unwritten)[:400])
        if self._hand_over.wait(_TRY_EVERY_S) or time.monotonic() - self._since_s > WAITS_IN_PLACE_S:
            return False
        try:
            return Job.objects.values_list("desired", flat=True).get(pk=self._job_id) == Desired.RUN
        except DatabaseError:
            return True

    def end(self) -> None:
        """Note that the wait is over, if there was one."""
        if self._since_s is not None:
            waited_s = time.monotonic() - self._since_s
            self._since_s = None
            self._note(f"The checkpoint could be written after {waited_s:,.0f} s. The job goes on.", "")

    def _note(self, text: str, reason: str) -> None:
        with contextlib.suppress(DatabaseError):  # the database may lie on the same disk
            changes = {"reason": reason}
            append_events(self._job_id, [note(text)], clock=self._clock, epoch=self._epoch, changes=changes)


WAITING_FOR_STORAGE = Q(
    observed=Observed.PAUSED,
    reason_code__in=(ReasonCode.CHECKPOINT_NOT_WRITTEN, ReasonCode.CHECKPOINT_UNREADABLE),
    desired=Desired.RUN,
)
"""Jobs that paused for their storage, and that no one paused beside."""


def resume_with_storage(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Queue the jobs that paused for their storage and whose folder can be used again."""
    waiting = Job.objects.filter(WAITING_FOR_STORAGE, since__lte=clock.now() - TRIED_AGAIN_AFTER)
    for job in waiting.order_by("since", "pk")[:_JOBS_AT_ONCE]:
        if can_read_checkpoint(job.pk) and can_write_checkpoint(job.pk):
            with contextlib.suppress(
                LimitTooLow, NoRoom
            ):  # budgets may have filled meanwhile: asked again later
                services.go_on_with_storage(job=job, clock=clock)


def leave_to_others(job: Job, *, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Return whether to leave a job that waits for a worker to another machine, because none of its checkpoints can be
    read on this one. Its row then says so; that is no event. Without another machine the job is run here after a while,
    and pauses with the reason.
    """
    if clock.now() - job.since >= LEFT_TO_OTHERS_FOR or can_read_checkpoint(job.pk):
        return False
    reason = (
        f"Waits for a machine that can read its checkpoints: there are none in {checkpoint_folder(job.pk)}."
    )
    waiting = Job.objects.filter(pk=job.pk, observed__in=(Observed.QUEUED, Observed.RECOVERING))
    waiting.exclude(reason=reason).update(reason=reason)
    return True


def can_read_checkpoint(job_id: str) -> bool:
    """Return whether the job can begin or resume: it has no checkpoint yet, or one that can be read."""
    rows = Checkpoint.objects.filter(job_id=job_id).order_by("-round_no")
    files = CheckpointFiles(checkpoint_folder(job_id))
    if rows:
        return any(files.load_recorded(row) is not None for row in rows)
    try:
        load_first_checkpoint(job_id)
    except CheckpointError:
        return False
    return True


def can_write_checkpoint(job_id: str) -> bool:
    """Return whether a file as large as the job's last checkpoint can be written beside it."""
    sizes = (
        Checkpoint.objects.filter(job_id=job_id).order_by("-round_no").values_list("byte_count", flat=True)
    )
    folder = checkpoint_folder(job_id)
    probe = folder / f"{_PROBE}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with probe.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, (sizes.first() or 0) + _SPARE_BYTES)
            os.fsync(file.fileno())
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return True
