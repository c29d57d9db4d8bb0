"""What a job's bill needs from its platform: how many actors share a rent, and how fast the learner's software is."""

from __future__ import annotations

from dataclasses import replace

from cloud.money.billing.full_bill import BillContext
from cloud.money.billing.work import Work
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.azure_container import AzureContainerOptions
from cloud.platforms.hosts import HostsOptions
from cloud.platforms.local import LocalOptions
from cloud.platforms.options import PlatformOptions
from cloud.platforms.ray_cluster import RayOptions
from cloud.timing.numbers import machines
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Pool, Profile
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.speed import Speeds

_PLAIN_PROFILE, _LAMBDA_PROFILE, _AZURE_PROFILE = "one-machine", "lambda", "aci-today"
_PLAIN_STACK = "starling-stack"


def bill_context_of(options: PlatformOptions) -> BillContext:
    """Return the context for a job on this platform."""
    if isinstance(options, LocalOptions):
        return bill_context(profiles.load(_PLAIN_PROFILE), stacks.load(_PLAIN_STACK), options.worker_count)
    if isinstance(options, LambdaOptions):
        return bill_context(profiles.load(_LAMBDA_PROFILE), stacks.load(_PLAIN_STACK), 1)
    if isinstance(options, AzureContainerOptions):
        return bill_context(
            profiles.load(_AZURE_PROFILE), stacks.load(_PLAIN_STACK), options.containers_a_group
        )
    if isinstance(options, HostsOptions):
        return bill_context(profiles.load(_PLAIN_PROFILE), stacks.load(_PLAIN_STACK), options.actors)
    if isinstance(options, RayOptions):
        return bill_context(profiles.load(_PLAIN_PROFILE), stacks.load(_PLAIN_STACK), options.most_actors)
    profile = profiles.load(options.profile)
    gpu = machines.machine(options.machine).gpus > 0
    slots = 1
    if isinstance(profile.actors, Pool) and profile.actors.units is not None:
        slots = profile.actors.units * profile.actors.actors_per_unit
    return bill_context(profile, stacks.load(options.stack), slots, gpu=gpu)


def bill_context(profile: Profile, stack: Stack, actor_slots: int, *, gpu: bool = False) -> BillContext:
    """Return the context of a profile and a stack. If actors are not billed at all, the learner's machine runs them."""
    speeds = Speeds(profile, stack, gpu=gpu)
    actors = profile.actors
    unpaid = isinstance(actors, Pool) and actors.machine_sku is None and actors.core_sku is None

    def hessian_share(work: Work) -> float:
        whole_ns = speeds.update_ns(work)
        return 1.0 - speeds.update_ns(replace(work, hessian_products=0)) / whole_ns if whole_ns else 0.0

    return BillContext(actor_slots, unpaid, hessian_share, speeds.decision_ns)
