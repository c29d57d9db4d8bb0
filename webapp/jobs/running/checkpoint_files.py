"""Checkpoint files on this installation's disk, and what to do when they cannot be written or read."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings

from training.engine.checkpoints import CheckpointError, FileCheckpointStore
from training.engine.ports import CheckpointRef
from webapp.jobs.models import Checkpoint

log = logging.getLogger(__name__)


def checkpoint_folder(job_id: str) -> Path:
    """Return the folder of a job's checkpoints."""
    return Path(settings.STARLING_DATA) / "checkpoints" / job_id


class CheckpointNotWritten(Exception):
    """A checkpoint could not be written. The text says why and what to do; an immediate retry would not help."""


class CheckpointsUnreadable(Exception):
    """Checkpoints are recorded, and none of their files can be read. The text says why and what to do."""


class CheckpointFiles(FileCheckpointStore):
    """A file store that removes half-written files and reports a failed write in one sentence.

    After a failed write, `wait` is called with the error: it returns True to try again, which keeps what was learned
    in memory until it is durable. `begun`: the folder held checkpoints before, so if it is missing it is away, and a
    new one in its place would hide them.
    """

    def __init__(
        self,
        folder: Path,
        keep: int = 3,
        *,
        begun: bool = False,
        wait: Callable[[CheckpointNotWritten], bool] = lambda _: False,
    ) -> None:
        super().__init__(folder, keep)
        self._place = folder
        self._begun = begun
        self._wait = wait

    def save(self, round_no: int, data: bytes, **options: Any) -> CheckpointRef:
        while True:
            try:
                return self._save(round_no, data, options)
            except OSError as error:
                self._remove_halves()
                unwritten = CheckpointNotWritten(
                    f"The checkpoint of round {round_no:,} could not be written to {self._place}:"
                    f" {(error.strerror or str(error)).lower()}. Make room there or allow writing, then start again."
                )
                if not self._wait(unwritten):
                    raise unwritten from error

    def _save(self, round_no: int, data: bytes, options: dict[str, Any]) -> CheckpointRef:
        if self._begun and not self._place.is_dir():
            raise FileNotFoundError(errno.ENOENT, "The folder is away")
        saved = super().save(round_no, data, **options)
        self._begun = True
        return saved

    def _remove_halves(self) -> None:
        with contextlib.suppress(OSError):
            for half in self._place.glob(f".*.{os.getpid()}"):
                half.unlink()

    def load_recorded(self, row: Checkpoint) -> bytes | None:
        """Return the checkpoint of `row`; None if its file is missing, damaged or another one."""
        try:
            data = self.load(row.name)
        except CheckpointError as error:
            log.warning("job %s: %s", row.job_id, error)
            return None
        if hashlib.sha256(data).hexdigest() != row.sha256:
            log.warning("job %s: %s is not the checkpoint that was recorded", row.job_id, row.name)
            return None
        return data
