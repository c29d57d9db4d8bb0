"""What a job on a simulated cloud requires: prices in its region, GPUs that learners share, room for its learners."""

from __future__ import annotations

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import machines
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers.profile import Pool
from training.tasks.training import Training
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.launch.requirements import (
    PRICE_IT,
    REGION,
    Requirements,
    missing_price,
    too_many_learners,
)
from webapp.jobs.spec import JobSpec


class SimulatedRequirements(Requirements):
    def obstacle(self, spec: JobSpec) -> SpecProblem | None:
        options = spec.platform.alike
        return (
            _price_obstacle(options, spec.training.memory_mb)
            or _gpu_obstacle(options, spec.training)
            or _pool_obstacle(options, spec.training)
        )


def _price_obstacle(options: SimulatedOptions, memory_mb: int) -> SpecProblem | None:
    """Return the problem of a simulated cloud in a region without prices."""
    words = missing_price(options, memory_mb)
    return SpecProblem(REGION, f"Region ({REGION}): {words} {PRICE_IT}") if words else None


def _gpu_obstacle(options: SimulatedOptions, training: Training) -> SpecProblem | None:
    """Return why learners cannot share a GPU of the machine that the job names; None if it has one or none is
    shared.
    """
    loop = training.loop.gradients
    if machines.machine(options.machine).gpus:
        return None
    path = "platform.learner_sku"
    lacks = f"Learner's machine ({path}): a {options.machine} has no GPU"
    several = loop is not None and loop.where == "learner" and loop.learners > 1
    if several and options.learner == "server":
        return SpecProblem(
            path,
            f"{lacks} for learners to share. Name a machine with one, or let actors compute the gradients.",
        )
    if options.learners_per_gpu > 1:
        return SpecProblem(
            path, f"{lacks} for functions to share. Name a machine with one, or one learner on a GPU."
        )
    return None


def _pool_obstacle(options: SimulatedOptions, training: Training) -> SpecProblem | None:
    """Return the problem of more learners than a simulated cluster has actors; None if there is room."""
    actors = profiles.load(options.profile).actors
    if not isinstance(actors, Pool):
        return None
    return too_many_learners(training, int(actors.most_actors.value), "actor")
