"""The engine as users run it: `train` over the local platform, behind its ledger. The start is reported by itself.

With a loop and an algorithm's fields it runs those instead of synchronous PPO; with `simulated`, the simulated cloud.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.peers import cases, cpu
from benchmarks.peers.cases import Case
from cloud.money.ledger import MemoryLedger
from training.engine.messages import Outcome, RoundFinished
from training.engine.ports import CheckpointRef, Control, Platform
from training.engine.torch_loading import import_torch
from training.engine.train import train
from webapp.jobs.running.assembly import assemble
from webapp.jobs.spec import JobSpec

_PLENTY_PICODOLLARS = 10**18
_NEVER = 100_000


def job(case: Case, rounds: int, settings: dict[str, Any]) -> JobSpec:
    """The case as a job. Two actors of four environments each, which suits two cores, unless set otherwise."""
    actors = settings.get("actors", 2)
    algorithm = {
        "kind": "ppo",
        "learning_rate": case.learning_rate,
        "discount": cases.DISCOUNT,
        "trace_decay": cases.TRACE_DECAY,
        "clip": case.clip,
        "entropy_coefficient": case.entropy,
        "epochs": case.epochs,
        "minibatch_size": case.minibatch,
        "normalise_observations": not case.pictures,
        "normalise_rewards": not case.pictures,
        "clip_rewards": case.pictures,
    }
    return JobSpec.model_validate(
        {
            "training": {
                "environment": {"id": case.environment},
                "algorithm": settings.get("algorithm") or algorithm,
                "network": {"kind": "cnn"} if case.pictures else {"kind": "mlp"},
                "loop": settings.get("loop", {"kind": "synchronous"}),
                "scaling": {"kind": "fixed", "actors": actors},
                "rollout": {
                    "steps_per_call": case.steps,
                    "environments_per_actor": cases.ENVIRONMENTS // actors,
                },
                "evaluation": {"every_rounds": _NEVER, "episodes": 1},
                "checkpoints": {"every_rounds": _NEVER},
                "stop": {"env_steps": None, "rounds": cases.WARM_UP_ROUNDS + rounds},
                "seed": settings["seed"],
            },
            "platform": {"kind": "simulated" if settings.get("simulated") else "local"},
            "budget_usd": "1000",
        }
    )


class _Watched:
    """A platform that remembers how long the calls of the round took."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self.rollout_s: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._platform, name)

    def next(self, timeout_s: float) -> Outcome | None:
        outcome = self._platform.next(timeout_s)
        if outcome is not None and outcome.usage.steps:
            self.rollout_s.append(outcome.usage.run_s)
        return outcome


class _Nowhere:
    def save(self, round_no: int, data: bytes, **_: Any) -> CheckpointRef:
        return CheckpointRef("", round_no, "", len(data))

    def load(self, name: str) -> bytes:
        raise LookupError(name)


def main(settings: dict[str, Any]) -> dict[str, Any]:
    case = cases.CASES[settings["case"]]
    spec = job(case, settings.get("rounds", case.rounds), settings)
    learn_s: list[float] = []
    _time_learning(type(spec.training.algorithm), learn_s.append)
    began_s = time.perf_counter()
    platform = _Watched(assemble(spec, MemoryLedger(_PLENTY_PICODOLLARS)))
    moments, cpu_s, reports, slowest_s = [], [], [], []
    try:
        for event in train(spec.training, platform=platform, checkpoints=_Nowhere(), control=Control):
            if isinstance(event, RoundFinished):
                moments.append(time.perf_counter())
                cpu_s.append(cpu.used_s())
                reports.append(event.report)
                slowest_s.append(max(platform.rollout_s, default=0.0))
                platform.rollout_s.clear()
            if len(reports) == cases.WARM_UP_ROUNDS:
                learn_s.clear()
    finally:
        platform.close()
    warm = reports[cases.WARM_UP_ROUNDS :]
    steps = sum(report.progress for report in warm)
    took_s = moments[-1] - moments[cases.WARM_UP_ROUNDS - 1]
    last, first = reports[-1], reports[cases.WARM_UP_ROUNDS - 1]
    virtual_s = (last.started_s + last.total_s) - (first.started_s + first.total_s)
    return {
        "steps_per_s": steps / took_s,
        "cpu_ms_per_step": 1000 * (cpu_s[-1] - cpu_s[cases.WARM_UP_ROUNDS - 1]) / steps,
        "platform_steps_per_s": steps / virtual_s,
        "minibatches": sum(report.learner_usage.minibatches for report in warm),
        "first_round_s": moments[0] - began_s,
        "round_s": took_s / len(warm),
        "collect_s": statistics.median(report.collect_s for report in warm),
        "slowest_rollout_s": statistics.median(slowest_s[cases.WARM_UP_ROUNDS :]),
        "update_s": statistics.median(report.update_s for report in warm),
        "learn_s": statistics.median(learn_s),
        "staleness": statistics.mean(report.staleness_mean for report in warm),
        "dropped": sum(report.dropped_contributions for report in warm),
    }


def _time_learning(algorithm: type[Any], note: Callable[[float], None]) -> None:
    """Have every `learn` of this process tell how long it took: what is left of an update call is ours to save."""
    learn = algorithm.learn

    def timed(*arguments: Any) -> Any:
        import_torch()
        began_s = time.perf_counter()
        try:
            return learn(*arguments)
        finally:
            note(time.perf_counter() - began_s)

    algorithm.learn = timed


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
