"""This machine as a profile: a worker process on each core, and a learner in the job's own process."""

from __future__ import annotations

import math
import statistics
from datetime import date
from typing import Any

from cloud.fingerprint import cpu_model
from cloud.timing.calibration.figures import fit, of, quantity
from cloud.timing.numbers.profile import LearnerPlace, NetworkProfile, Pool, Profile, RandomFaults
from cloud.timing.numbers.quantity import Quantity
from cloud.workers.executor import cores

_LEARNER_SKU, _GPU_SKU = "c5.2xlarge", "p3.2xlarge"


def profile(
    starts: dict[str, Any], ways: dict[str, Any], shared: dict[str, Any] | None, where: str, today: date
) -> Profile:
    """Return a profile of processes that run from the job's start and cost nothing. `where` describes the machine.
    `shared` is what updates took learners that share its GPU, None if it has none.
    """
    alone_s, together_s = (_undisturbed_s(ways[name]) for name in ("alone_s", "together_s"))
    return Profile(
        title=f"This machine, {today.isoformat()}",
        words=(
            f"{cores()} worker processes on {cpu_model()} and the learner in the job's own process, as the"
            " local platform runs them; own hardware, no rent."
        ),
        region="us-east-1",
        provider="aws",
        default_learner_sku=_GPU_SKU if shared else _LEARNER_SKU,
        core_ratio=_exactly(1.0, "the stack was measured on this machine's own core"),
        actors=Pool(
            start_s=of(0.0, 0.0, 0.05, "all of a worker's start is in the stack's import_s", "assumed"),
            start_sigma=_exactly(0.0, "processes start alike"),
            hand_over_s=quantity(
                [way["waited_s"] for way in ways["ways"]],
                f"from a call's submission until it is sent; {where}",
            ),
            creates_at_once=_exactly(float(cores()), "all workers are started at once"),
            creates_per_s=_exactly(float(cores()), "all workers are started at once"),
            idle_s=_exactly(0.0, "workers run to the end"),
            most_actors=_exactly(float(cores()), "one worker a core"),
            actors_per_unit=cores(),
            units=1,
            # At once each is a little slower than alone: they share caches and memory bandwidth.
            cores_per_actor=round(min(1.0, alone_s / together_s), 3),
        ),
        network=_network(ways, where),
        chance=RandomFaults(
            failure_share=of(0.0, 0.0, 0.0005, "worker processes that die are an exception", "assumed"),
            late_share=_exactly(0.0, "outcomes come over a socket of this machine"),
            late_s=_exactly(1.0, "never"),
            straggler_sigma=_spread(ways["together_s"], where),
        ),
        learner=LearnerPlace(
            server_start_s=quantity(starts["torch_s"], f"the learner's thread until it has torch; {where}"),
            function_start_s=quantity(starts["torch_s"], f"the learner's thread until it has torch; {where}"),
            function_keep_warm_s=of(3600.0, 60.0, 86400.0, "the thread lives as long as its job", "assumed"),
            sharing_mlp=_sharing(shared, "mlp", where),
            sharing_cnn=_sharing(shared, "cnn", where),
        ),
    )


def _sharing(shared: dict[str, Any] | None, kind: str, where: str) -> Quantity:
    """Return how much each further update slows all."""
    if shared is None:
        return of(1.0, 0.8, 1.0, "updates take turns on one core", "assumed")
    alone_us = statistics.mean(shared[kind]["1"])
    slower = [
        max(0.0, us / alone_us - 1.0) / (int(count) - 1)
        for count, times_us in shared[kind].items()
        for us in times_us
        if count != "1"
    ]
    return quantity(slower, f"updates of several processes at once on one GPU; {where}")


def _undisturbed_s(times_s: list[float]) -> float:
    """Return the lower quartile: other processes take a core for moments, which is not what sharing cores costs."""
    return statistics.quantiles(times_s, n=4)[0]


def _exactly(value: float, source: str) -> Quantity:
    return of(value, value, value, source, "assumed")


def _network(ways: dict[str, Any], where: str) -> NetworkProfile:
    """Return sockets as a network: the time of each byte on a worker's own line, and of all bytes at
    the coordinator.
    """
    sizes = len({way["bytes"] for way in ways["ways"]}) * 2
    turns = [ways["ways"][begin : begin + sizes] for begin in range(0, len(ways["ways"]), sizes)]
    fits = [
        fit([(1.0, way["bytes"] * 8e-6) for way in turn], [way["transfer_s"] for way in turn])
        for turn in turns
    ]
    source = f"calls that compute nothing, of 1 kB to 4 MB, regression; {where}"
    return NetworkProfile(
        round_trip_s=quantity([fixed_s for fixed_s, _ in fits], source),
        actor_mbit_per_s=quantity([1.0 / max(per_mbit_s, 1e-9) for _, per_mbit_s in fits], source),
        coordinator_mbit_per_s=quantity(
            ways["crowd_mbit_per_s"], f"answers of 4 MB from all workers at once; {where}"
        ),
        payload_limit_mb=_exactly(1000.0, "frames of up to 1 GiB"),
        detour_s=_exactly(0.0, "never taken"),
    )


def _spread(times_s: list[float], where: str) -> Quantity:
    """Return the log-normal spread of equal fragments; those of a walking robot also differ by what it does."""
    lower, _, upper = statistics.quantiles(times_s, n=4)
    # Of a normal distribution the middle half is 1.349 deviations wide; disturbances lie beyond it.
    sigma = math.log(upper / lower) / 1.349
    return of(
        sigma,
        sigma / 2,
        sigma * 2,
        f"{len(times_s)} fragments of equal length, all workers busy; {where}",
        "measured",
    )
