"""From what a dry run counted to money: the tariff's own prices, taken apart once, then plain arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cloud.forecasting.flight import Count, Counts
from cloud.pricing import CallPrice, Tariff, total
from cloud.timing import NS
from training.messages import Call, EvaluateRequest, RolloutRequest, UpdateRequest
from training.reports import Usage
from training.spec import TrainingSpec

Part = Literal["actors", "learner", "evaluation", "standing", "requests"]
PARTS: tuple[Part, ...] = ("actors", "learner", "evaluation", "standing", "requests")
_LONG_S = 1000.0
# After a few rounds a deadline is a small multiple of what calls take, and never less than this.
_USUAL_DEADLINE_S = 10.0
_OF_ACTORS = frozenset({"actors", "workers"})


@dataclass(frozen=True)
class _Rate:
    """Picodollars for a billed millisecond and for a call, which is all that prices of calls depend on."""

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


class Bill:
    """Prices of a job. `set_aside` is what the ledger keeps for the calls of a round before they are sent."""

    def __init__(self, tariff: Tariff, training: TrainingSpec) -> None:
        rollout, evaluate, update = _calls(training)
        self._tariff = tariff
        self._rollout = _Rate.of(tariff.actor, rollout)
        self._ready = _Rate.of(tariff.actor, rollout, provisioned=True)
        self._update = _Rate.of(tariff.learner, update)
        self._pool_per_ns = 0.0
        if tariff.pool is not None:
            self._pool_per_ns = total(tariff.pool.standing(1).lines(3600 * NS)) / (3600 * NS)
        self._worst = {call.kind: tariff.worst_case(call) for call in (rollout, evaluate, update)}

    @property
    def costs_nothing(self) -> bool:
        tariff = self._tariff
        return not (tariff.actor or tariff.learner or tariff.standing or tariff.pool)

    def set_aside(self, actors: int) -> float:
        return float(max(actors * self._worst["rollout"], self._worst["update"]))

    def parts(self, counts: Counts) -> Mapping[Part, float]:
        """Picodollars by part."""
        per_call = self._rollout.per_call
        found: dict[Part, float] = {
            "actors": counts[Count.ROLLOUT_MS] * self._rollout.per_ms
            + counts[Count.ROLLOUT_READY_MS] * self._ready.per_ms
            + counts[Count.POOL_NS] * self._pool_per_ns,
            "learner": counts[Count.UPDATE_MS] * self._update.per_ms,
            "evaluation": counts[Count.EVALUATION_MS] * self._rollout.per_ms
            + counts[Count.EVALUATION_READY_MS] * self._ready.per_ms,
            "standing": 0.0,
            "requests": (counts[Count.ROLLOUTS] + counts[Count.EVALUATIONS]) * per_call
            + counts[Count.UPDATES] * self._update.per_call,
        }
        for standing in self._tariff.standing:
            name: Part = "standing"
            if standing.resource in _OF_ACTORS:
                name = "actors"
            elif standing.resource == "learner":
                name = "learner"
            found[name] += total(standing.lines(int(counts[Count.TIME_NS])))
        return {part: float(amount) for part, amount in found.items()}


def _calls(training: TrainingSpec) -> tuple[Call, Call, Call]:
    """One of each kind, to ask prices for."""
    environment = training.environment
    deadline_s = min(training.rollout.deadline_s, _USUAL_DEADLINE_S)
    rollout = RolloutRequest(
        environment=environment, environments=1, steps=1, slot=0, discount=training.algorithm.discount
    )
    update = UpdateRequest(algorithm=training.algorithm, network=training.network, progress=0.0)

    def call(
        request: RolloutRequest | EvaluateRequest | UpdateRequest, where: Literal["actor", "learner"]
    ) -> Call:
        return Call(
            id="forecast",
            request=request,
            where=where,
            round_no=1,
            seed=0,
            deadline_s=deadline_s if where == "actor" else 900.0,
            memory_mb=training.rollout.memory_mb,
        )

    evaluation = EvaluateRequest(environment=environment, episode_seeds=(0,))
    return call(rollout, "actor"), call(evaluation, "actor"), call(update, "learner")
