"""The cloud in numbers that a platform's options mean for a forecast."""

from __future__ import annotations

from cloud.money.billing.price_book import PriceBook
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.azure_container import AzureContainerOptions
from cloud.platforms.hosts import HostsOptions
from cloud.platforms.local import LocalOptions
from cloud.platforms.options import PlatformOptions
from cloud.platforms.ray_cluster import RayOptions
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecasting.configuration import Configuration, Name
from cloud.timing.forecasting.this_machine import cluster, other_machines, this_machine
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.profile import load as load_profile
from cloud.timing.numbers.quantity import Quantity, with_values
from training.tasks.training import Training


def configuration_of(training: Training, options: PlatformOptions) -> Configuration:
    book = PriceBook.load()
    if isinstance(options, LocalOptions):
        return this_machine(training, options, stacks.load(stacks.OURS), book)
    if isinstance(options, HostsOptions):
        return other_machines(training, options, stacks.load(stacks.OURS), book)
    if isinstance(options, RayOptions):
        return cluster(training, options, stacks.load(stacks.OURS), book)
    tariff = options.tariff(book, training.memory_mb)
    if isinstance(options, LambdaOptions):
        # The learner is local, and its start is short compared with functions'.
        alike = SimulatedOptions(provisioned=options.provisioned)
        profile = _of_so_many(load_profile(alike.profile), options.at_once)
        return Configuration(profile, stacks.load(alike.stack), alike.setting(), tariff, options.start_cap_s)
    if isinstance(options, AzureContainerOptions):
        alike = SimulatedOptions(profile="aci-today")
        profile = _with_cores(load_profile(alike.profile), options.vcpu)
        return Configuration(profile, stacks.load(alike.stack), alike.setting(), tariff, options.start_cap_s)
    return Configuration(load_profile(options.profile), stacks.load(options.stack), options.setting(), tariff)


def _with_cores(profile: Profile, cores: int) -> Profile:
    """Return the same cloud with actors of this many cores."""
    actors = profile.actors.model_copy(update={"cores_per_actor": float(cores)})
    return profile.model_copy(update={"actors": actors})


def _of_so_many(profile: Profile, at_once: int | None) -> Profile:
    """Return the same cloud for a job that uses fewer functions at once than the account allows."""

    def value_of(path: Name, quantity: Quantity) -> float:
        fewer = at_once is not None and path == ("actors", "concurrent")
        return min(quantity.value, at_once or 0) if fewer else quantity.value

    return with_values(profile, value_of)
