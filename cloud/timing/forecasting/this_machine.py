"""The user's own machines as a cloud: the one that a local job runs on, and those that fetch their calls.

Their cores are a pool that runs from the start.
"""

from __future__ import annotations

from typing import Any

from cloud.money.billing.price_book import PriceBook
from cloud.platforms.hosts import HostsOptions
from cloud.platforms.local import LocalOptions
from cloud.platforms.ray_cluster import RayOptions
from cloud.timing.forecasting.configuration import Configuration
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.core import Setting
from cloud.workers.executor import cores
from training.tasks.training import Training

_NEVER = 1e9
_START_S = 60.0
"""By then a machine's processes have started, if the machine itself is running."""


def this_machine(training: Training, options: LocalOptions, stack: Stack, book: PriceBook) -> Configuration:
    """Return this machine. Its processes share the cores with the learner, unless the loop makes them wait for it."""
    workers = options.worker_count
    busy = workers + (training.loop.collects != "before learning")
    profile = _profile(_workers(workers, min(1.0, cores() / busy)))
    return Configuration(profile, stack, Setting(), options.tariff(book, training.memory_mb), _START_S)


def other_machines(training: Training, options: HostsOptions, stack: Stack, book: PriceBook) -> Configuration:
    """Return unknown machines: they are assumed to be like this one, with a core for each actor, over a common line."""
    network = {
        "round_trip_s": _number(0.05, 0.005, 0.3, "a long poll and an answer over the internet"),
        "actor_mbit_per_s": _number(50.0, 5.0, 1000.0, "the line of a home, an office or a computing centre"),
        "coordinator_mbit_per_s": _number(500.0, 50.0, 8000.0, "the line of the machine that learns"),
    }
    profile = _profile(_workers(options.actors, 1.0), network)
    return Configuration(profile, stack, Setting(), options.tariff(book, training.memory_mb), _START_S)


def cluster(training: Training, options: RayOptions, stack: Stack, book: PriceBook) -> Configuration:
    """Return machines like this one: as much as is known before the cluster is contacted."""
    network = {
        "round_trip_s": _number(0.003, 0.001, 0.01, "a call of a Ray actor"),
        "actor_mbit_per_s": _number(1000.0, 100.0, 10_000.0, "the network of a computing centre"),
        "coordinator_mbit_per_s": _number(1000.0, 100.0, 10_000.0, "the network of a computing centre"),
    }
    # An actor steps copies on whole cores only.
    cpus = options.cpus_per_actor if options.cpus_per_actor < 1 else int(options.cpus_per_actor)
    profile = _profile(_workers(options.most_actors, cpus), network)
    return Configuration(profile, stack, Setting(), options.tariff(book, training.memory_mb), _START_S)


def _profile(actors: dict[str, Any], network: dict[str, Any] | None = None) -> Profile:
    return Profile.model_validate(
        {
            "title": "This machine",
            "words": "Worker processes and a learner on the cores of one machine.",
            "region": "here",
            "provider": "azure",
            "default_learner_sku": "none",
            "core_ratio": _number(1.0, 0.7, 1.2, "a core here beside the one that the stack was measured on"),
            "actors": actors,
            "network": {
                "round_trip_s": _number(0.001, 0.0005, 0.003, "a pipe between two processes"),
                "actor_mbit_per_s": _fixed(8000.0),
                "coordinator_mbit_per_s": _fixed(8000.0),
                "payload_limit_mb": _fixed(_NEVER),
                "detour_s": _fixed(0.0),
                **(network or {}),
            },
            "chance": {
                "failure_share": _fixed(0.0),
                "late_share": _fixed(0.0),
                "late_s": _fixed(0.0),
                "straggler_sigma": _number(0.05, 0.02, 0.15, "processes that share a machine"),
            },
            "learner": {
                "server_start_s": _number(2.5, 1.0, 6.0, "the learner's libraries are loaded"),
                "function_start_s": _fixed(0.0),
                "function_keep_warm_s": _fixed(_NEVER),
                "sharing_mlp": _fixed(1.0),
                "sharing_cnn": _fixed(1.0),
            },
        }
    )


def _workers(workers: int, cores_per_actor: float) -> dict[str, Any]:
    return {
        "kind": "pool",
        "start_s": _number(0.2, 0.1, 0.5, "a process is started"),
        "start_sigma": _fixed(0.1),
        "hand_over_s": _number(0.001, 0.0003, 0.003, "a frame is written and read"),
        "creates_at_once": _fixed(1000.0),
        "creates_per_s": _fixed(1000.0),
        "idle_s": _fixed(_NEVER),
        "most_actors": _fixed(float(workers)),
        "units": workers,
        "cores_per_actor": cores_per_actor,
    }


def _number(value: float, low: float, high: float, source: str) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "source": source, "kind": "assumed"}


def _fixed(value: float) -> dict[str, Any]:
    return _number(value, value, value, "how this machine is put together")
