"""A run that is a study rather than one training: its rows, from wherever they were left to the last."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from research.branching import Branching, forks
from research.experiment import Cell, Experiment
from research.reliability import Reliability, measurements
from research.runs.dependencies import DependencyMissing, dependency_files
from research.runs.run_file import RunFile
from research.scheduler_training import RehearsedTraining, episodes, rounds_of
from training.spec import TrainingSpec
from webapp.jobs.spec import JobSpec


class StudyRun:
    """One study. `stop` ends it after the fork or the episode under way."""

    def __init__(
        self, experiment: Experiment, cell: Cell, file: RunFile, spec: JobSpec, *, quick: bool
    ) -> None:
        self._experiment = experiment
        self._cell = cell
        self._file = file
        self._spec = spec
        self._quick = quick
        self._stopped = False
        self._stop_headless: Callable[[], None] = lambda: None

    def stop(self) -> None:
        self._stopped = True
        self._stop_headless()

    def run(self, folder: Path) -> None:
        study = self._experiment.arm(self._cell.arm).study
        assert study is not None
        if self._quick:
            study = study.quick()
        before = self._file.rows()
        wall_before = max((row["wall_s"] for row in before if "wall_s" in row), default=0.0)
        cost = sum(row.get("episode_usd", 0.0) for row in before)
        began_s, last = time.monotonic(), 0
        rows = self._rows_of(study, folder)
        for row in rows:
            if self._stopped:
                return
            cost += row.get("episode_usd", 0.0)
            last = row["round"]
            self._file.append({**row, "wall_s": wall_before + time.monotonic() - began_s, "cost_usd": cost})
        if not self._stopped:
            self._file.append(
                {
                    "kind": "end",
                    "round": last,
                    "reason": "all of it is done",
                    "wall_s": wall_before + time.monotonic() - began_s,
                    "cost_usd": cost,
                }
            )

    def _rows_of(self, study: Branching | RehearsedTraining | Reliability, folder: Path) -> Any:
        if isinstance(study, Branching):
            return self._forks(study)
        if isinstance(study, RehearsedTraining):
            return self._episodes(study, folder)
        done = {row["round"] for row in self._file.rows() if row["kind"] == "reliability"}
        return measurements(reinforcement_of(self._spec), study, done)

    def _forks(self, branching: Branching) -> Any:
        done = {(row["round"], row["replicate"]) for row in self._file.rows() if row["kind"] == "fork"}
        platform = self._spec.platform.open()  # type: ignore[call-arg]
        try:
            yield from forks(reinforcement_of(self._spec), branching, platform, done)
        finally:
            platform.close()

    def _episodes(self, scheduler_training: RehearsedTraining, folder: Path) -> Any:
        files = dependency_files(self._experiment, folder, self._cell)
        recorded = []
        for name in scheduler_training.recorded:
            paths = sorted(files[name].checkpoints.glob("round-*.checkpoint"))
            if not paths:
                raise DependencyMissing(f"{files[name].path} has no checkpoint to rehearse with.")
            recorded.append(rounds_of(paths[-1], self._spec))
        begin_with = (
            files[scheduler_training.begin_with].scheduler() if scheduler_training.begin_with else None
        )
        done = [row["round"] for row in self._file.rows() if row["kind"] == "episode"]
        yield from episodes(
            self._spec,
            scheduler_training.spec(self._spec, self._experiment.training_targets[self._cell.environment]),
            recorded,
            binding=scheduler_training.binding,
            begin_with=begin_with,
            scheduler=self._file.scheduler_path,
            done=max(done, default=0),
            begun=self._begun,
        )

    def _begun(self, headless: Any) -> None:
        self._stop_headless = headless.stop
        if self._stopped:
            headless.stop()


def reinforcement_of(spec: JobSpec) -> TrainingSpec:
    """Return the spec of a run that samples environments, as all runs of policies do."""
    assert isinstance(spec.training, TrainingSpec)
    return spec.training
