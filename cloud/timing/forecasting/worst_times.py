"""How long the first calls of a job may take at worst, and when their actors and learner have started.

The simulated cloud is known from its profile, so a call takes as long as its work there, with bad luck of one in a
thousand million. On any other platform nothing is known before the first call returned, so a call may take its
deadline.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from cloud.money.billing.work import CallRecord
from cloud.timing.forecasting.configuration import Configuration, Name
from cloud.timing.forecasting.workload import Workload
from cloud.timing.numbers.profile import Functions, NetworkProfile, Pool
from cloud.timing.simulation.draws import Draws, draw
from cloud.timing.simulation.network import StartLimit
from cloud.timing.simulation.speed import Speeds
from cloud.timing.virtual_time import NS
from training.loops.synchronous import BARREN_ROUNDS_ALLOWED
from training.rl.measures.curvature import CurvatureSpec
from training.spec import TrainingSpec
from training.tasks.training import Training

# Six standard deviations: one draw in a thousand million is beyond.
_WORST_LUCK = Draws(start_normal=6.0, straggler_normal=6.0, failure=1.0, failure_at=1.0, late=0.0)
_MORE_WORK = 1.25
"""Work is counted before it is done, and may be this many times as much."""
_UNKNOWN = 4.0
"""The same for what is unknown before it is built, and for an update on a machine that was not
measured.
"""
_LEARNER_LOADS_S = 60.0
_TALK_S = 10.0


@dataclass(frozen=True)
class WorstTimes:
    """Seconds. An actor's attempt lasts `attempt_s` from its turn to its outcome, of which `billed_s` are billed.

    At most `at_once` run at one time, and the last of them can begin after `actors_ready_s`. `tries` counts the
    rounds until an actor returns data; only the simulated cloud foresees rounds in which none does. `overruns`: a
    call may be cut off by its deadline. With learners that compute gradients, `gradient_s` and `gradient_billed_s` are
    those of one attempt, and the update is a version made of all gradients that may wait.
    """

    actors_ready_s: float
    attempt_s: float
    billed_s: float
    at_once: int
    tries: int
    overruns: bool
    learner_ready_s: float
    update_s: float
    update_billed_s: float
    gradient_s: float = 0.0
    gradient_billed_s: float = 0.0


def worst_times(configuration: Configuration, training: Training, actors: int) -> WorstTimes:
    """Return the worst times of a first round with this many actors."""
    if configuration.longest_start_s is not None:
        return _anywhere(configuration, training, actors, configuration.longest_start_s)
    return _simulated(configuration, training, actors)


def _simulated(configuration: Configuration, training: Training, actors: int) -> WorstTimes:
    works = Workload(training)
    sampling, update = works.sampling("first"), _first_update(works, actors)
    speeds = Speeds(configuration.profile, configuration.stack, gpu=configuration.setting.learner_gpu)
    network, learner = configuration.profile.network, configuration.profile.learner
    late_s = configuration.profile.chance.late_s.value if speeds.late_share else 0.0
    coordinator_s = (actors + 1) * speeds.coordinator_ns / NS
    more = _MORE_WORK if works.spaces_known else _UNKNOWN
    run_s = min(sampling.deadline_s, more * speeds.run_ns(sampling, _WORST_LUCK) / NS)
    start_s = _start_s(configuration, speeds)
    update_run_s = min(update.deadline_s, _MORE_WORK * speeds.update_ns(update) / NS)
    update_start_s, update_way_s = 0.0, 0.0
    if configuration.setting.learner == "function":
        update_start_s = learner.function_start_s.value
        update_way_s = _way_s(network, update, 1) + late_s
    return WorstTimes(
        actors_ready_s=_actors_ready_s(configuration, speeds, actors, training.attempts),
        attempt_s=start_s + run_s + _way_s(network, sampling, actors) + late_s + coordinator_s,
        billed_s=start_s + run_s,
        at_once=_at_once(configuration),
        tries=BARREN_ROUNDS_ALLOWED,
        overruns=run_s >= sampling.deadline_s,
        learner_ready_s=learner.server_start_s.value if configuration.setting.learner == "server" else 0.0,
        update_s=update_start_s
        + update_run_s
        + update_way_s
        + coordinator_s
        + speeds.decision_ns(update) / NS,
        update_billed_s=update_start_s + update_run_s,
        **_gradient_times(configuration, works, speeds, start_s, coordinator_s),
    )


def _gradient_times(
    configuration: Configuration, works: Workload, speeds: Speeds, start_s: float, coordinator_s: float
) -> dict[str, float]:
    """Return the worst times of a gradient on the simulated cloud; nothing for loops without any."""
    loop = works.training.loop.gradients
    if loop is None:
        return {}
    # At worst each trajectory was sampled by another policy, to which its samples are held.
    sampled = loop.trajectories_per_gradient if works.task.keeps_sampling_policy else 0
    policies = loop.learners + sampled
    work = works.call("gradient", "first", contributions=loop.trajectories_per_gradient, policies=policies)
    way_s = _way_s(configuration.profile.network, work, loop.learners) + coordinator_s
    if work.where == "actor":
        run_s = start_s + min(work.deadline_s, _MORE_WORK * speeds.run_ns(work, _WORST_LUCK) / NS)
    else:
        learner = configuration.profile.learner
        start_s = learner.function_start_s.value if configuration.setting.learner == "function" else 0.0
        # At worst all learners share one GPU in equal parts.
        run_s = start_s + min(work.deadline_s, loop.learners * _MORE_WORK * speeds.update_ns(work) / NS)
    return {"gradient_s": run_s + way_s, "gradient_billed_s": run_s}


def _anywhere(configuration: Configuration, training: Training, actors: int, start_s: float) -> WorstTimes:
    """Return the times where a call is known by its deadline only, and an update runs on a slower machine than any
    known.
    """
    slowest: dict[Name, float] = {
        name: 0.0 if name[-1] == "core_ratio" else 1.0 for name in configuration.uncertain()
    }
    there = configuration.at(slowest)
    speeds = Speeds(there.profile, there.stack, gpu=there.setting.learner_gpu)
    update = _first_update(Workload(training), actors)
    update_s = min(update.deadline_s, _LEARNER_LOADS_S + _UNKNOWN * speeds.update_ns(update) / NS)
    each_s = start_s if isinstance(configuration.profile.actors, Functions) else 0.0
    deadline_s = training.longest_call_s
    return WorstTimes(
        actors_ready_s=start_s - each_s,
        attempt_s=each_s + deadline_s + _TALK_S,
        billed_s=each_s + deadline_s,
        at_once=_at_once(configuration),
        tries=1,
        overruns=True,
        learner_ready_s=0.0,
        update_s=update_s,
        update_billed_s=update_s,
        gradient_s=each_s + deadline_s + _TALK_S,
        gradient_billed_s=each_s + deadline_s,
    )


def _first_update(works: Workload, actors: int) -> CallRecord:
    """Return the first update, with the measurements that the scaling policy may request."""
    loop = works.training.loop
    if loop.gradients is not None:
        return works.call("apply", "first", gradients=loop.gradients.learners)
    update = works.update("first", loop.learns_from(actors))
    a_minibatch = update.samples / max(1, update.minibatches)
    batch = update.samples / _passes(works.training)
    products = 0
    for one in works.training.scaling.measures:
        times, samples = (
            (one.products, min(batch, one.samples)) if isinstance(one, CurvatureSpec) else (1, batch)
        )
        products += ceil(times * samples / a_minibatch)
    return replace(update, hessian_products=products)


def _start_s(configuration: Configuration, speeds: Speeds) -> float:
    """Return the time from a call's arrival at its actor until it runs: a function may be cold each time, a kept
    actor is not.
    """
    if isinstance(configuration.profile.actors, Functions):
        return speeds.cold_ns(_WORST_LUCK) / NS
    return speeds.warm_ns / NS


def _way_s(network: NetworkProfile, work: CallRecord, calls: int) -> float:
    """Return the time there and back by storage, beside this many calls like it on the common line."""
    us = 8.0 * _MORE_WORK * (work.bytes_in + work.bytes_out)
    lines_s = 1e-6 * us * (1 / network.actor_mbit_per_s.value + calls / network.coordinator_mbit_per_s.value)
    return lines_s + 2 * network.detour_s.value + network.round_trip_s.value


def _at_once(configuration: Configuration) -> int:
    actors = configuration.profile.actors
    if isinstance(actors, Functions):
        return max(1, int(actors.concurrent.value))
    if actors.units is not None:
        return actors.units * actors.actors_per_unit
    return (
        configuration.tariff.pool.most
        if configuration.tariff.pool is not None
        else int(actors.most_actors.value)
    )


def _actors_ready_s(configuration: Configuration, speeds: Speeds, actors: int, attempts: int) -> float:
    """Return when the last function may start, if each attempt needs a new one, or when a pool's last actor has
    started.
    """
    place = configuration.profile.actors
    if isinstance(place, Pool):
        return _pool_ready_s(configuration, place, speeds, actors)
    limit = StartLimit(place.starts_at_once.value, place.starts_per_s.value)
    return max(limit.begin_ns(0) for _ in range(actors * attempts)) / NS


def _pool_ready_s(configuration: Configuration, pool: Pool, speeds: Speeds, actors: int) -> float:
    """Return when a pool has started. Its start times are drawn from the cloud's seed alone, so they are known."""
    limit = StartLimit(pool.creates_at_once.value, pool.creates_per_s.value)
    ready_ns = 0
    kept = min(actors, _at_once(configuration)) if pool.units is None else _at_once(configuration)
    for first in range(0, kept, pool.actors_per_unit):
        start_ns = speeds.cold_ns(draw(configuration.setting.seed, f"actor-{first}"))
        ready_ns = max(ready_ns, limit.begin_ns(0) + start_ns)
    return ready_ns / NS


def _passes(training: Training) -> int:
    """Return how often an update goes over its data."""
    return int(getattr(training.algorithm, "epochs", 1)) if isinstance(training, TrainingSpec) else 1
