"""Checks that need the environment itself, made before anything is started or paid.

Environments outside the catalogue run code of their own: processes that train make them, and web processes, which
stay light, have another process make them.
"""

from __future__ import annotations

from collections.abc import Callable

from training.rl import packages
from training.rl.environments.making import spaces_of
from training.rl.environments.measuring import NotMeasured, measured_apart
from training.rl.environments.model import EnvironmentSpec
from training.rl.spaces import Spaces
from training.scaling.learned import Learned
from training.scaling.siren import Siren
from training.spec import TrainingSpec
from training.tasks.training import Training
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.launch.job_memory import memory_obstacle
from webapp.jobs.launch.platforms import requirements_of
from webapp.jobs.spec import JobSpec


def obstacle(training: Training) -> SpecProblem | None:
    """Return why this spec cannot be trained on this machine, as one sentence; None if it can.

    For processes that train: environments outside the catalogue are made here.
    """
    return scheduler_obstacle(training) or _task_obstacle(training, spaces_of)


def training_obstacle(training: Training) -> SpecProblem | None:
    """Return why the environment or the network on it cannot be used, as `obstacle` does, for web processes: another
    process makes environments outside the catalogue. None also if that had no time: a job's start asks again."""
    try:
        return _task_obstacle(training, measured_apart)
    except NotMeasured:
        return None


def _task_obstacle(training: Training, spaces_of: Callable[[EnvironmentSpec], Spaces]) -> SpecProblem | None:
    if not isinstance(training, TrainingSpec):
        return None
    try:
        spaces = spaces_of(training.environment)
    except NotMeasured:
        raise
    except Exception as error:  # an environment's code may raise anything
        path = "training.environment.id"
        return SpecProblem(
            path, f"Environment ({path}): {training.environment.id} cannot be used here: {_words(error)}"
        )
    try:
        training.network.layout(spaces)
    except ValueError as error:
        path = "training.network"
        return SpecProblem(path, f"Network ({path}): {_words(error)}")
    return None


def scheduler_obstacle(training: Training) -> SpecProblem | None:
    """A policy with a trained scheduler needs that scheduler's weights."""
    if not isinstance(training.scaling, Learned | Siren) or training.scaling.weights:
        return None
    path = "training.scaling.scheduler"
    return SpecProblem(
        path,
        f"Scheduler ({path}): none was chosen. Launch the job in a project that has trained one, or put into the spec"
        " what `manage.py schedulers export` gives under `scaling`.",
    )


def platform_obstacle(spec: JobSpec) -> SpecProblem | None:
    """Return why this job cannot run on its platform, as far as that is known without an account; None if it can."""
    return (
        ready_instances_obstacle(spec)
        or torch_obstacle(spec)
        or package_obstacle(spec)
        or requirements_of(spec.platform).obstacle(spec)
        or memory_obstacle(spec)
    )


def package_obstacle(spec: JobSpec) -> SpecProblem | None:
    """Return why actors of this platform lack the environment's package; None if they have it."""
    training = spec.training
    if not isinstance(training, TrainingSpec) or spec.platform.actors_have_packages:
        return None
    package = packages.package_of(training.environment.id)
    if not package:
        return None
    path = "training.environment.id"
    return SpecProblem(
        path,
        f"Environment ({path}): {training.environment.id} needs the package {package}, which"
        f" {spec.platform.actor_word}s do not get."
        " It runs on this machine, on the simulated cloud, on a Ray cluster and on machines of your own that have the"
        " package.",
    )


def ready_instances_obstacle(spec: JobSpec) -> SpecProblem | None:
    """Return why functions cannot be kept ready for a policy that changes their memory; None if none are."""
    if spec.training.scaling.memory_range_mb is None or not getattr(spec.platform, "provisioned", 0):
        return None
    path = "platform.provisioned"
    return SpecProblem(
        path,
        f"Functions kept ready ({path}): each has one size of memory, and this policy changes the memory. Keep none"
        " ready, or take a policy that leaves memory as it is.",
    )


def torch_obstacle(spec: JobSpec) -> SpecProblem | None:
    """Return why actors cannot compute this job's gradients; None if they can, or need not."""
    training, loop = spec.training, spec.training.loop.gradients
    if spec.platform.actors_have_torch:
        return None
    if loop is None or loop.where != "actor":
        return None
    if not isinstance(training, TrainingSpec) or training.network.has_closed_form:
        return None
    path = "training.loop.where"
    return SpecProblem(
        path,
        f"Learners' place ({path}): gradients of this network need torch, which actors on this platform do not have."
        " Choose the learner's machine, or another loop.",
    )


def _words(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0] or type(error).__name__
    return first if first.endswith((".", "!", "?")) else f"{first}."
