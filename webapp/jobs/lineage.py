"""What a job was made from: a clone, the same again, or a fork that begins with what another job had learned.

A fork's beginning is copied beside its own checkpoints when it is launched: those of the other job come and go.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from training.checkpoints import CheckpointError, read_checkpoint
from webapp.jobs.form.spec_problems import Problem
from webapp.jobs.models import Job, Origin, Way
from webapp.jobs.policies.downloads import Kept, checkpoint, checkpoint_path
from webapp.jobs.spec import JobSpec

BEGINNING = "beginning.checkpoint"
"""The file's name; those of a job's own checkpoints begin with round- or best-."""
_STAYS = ("environment", "network")
_NORMALISED = "normalise_observations"


@dataclass(frozen=True)
class From:
    """What a new job is made from. A fork says which checkpoint and where its file lies."""

    job: Job
    way: Way
    checkpoint: str = ""
    round_no: int | None = None
    sha256: str = ""
    file: Path | None = None

    @property
    def words(self) -> str:
        """The end of the sentence that tells of the launch."""
        if self.way == Way.FORK:
            return f", beginning with what {self.job.name} ({self.job.pk}) had learned after round {self.round_no:,}"
        return f", {self.get_way} {self.job.name} ({self.job.pk})"

    @property
    def get_way(self) -> str:
        return {Way.CLONE: "cloned from", Way.AGAIN: "running again what ran as"}[self.way]

    def obstacles(self, spec: JobSpec) -> list[Problem]:
        """What of the spec does not fit what it is to begin with."""
        if self.way != Way.FORK:
            return []
        was, now = self.job.parsed_spec().training, spec.training
        found = []
        for part in _STAYS:
            if getattr(was, part) != getattr(now, part):
                path = "training.environment.id" if part == "environment" else f"training.{part}"
                found.append(
                    Problem(
                        path,
                        f"{part.capitalize()} ({path}): a fork keeps that of {self.job.name}, whose weights it begins"
                        " with. Put it back, or start a new job.",
                    )
                )
        if getattr(was.algorithm, _NORMALISED) != getattr(now.algorithm, _NORMALISED):
            path = f"training.algorithm.{_NORMALISED}"
            which = "with" if getattr(was.algorithm, _NORMALISED) else "without"
            found.append(
                Problem(
                    path,
                    f"Normalise observations ({path}): the weights of {self.job.name} were learned {which} it.",
                )
            )
        return found


def fork_of(job: Job, chosen: Kept) -> From:
    file = checkpoint_path(job.pk, chosen.name)
    return From(job, Way.FORK, chosen.name, chosen.round_no, chosen.sha256, file)


def forked(job: Job, name: str) -> From | None:
    """A fork of the job's checkpoint of that name (none: the best, else the newest); None if there is no such one."""
    chosen = checkpoint(job, name)
    return fork_of(job, chosen) if chosen is not None else None


def same_beginning(job: Job) -> From | None:
    """For another run of a fork's question: what that fork began with. None for a job that began with nothing."""
    origin = Origin.objects.filter(job=job, way=Way.FORK).select_related("of").first()
    if origin is None:
        return None
    of = origin.of or job
    return From(of, Way.FORK, origin.checkpoint, origin.round_no, origin.sha256, beginning_of(job.pk))


def beginning_of(job_id: str) -> Path:
    return Path(settings.STARLING_DATA) / "checkpoints" / job_id / BEGINNING


def remember(job: Job, made_from: From) -> None:
    """Write down what the new job was made from, and keep a fork's beginning. CheckpointError if that is not there."""
    if made_from.file is not None:
        _copied(made_from, beginning_of(job.pk))
    Origin.objects.create(
        job=job,
        of=made_from.job,
        way=made_from.way,
        checkpoint=made_from.checkpoint,
        round_no=made_from.round_no,
        sha256=made_from.sha256,
    )


def _copied(made_from: From, to: Path) -> None:
    assert made_from.file is not None
    data = read_checkpoint(made_from.file)
    if hashlib.sha256(data).hexdigest() != made_from.sha256:
        raise CheckpointError(f"{made_from.file.name} is not the checkpoint that was recorded")
    to.parent.mkdir(parents=True, exist_ok=True)
    half = to.with_name(f".{to.name}.{os.getpid()}")
    try:
        shutil.copyfile(made_from.file, half)
        half.replace(to)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise CheckpointError(f"{made_from.file.name} cannot be copied: {error.strerror}") from None


def beginning(job_id: str) -> bytes | None:
    """What a fork begins with; None for other jobs. CheckpointError if it is lost."""
    sha256 = Origin.objects.filter(job_id=job_id, way=Way.FORK).values_list("sha256", flat=True).first()
    if sha256 is None:
        return None
    data = read_checkpoint(beginning_of(job_id))
    if hashlib.sha256(data).hexdigest() != sha256:
        raise CheckpointError(f"{BEGINNING} is not the checkpoint that was recorded")
    return data


def origin_of(job: Job) -> Origin | None:
    """What pages show of it."""
    return Origin.objects.filter(job=job).select_related("of").first()


def launched_from(job: Job) -> list[Any]:
    """The jobs that were made from this one, newest first."""
    return list(Origin.objects.filter(of=job).select_related("job").order_by("-job__created_at")[:20])
