"""One dry run of a few rounds, and what it says about rounds in general: the first ones separate from
all later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloud.timing.forecasting.concurrency import Count, Counts, SimulatedFlight, no_counts, of_actors
from cloud.timing.forecasting.configuration import Configuration, Scale
from cloud.timing.forecasting.rounds import Rounds
from cloud.timing.forecasting.workload import Workload
from cloud.timing.numbers.profile import Pool
from cloud.timing.virtual_time import to_ns
from training.loops.model import LoopOfAnyKind


@dataclass(frozen=True)
class Trial:
    """Counts at the job's own size. `steady` holds a row for each number of actors in `anchors`, for one round.

    `first` is what the first rounds take beyond that, `rise_ns` how much longer a round with new actors is,
    `rise_each` what each of them adds otherwise. `evaluation` is one evaluation, `last` the one at the end, with all
    that ends then.
    """

    anchors: tuple[int, ...]
    steady: Counts
    first: Counts
    rise_ns: float
    rise_each: Counts
    evaluation: Counts
    last: Counts


@dataclass(frozen=True)
class TrialEffort:
    """How many rounds are simulated: before they count as steady, and of those that do."""

    warm_up: int
    steady: int


def run_trial(
    configuration: Configuration,
    works: Workload,
    loop: LoopOfAnyKind,
    scale: Scale,
    anchors: Sequence[int],
    effort: TrialEffort,
    judged_steps: float,
    seed: int,
) -> Trial:
    rounds, flight = configuration.dry_run(works, scale.loop(loop), seed)
    steady: list[Counts] = []
    jumps: list[Counts] = []
    first, rise_ns = no_counts(), 0.0
    for at, actors in enumerate(anchors):
        count = scale.actors(actors)
        if at == 0:
            warm_up = _rounds(rounds, flight, count, effort.warm_up)
        else:
            if at == 1:
                one_more = _rounds(rounds, flight, scale.actors(anchors[0]) + 1, 1)
                rise_ns = max(0.0, float((one_more - steady[0])[Count.TIME_NS]))
            jumps.append(_rounds(rounds, flight, count, 1))
        steady.append(_rounds(rounds, flight, count, effort.steady) / effort.steady)
        if at == 0:
            first = warm_up - effort.warm_up * steady[0]
        else:
            jumps[-1] = (jumps[-1] - steady[-1]) / max(1, count - scale.actors(anchors[at - 1]))
    before = flight.snapshot()
    rounds.settle()
    settled = flight.snapshot()
    flight.gather(works.evaluation(max(1, round(anchors[-1])), judged_steps))
    judged = flight.snapshot() - settled
    full = _of_full_size(scale)
    whole = [_whole_rounds(works, loop, scale, actors) for actors in anchors]
    of_a_round = np.array(steady) * full * np.array(whole)[:, None]
    return Trial(
        anchors=tuple(anchors),
        steady=of_a_round,
        first=first * full,
        rise_ns=rise_ns,
        rise_each=_but_time(np.mean(jumps, axis=0)) if jumps else no_counts(),
        evaluation=_evaluation_of(configuration, works, judged, anchors[-1], of_a_round[-1]),
        last=judged + (settled - before) * full,
    )


def _rounds(rounds: Rounds, flight: SimulatedFlight, actors: int, count: int) -> Counts:
    before = flight.snapshot()
    for _ in range(count):
        rounds.next(actors)
    return flight.snapshot() - before


def _but_time(counts: Counts) -> Counts:
    counts[Count.TIME_NS] = 0.0
    return counts


def _of_full_size(scale: Scale) -> Counts:
    full = np.ones_like(no_counts())
    full[of_actors()] = scale.fewer
    return full


def _whole_rounds(works: Workload, loop: LoopOfAnyKind, scale: Scale, actors: int) -> float:
    """Return how many of the simulated rounds make one of the job's, apart from its larger number of actors."""
    if loop.over_epochs:
        return works.task.calls_an_epoch / works.calls_an_epoch
    if loop.waits_for_slowest:
        return 1.0
    tried_trajectories = scale.loop(loop).learns_from(scale.actors(actors))
    return loop.learns_from(actors) / (scale.fewer * tried_trajectories)


def _evaluation_of(
    configuration: Configuration, works: Workload, judged: Counts, actors: int, a_round: Counts
) -> Counts:
    """Return an evaluation's counts. In some loops it runs beside everything else.

    It takes time only from a pool that cannot grow. One that can has more actors for it until they are idle for long.
    """
    if not works.training.loop.judges_beside:
        return judged
    beside = judged.copy()
    pool = configuration.profile.actors
    beside[Count.TIME_NS] = beside[Count.POOL_NS] = 0.0
    busy_ns = judged[Count.CALLS] * judged[Count.TIME_NS]
    if configuration.tariff.pool is not None:
        stood_ns = judged[Count.TIME_NS] + to_ns(configuration.tariff.pool.idle_s)
        interval_ns = works.training.evaluation.every_rounds * a_round[Count.TIME_NS]
        beside[Count.POOL_NS] = judged[Count.CALLS] * min(stood_ns, interval_ns)
    elif isinstance(pool, Pool):
        kept = (pool.units or 1) * pool.actors_per_unit
        beside[Count.TIME_NS] = busy_ns / max(kept, actors)
    return beside
