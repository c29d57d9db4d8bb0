"""What a run takes from runs that were made before it: another arm's spending, or a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from research.experiment import Cell, Experiment, merged
from research.runs.run_file import RunFile, run_file
from research.scheduler_training import RehearsedTraining, policy_from
from webapp.jobs.spec import JobSpec


class DependencyMissing(RuntimeError):
    """A run that this one needs is not complete; the message says which."""


def dependency_files(experiment: Experiment, folder: Path, cell: Cell) -> dict[str, RunFile]:
    """The runs that this one needs, by arm. DependencyMissing unless all are complete."""
    files = {}
    for needed in experiment.needed(cell):
        file = run_file(experiment, folder, needed)
        if not file.complete:
            raise DependencyMissing(
                f"{cell.arm} needs {needed.arm} on {needed.environment}, seed {needed.seed}, first."
            )
        files[needed.arm] = file
    return files


def with_dependencies(
    experiment: Experiment, folder: Path, cell: Cell, spec: JobSpec, *, quick: bool
) -> JobSpec:
    """The run's spec with what it takes from others put in."""
    arm = experiment.arm(cell.arm)
    if arm.spends_like is None and arm.scheduler is None:
        return spec
    files = dependency_files(experiment, folder, cell)
    if arm.spends_like is not None:
        rows = files[arm.spends_like].rows()
        spent = sorted((row["actors"] for row in rows if row["kind"] == "round"), reverse=True)
        scaling: dict[str, Any] = {"kind": "schedule", "actors": spent}
    else:
        assert arm.scheduler is not None
        scheduler_training = experiment.arm(arm.scheduler).study
        assert isinstance(scheduler_training, RehearsedTraining)
        target = experiment.training_targets[cell.environment]
        study = (scheduler_training.quick() if quick else scheduler_training).spec(spec, target)
        scheduler = files[arm.scheduler].scheduler()
        if scheduler is None:
            raise DependencyMissing(f"{files[arm.scheduler].path} has no scheduler beside it.")
        scaling = policy_from(scheduler, study).model_dump(mode="json")
    return JobSpec.model_validate(merged(spec.model_dump(mode="json"), {"training": {"scaling": scaling}}))
