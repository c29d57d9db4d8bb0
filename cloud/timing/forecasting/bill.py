"""Converts a dry run's counts to money: the tariff's prices are decomposed once, then it is plain arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cloud.money.billing.full_bill import place_of_rent
from cloud.money.billing.parts import BillPart, parts_of_calls
from cloud.money.pricing import CallPrice, Tariff, total
from cloud.money.rents.job import rent_between
from cloud.money.rents.slices import A_LONG_ROUND
from cloud.timing.forecasting.calls import first_call
from cloud.timing.forecasting.concurrency import BilledKind, Count, Counts, index_of
from cloud.timing.virtual_time import NS
from training.calls import KINDS
from training.engine.messages import Call
from training.engine.reports import Usage
from training.tasks.kinds import task_of
from training.tasks.training import Training

_ON_TOP = (
    BillPart("standing", "Kept ready", "Functions and machines that are paid for, busy or not"),
    BillPart("requests", "Requests", "A fee for each call"),
)
_LONG_S = 1000.0
# After a few rounds a deadline is a small multiple of the time of calls, and never less than this.
_USUAL_DEADLINE_S = 10.0


def forecast_parts() -> tuple[BillPart, ...]:
    """Return the parts that a forecast tells apart."""
    return (*parts_of_calls(), *_ON_TOP)


def part_of_rent(resource: str) -> str:
    """Return the part of a rented resource: its whole rent, busy or not."""
    place = place_of_rent(resource)
    return place if place in ("actors", "learner") else "standing"


@dataclass(frozen=True)
class _Rate:
    """Picodollars for a billed millisecond and for a call: prices of calls depend on nothing else."""

    per_ms: float = 0.0
    per_call: float = 0.0

    @staticmethod
    def of(price: CallPrice | None, call: Call, *, provisioned: bool = False) -> _Rate:
        if price is None:
            return _Rate()
        once, twice = (
            total(price.lines(call, Usage(billed_s=billed_s, provisioned=provisioned)) or ())
            for billed_s in (_LONG_S, 2 * _LONG_S)
        )
        return _Rate((twice - once) / (_LONG_S * 1000), float(2 * once - twice))


def _detour(price: CallPrice | None, call: Call) -> float:
    """Return the extra cost of a payload that goes by storage."""
    if price is None:
        return 0.0
    without, once = (total(price.lines(call, Usage(billed_s=1.0, detours=count)) or ()) for count in (0, 1))
    return float(once - without)


class ForecastBill:
    """A job's prices, and what its ledger reserves beforehand: worst cases of calls, and rent."""

    def __init__(self, tariff: Tariff, training: Training) -> None:
        task = task_of(training)
        sampling, judging, learning = (
            first_call(training, kind) for kind in (task.sampling, task.judging, task.learning)
        )
        self._tariff = tariff
        self._parts = [part.key for part in forecast_parts()]
        self._kinds = [(kind.part.key, index_of(name, BilledKind.ACTOR_MS)) for name, kind in KINDS.items()]
        self._actor = _Rate.of(tariff.actor, sampling)
        self._ready = _Rate.of(tariff.actor, sampling, provisioned=True)
        self._learner = _Rate.of(tariff.learner, learning)
        self._per_detour = _detour(tariff.actor, sampling)
        self._pool_per_ns = 0.0
        if tariff.pool is not None:
            self._pool_per_ns = total(tariff.pool.actor_rent(1).lines(3600 * NS)) / (3600 * NS)
        self._evaluations, _ = task.most_judgings()
        self._worst = max(tariff.worst_case(_of(sampling, _USUAL_DEADLINE_S)), 0)
        self._worst_update = tariff.worst_case(learning)
        self._worst_evaluation = tariff.worst_case(judging)

    @property
    def costs_nothing(self) -> bool:
        tariff = self._tariff
        return not (tariff.actor or tariff.learner or tariff.rents or tariff.pool)

    @property
    def actor_second(self) -> float:
        """What a second of a busy actor costs, in picodollars."""
        return 1000 * self._actor.per_ms

    def kept_back(self, actors: int, round_s: float) -> float:
        """Return the part of a budget that can never be spent: it is reserved for a round, and for rent, to the end.

        `round_s`: the time of a round.
        """
        rent = rent_between(self._tariff, actors, A_LONG_ROUND * round_s)
        return float(max(actors * self._worst, self._worst_update) + rent)

    def first_evaluation(self, actors: int) -> float:
        """Return what must be reserved for the first evaluation, whose calls may take their full deadline."""
        calls = min(actors, self._evaluations)
        return float(calls * self._worst_evaluation + rent_between(self._tariff, actors, 0.0))

    def parts(self, counts: Counts) -> Mapping[str, float]:
        """Return picodollars by part."""
        costs = dict.fromkeys(self._parts, 0.0)
        on_actors = on_learner = 0.0
        for part, begin in self._kinds:
            costs[part] += (
                counts[begin + BilledKind.ACTOR_MS] * self._actor.per_ms
                + counts[begin + BilledKind.ACTOR_READY_MS] * self._ready.per_ms
                + counts[begin + BilledKind.LEARNER_MS] * self._learner.per_ms
            )
            on_actors += counts[begin + BilledKind.ON_ACTORS]
            on_learner += counts[begin + BilledKind.ON_LEARNER]
        costs["actors"] += counts[Count.POOL_NS] * self._pool_per_ns
        costs["requests"] = (
            on_actors * self._actor.per_call
            + on_learner * self._learner.per_call
            + counts[Count.DETOURS] * self._per_detour
        )
        for rent in self._tariff.rents:
            costs[part_of_rent(rent.resource)] += total(rent.lines(int(counts[Count.TIME_NS])))
        return {part: float(amount) for part, amount in costs.items()}


def _of(call: Call, deadline_s: float) -> Call:
    return call.model_copy(update={"deadline_s": min(call.deadline_s, deadline_s)})
