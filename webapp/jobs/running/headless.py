"""A run without the dashboard: the engine, a platform, and a ledger in memory that holds the budget."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

from cloud.fingerprint import fingerprint
from cloud.money.billing.work_file import WorkFile
from cloud.money.ledger import MemoryLedger
from training.engine.checkpoints import Progress, read_checkpoint
from training.engine.messages import CheckpointSaved, Event, Stopped
from training.engine.ports import CheckpointRef, CheckpointStore, Control
from training.engine.train import train
from training.scaling.plan import Bounds
from webapp.jobs.form.spec_documents import SpecError
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.launch.preflight import obstacle, platform_obstacle
from webapp.jobs.running.assembly import assemble
from webapp.jobs.running.checkpoint_files import CheckpointFiles
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD, picodollars

_NEEDS_A_PROJECT = SpecProblem(
    "platform.kind",
    "platform.kind: AWS Lambda and Azure need an account that a project of the dashboard is connected to, and machines"
    " of yours call at the dashboard. Launch it there, or train here with platform.kind=local or simulated.",
)


class _NoCheckpoints:
    """For runs that cannot be resumed."""

    def save(self, round_no: int, data: bytes, *, best: bool = False) -> CheckpointRef:
        return CheckpointRef("", round_no, hashlib.sha256(data).hexdigest(), len(data))

    def load(self, name: str) -> bytes:
        raise LookupError(name)


def _usable(folder: Path) -> Path:
    """Return the folder if it is writable or can be created: checked before hours of work. Raises SpecError."""
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        kind = "cannot be written" if nearest.is_dir() else "is not a folder"
        raise SpecError(
            [SpecProblem("", f"--checkpoints {folder} must be a folder to write to; {nearest} {kind}.")]
        )
    return folder


def _records(path: Path, *, goes_on: bool) -> WorkFile:
    """Return the file of work if it can be created. An existing file is only continued by a resumed run."""
    if path.exists() and not goes_on:
        raise SpecError(
            [SpecProblem("", f"--work {path} exists already; name a new file or move that away.")]
        )
    try:
        return WorkFile(path)
    except OSError as error:
        raise SpecError([SpecProblem("", f"--work {path} cannot be written: {error.strerror}.")]) from None


class Headless:
    """One run of a spec. Before `events` it creates only an empty file of work.

    On creation: SpecError if this machine cannot run it, CheckpointError if it cannot resume from `resume`.
    During the run: CheckpointNotWritten.
    """

    def __init__(
        self,
        spec: JobSpec,
        *,
        checkpoints: Path | None = None,
        resume: Path | None = None,
        work: Path | None = None,
    ) -> None:
        self._spec = spec
        if spec.needs_connection:
            raise SpecError([_NEEDS_A_PROJECT])
        if obstacle_found := platform_obstacle(spec) or obstacle(spec.training):
            raise SpecError([obstacle_found])
        self._resume = read_checkpoint(resume) if resume is not None else None
        if self._resume is not None:
            Progress.resume(self._resume, spec.training)
        self._store: CheckpointStore = _NoCheckpoints()
        self._keeps = checkpoints is not None
        if checkpoints is not None:
            self._store = CheckpointFiles(_usable(checkpoints), spec.training.checkpoints.keep)
        self._records = _records(work, goes_on=resume is not None) if work is not None else None
        self._ledger = MemoryLedger(
            picodollars(spec.budget_usd), on_settled=self._records.add if self._records else lambda _: None
        )
        sizes_mb = spec.platform.memory_sizes_mb(spec.training.memory_mb)
        self._bounds = Bounds(memory_sizes_mb=sizes_mb)
        self._stopping = False
        self._stopped: Stopped | None = None

    def stop(self) -> None:
        """End the run within about a second."""
        self._stopping = True

    def events(self) -> Iterator[Event]:
        """Run to the end and yield the events."""

        if self._records is not None:
            self._records.begin(self._spec.model_dump(mode="json"), fingerprint(settings.BASE_DIR))
        platform = assemble(self._spec, self._ledger)
        try:
            events = train(
                self._spec.training,
                platform=platform,
                checkpoints=self._store,
                control=self._control,
                resume=self._resume,
            )
            for event in events:
                if isinstance(event, Stopped):
                    self._stopped = event
                if self._keeps or not isinstance(event, CheckpointSaved):
                    yield event
        finally:
            platform.close()
            if self._records is not None:
                self._records.close()

    def _control(self) -> Control:
        return Control(desired="cancelled" if self._stopping else "run", bounds=self._bounds)

    @property
    def spent_picodollars(self) -> int:
        """The whole cost so far, from the ledger."""
        return self._ledger.spend().spent_picodollars

    def summary(self) -> dict[str, Any]:
        """Return the result, with the whole cost from the ledger."""
        if self._stopped is None:
            raise RuntimeError("the run is not over")
        figures = self._stopped.model_dump(mode="json", exclude={"kind", "cost_picodollars"})
        return {
            "kind": "summary",
            **figures,
            "cost_usd": self.spent_picodollars / PICODOLLARS_PER_USD,
            "budget_usd": float(self._spec.budget_usd),
            "simulated": self._spec.simulated,
        }
