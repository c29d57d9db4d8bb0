"""Checks that need the environment itself, made before anything is started or paid.

Environments outside the catalogue run code of their own: processes that train make them, and web processes, which
stay light, have another process make them.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from cloud.money.billing.price_book import PriceBook, PriceError, UnknownSku
from cloud.platforms.options import PlatformOptions
from cloud.platforms.ray import driver as ray_driver
from cloud.platforms.ray.head import NoRay
from cloud.platforms.ray_cluster import RayOptions
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import machines
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers.profile import Pool
from training.rl import packages
from training.rl.environments.measuring import NotMeasured, measured_apart
from training.rl.environments.model import EnvironmentSpec
from training.rl.spaces import Spaces
from training.scaling.learned import Learned
from training.scaling.siren import Siren
from training.spec import TrainingSpec
from training.tasks.training import Training
from webapp.formatting import plural
from webapp.jobs.form.spec_problems import Problem
from webapp.jobs.launch.job_memory import memory_obstacle
from webapp.jobs.spec import JobSpec

REGION = "platform.region"
PRICE_IT = (
    "Choose a region or machine that has one, or add a row for it to cloud/money/prices where Starling is"
    " installed."
)
"""What to do if the price book has no price."""


def obstacle(training: Training) -> Problem | None:
    """Return why this spec cannot be trained on this machine, as one sentence; None if it can.

    For processes that train: environments outside the catalogue are made here.
    """
    from training.rl.environments.making import spaces_of

    return scheduler_obstacle(training) or _task_obstacle(training, spaces_of)


def training_obstacle(training: Training) -> Problem | None:
    """Return why the environment or the network on it cannot be used, as `obstacle` does, for web processes: another
    process makes environments outside the catalogue. None also if that had no time: a job's start asks again."""
    try:
        return _task_obstacle(training, measured_apart)
    except NotMeasured:
        return None


def _task_obstacle(training: Training, spaces_of: Callable[[EnvironmentSpec], Spaces]) -> Problem | None:
    if not isinstance(training, TrainingSpec):
        return None
    try:
        spaces = spaces_of(training.environment)
    except NotMeasured:
        raise
    except Exception as error:  # an environment's code may raise anything
        path = "training.environment.id"
        return Problem(
            path, f"Environment ({path}): {training.environment.id} cannot be used here: {_words(error)}"
        )
    try:
        training.network.layout(spaces)
    except ValueError as error:
        path = "training.network"
        return Problem(path, f"Network ({path}): {_words(error)}")
    return None


def scheduler_obstacle(training: Training) -> Problem | None:
    """A policy with a trained scheduler needs that scheduler's weights."""
    if not isinstance(training.scaling, Learned | Siren) or training.scaling.weights:
        return None
    path = "training.scaling.scheduler"
    return Problem(
        path,
        f"Scheduler ({path}): none was chosen. Launch the job in a project that has trained one, or put into the spec"
        " what `manage.py schedulers export` gives under `scaling`.",
    )


def platform_obstacle(spec: JobSpec) -> Problem | None:
    """Return why this job cannot run on its platform, as far as that is known without an account; None if it can."""
    return (
        cluster_obstacle(spec.platform)
        or ready_instances_obstacle(spec)
        or price_obstacle(spec.platform, spec.training.memory_mb)
        or gpu_obstacle(spec)
        or torch_obstacle(spec)
        or package_obstacle(spec)
        or pool_obstacle(spec)
        or memory_obstacle(spec)
    )


def package_obstacle(spec: JobSpec) -> Problem | None:
    """Return why actors of this platform lack the environment's package; None if they have it."""
    training = spec.training
    if not isinstance(training, TrainingSpec) or spec.platform.actors_have_packages:
        return None
    package = packages.package_of(training.environment.id)
    if not package:
        return None
    path = "training.environment.id"
    return Problem(
        path,
        f"Environment ({path}): {training.environment.id} needs the package {package}, which"
        f" {spec.platform.actor_word}s do not get."
        " It runs on this machine, on the simulated cloud, on a Ray cluster and on machines of your own that have the"
        " package.",
    )


def ready_instances_obstacle(spec: JobSpec) -> Problem | None:
    """Return why functions cannot be kept ready for a policy that changes their memory; None if none are."""
    if spec.training.scaling.memory_range_mb is None or not getattr(spec.platform, "provisioned", 0):
        return None
    path = "platform.provisioned"
    return Problem(
        path,
        f"Functions kept ready ({path}): each has one size of memory, and this policy changes the memory. Keep none"
        " ready, or take a policy that leaves memory as it is.",
    )


def gpu_obstacle(spec: JobSpec) -> Problem | None:
    """Return why learners cannot share a GPU of the machine that the job names; None if it has one or none is
    shared.
    """
    options, loop = spec.platform, spec.training.loop.gradients
    if not isinstance(options, SimulatedOptions) or machines.machine(options.machine).gpus:
        return None
    path = "platform.learner_sku"
    lacks = f"Learner's machine ({path}): a {options.machine} has no GPU"
    several = loop is not None and loop.where == "learner" and loop.learners > 1
    if several and options.learner == "server":
        return Problem(
            path,
            f"{lacks} for learners to share. Name a machine with one, or let actors compute the gradients.",
        )
    if options.learners_per_gpu > 1:
        return Problem(
            path, f"{lacks} for functions to share. Name a machine with one, or one learner on a GPU."
        )
    return None


def torch_obstacle(spec: JobSpec) -> Problem | None:
    """Return why actors cannot compute this job's gradients; None if they can, or need not."""
    training, loop = spec.training, spec.training.loop.gradients
    if spec.platform.actors_have_torch:
        return None
    if loop is None or loop.where != "actor":
        return None
    if not isinstance(training, TrainingSpec) or training.network.has_closed_form:
        return None
    path = "training.loop.where"
    return Problem(
        path,
        f"Learners' place ({path}): gradients of pictures need torch, which actors on this platform do not have. Choose"
        " the learner's machine, or another loop.",
    )


def pool_obstacle(spec: JobSpec) -> Problem | None:
    """Return the problem of more learners than a simulated cluster has actors; None if there is room."""
    if not isinstance(spec.platform, SimulatedOptions):
        return None
    actors = profiles.load(spec.platform.profile).actors
    if not isinstance(actors, Pool):
        return None
    return too_many_learners(spec.training, int(actors.most_actors.value), "actor")


def too_many_learners(training: Training, room: int, actor: str) -> Problem | None:
    """Return the problem of more learners than actors' places at once; an `actor` is called so there."""
    loop, path = training.loop.gradients, "training.loop.learners"
    if loop is None or loop.where != "actor" or loop.learners <= room:
        return None
    return Problem(
        path,
        f"Learners at most ({path}): the job asks for {loop.learners:,}, and no more than {plural(room, actor)} may"
        f" run at once. Ask for {room:,} at most.",
    )


def unnamed_cluster(options: PlatformOptions) -> Problem | None:
    """Return why a job may not use the Ray cluster at its spec's address; None if the operator has named it.

    A driver and its cluster run each other's code, and the driver sends the cluster this installation's
    token. So an address that only a user chose is refused.
    """
    if not isinstance(options, RayOptions) or not options.address:
        return None
    if options.address.lower() in settings.STARLING_RAY_CLUSTERS:
        return None
    path = "platform.address"
    return Problem(
        path,
        f"Address ({path}): {options.address} is no cluster of this installation. Its operator names it in"
        " STARLING_RAY_CLUSTERS first. Without an address the job starts a cluster of this machine's own.",
    )


def cluster_obstacle(options: PlatformOptions) -> Problem | None:
    """Return why no job can run on this Ray cluster, as far as this machine knows; None for other platforms."""
    if not isinstance(options, RayOptions):
        return None
    try:
        ray_driver.require()
    except NoRay as error:
        return Problem("platform.kind", f"Platform (platform.kind): {error}")
    if words := missing_price(options, 0):
        path = "platform.machine"
        return Problem(path, f"Kind of machine ({path}): {words}")
    return None


def price_obstacle(options: PlatformOptions, memory_mb: int) -> Problem | None:
    """Return the problem of a simulated cloud in a region without prices; None for other platforms."""
    if not isinstance(options, SimulatedOptions):
        return None
    words = missing_price(options, memory_mb)
    return Problem(REGION, f"Region ({REGION}): {words} {PRICE_IT}") if words else None


def missing_price(options: PlatformOptions, memory_mb: int) -> str:
    """Return that no budget can be kept, because something has no price; empty if everything has one."""
    try:
        options.tariff(PriceBook.load(), memory_mb)
    except (UnknownSku, PriceError) as error:
        return f"without a price no budget can be kept, and {error}."
    return ""


def _words(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0] or type(error).__name__
    return first if first.endswith((".", "!", "?")) else f"{first}."
