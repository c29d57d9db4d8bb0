"""What a job's bill needs from its platform: how many actors share a rent, and how fast the learner's software is."""

from __future__ import annotations

from dataclasses import replace

from cloud.money.billing.full_bill import BillContext
from cloud.money.billing.work import CallRecord
from cloud.platforms.options import PlatformOptions
from cloud.timing.numbers import machines
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Pool, Profile
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.speed import Speeds


def bill_context_of(options: PlatformOptions) -> BillContext:
    """Return the context for a job on this platform."""
    alike = options.alike
    gpu = machines.machine(alike.machine).gpus > 0
    return bill_context(profiles.load(alike.profile), stacks.load(alike.stack), options.actor_slots, gpu=gpu)


def bill_context(profile: Profile, stack: Stack, actor_slots: int, *, gpu: bool = False) -> BillContext:
    """Return the context of a profile and a stack. If actors are not billed at all, the learner's machine runs them."""
    speeds = Speeds(profile, stack, gpu=gpu)
    actors = profile.actors
    unpaid = isinstance(actors, Pool) and actors.machine_sku is None and actors.core_sku is None

    def hessian_share(work: CallRecord) -> float:
        whole_ns = speeds.update_ns(work)
        return 1.0 - speeds.update_ns(replace(work, hessian_products=0)) / whole_ns if whole_ns else 0.0

    return BillContext(actor_slots, unpaid, hessian_share, speeds.decision_ns)
