"""What a job was made from: a clone, a repetition, or a fork that starts from another job's checkpoint.

A fork's checkpoint is copied to the fork at launch, because the other job may delete its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.engine.checkpoints import CheckpointError, read_checkpoint
from training.tasks.kinds import task_of
from training.tasks.task import Mismatch
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.models import Job, Origin, OriginKind
from webapp.jobs.policies.downloads import KeptCheckpoint, checkpoint, checkpoint_path
from webapp.jobs.running.checkpoint_files import checkpoint_folder
from webapp.jobs.spec import JobSpec

BEGINNING = "beginning.checkpoint"
"""The file's name. Names of a job's own checkpoints begin with round- or best-."""


@dataclass(frozen=True)
class Source:
    """The source of a new job. A fork has its checkpoint's name and file."""

    job: Job
    way: OriginKind
    checkpoint: str = ""
    round_no: int | None = None
    sha256: str = ""
    file: Path | None = None

    @property
    def words(self) -> str:
        """The end of the launch event's sentence."""
        if self.way == OriginKind.FORK:
            when = f"{self.job.declaration.round_name} {self.round_no:,}"
            return f", starting from {self.job.name} ({self.job.pk}) after {when}"
        return f", {self.get_way} {self.job.name} ({self.job.pk})"

    @property
    def get_way(self) -> str:
        return {OriginKind.CLONE: "cloned from", OriginKind.AGAIN: "running again what ran as"}[self.way]

    def obstacles(self, spec: JobSpec) -> list[SpecProblem]:
        """Return where the spec does not fit the fork's checkpoint."""
        if self.way != OriginKind.FORK:
            return []
        was, now = self.job.parsed_spec().training, spec.training
        if was.kind != now.kind:
            return [self._problem(Mismatch("kind", "kind"))]
        return [self._problem(mismatch) for mismatch in task_of(now).mismatches(was)]

    def _problem(self, mismatch: Mismatch) -> SpecProblem:
        path, name = f"training.{mismatch.path}", self.job.name
        if mismatch.learned:
            why = f"the weights of {name} were learned {mismatch.learned}."
        else:
            why = f"a fork keeps that of {name}, because it starts with its weights. Reset it, or start a new job."
        return SpecProblem(path, f"{mismatch.part.capitalize()} ({path}): {why}")


def fork_of(job: Job, chosen: KeptCheckpoint) -> Source:
    file = checkpoint_path(job.pk, chosen.name)
    return Source(job, OriginKind.FORK, chosen.name, chosen.round_no, chosen.sha256, file)


def fork_source(job: Job, name: str) -> Source | None:
    """Return a fork of the checkpoint with that name (empty: the best, else the newest); None if there is none."""
    chosen = checkpoint(job, name)
    return fork_of(job, chosen) if chosen is not None else None


def repeated_fork_source(job: Job) -> Source | None:
    """Return the source for a repetition of a fork; None for a job that is no fork."""
    origin = Origin.objects.filter(job=job, way=OriginKind.FORK).select_related("of").first()
    if origin is None:
        return None
    of = origin.of or job
    return Source(
        of, OriginKind.FORK, origin.checkpoint, origin.round_no, origin.sha256, first_checkpoint_path(job.pk)
    )


def first_checkpoint_path(job_id: str) -> Path:
    return checkpoint_folder(job_id) / BEGINNING


def remember(job: Job, made_from: Source) -> None:
    """Store the new job's source and copy a fork's checkpoint. CheckpointError if that is missing."""
    if made_from.file is not None:
        _copied(made_from, first_checkpoint_path(job.pk))
    Origin.objects.create(
        job=job,
        of=made_from.job,
        way=made_from.way,
        checkpoint=made_from.checkpoint,
        round_no=made_from.round_no,
        sha256=made_from.sha256,
    )


def _copied(made_from: Source, to: Path) -> None:
    assert made_from.file is not None
    data = read_checkpoint(made_from.file)
    if hashlib.sha256(data).hexdigest() != made_from.sha256:
        raise CheckpointError(f"{made_from.file.name} is not the checkpoint that was recorded")
    half = to.with_name(f".{to.name}.{os.getpid()}")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made_from.file, half)
        half.replace(to)
    except OSError as error:
        with suppress(OSError):
            half.unlink(missing_ok=True)
            to.parent.rmdir()
        raise CheckpointError(f"{made_from.file.name} cannot be copied: {error.strerror}") from None


def load_first_checkpoint(job_id: str) -> bytes | None:
    """Return a fork's first checkpoint; None for other jobs. CheckpointError if it is lost."""
    sha256 = (
        Origin.objects.filter(job_id=job_id, way=OriginKind.FORK).values_list("sha256", flat=True).first()
    )
    if sha256 is None:
        return None
    data = read_checkpoint(first_checkpoint_path(job_id))
    if hashlib.sha256(data).hexdigest() != sha256:
        raise CheckpointError(f"{BEGINNING} is not the checkpoint that was recorded")
    return data


def origin_of(job: Job) -> Origin | None:
    """Return the job's source for display."""
    return Origin.objects.filter(job=job).select_related("of").only("way", "round_no", "of__name").first()


def list_descendants(job: Job) -> list[Any]:
    """Return the jobs that were made from this one, newest first."""
    rows = Origin.objects.filter(of=job).select_related("job").only("way", "round_no", "job__name")
    return list(rows.order_by("-job__created_at")[:20])
