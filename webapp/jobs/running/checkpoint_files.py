"""Checkpoint files on this installation's disk, and the error when the disk is full."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from django.conf import settings

from training.checkpoints import FileCheckpointStore
from training.ports import CheckpointRef


def checkpoint_folder(job_id: str) -> Path:
    """Return the folder of a job's checkpoints."""
    return Path(settings.STARLING_DATA) / "checkpoints" / job_id


class CheckpointNotWritten(Exception):
    """A checkpoint could not be written. The text says why and what to do; an immediate retry would not help."""


class CheckpointFiles(FileCheckpointStore):
    """A file store that removes half-written files and reports a failed write in one sentence."""

    def __init__(self, folder: Path, keep: int = 3) -> None:
        super().__init__(folder, keep)
        self._place = folder

    def save(self, round_no: int, data: bytes, **options: Any) -> CheckpointRef:
        try:
            return super().save(round_no, data, **options)
        except OSError as error:
            with contextlib.suppress(OSError):
                for half in self._place.glob(f".*.{os.getpid()}"):
                    half.unlink()
            raise CheckpointNotWritten(
                f"The checkpoint of round {round_no:,} could not be written to {self._place}:"
                f" {(error.strerror or str(error)).lower()}. Make room there or allow writing, then start again."
            ) from error
