"""The coordinator's own time for each completion: engine, ledger and platform, without any computation.

Bodies are answered at once with a fragment and an update made beforehand; the time for that is subtracted.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.local import LocalOptions, LocalPlatform
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.calibration.samples import trajectory
from cloud.workers.execution import Execution
from training.calls.rollout import RolloutRequest
from training.engine.codec import Document, decode, encode
from training.engine.messages import Call
from training.engine.ports import CheckpointRef, Control, Platform
from training.engine.reports import Usage
from training.engine.train import train
from training.functions.body import Result, WarmCache
from training.functions.run import execute, warm_learner
from training.rl.environments.making import spaces_of
from training.rl.environments.model import EnvironmentSpec
from training.spec import TrainingSpec

_PLENTY_PICODOLLARS = 10**18
_STEPS = 256
_STATE_BYTES = 1_000


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return milliseconds of processor time per completion by kind of platform, one for each repeat.

    Rounds with many actors and with few are compared, which cancels a round's other costs. `arguments`: both numbers
    of actors, and the number of rounds.
    """
    warm_learner()
    times: dict[str, list[float]] = {"local": [], "simulated": []}
    for repeat in range(arguments["repeats"] + 1):
        for kind, times_ms in times.items():
            few, many = arguments["actors"]
            taken_s = {actors: _round_s(kind, actors, arguments["rounds"]) for actors in (few, many)}
            if repeat:
                times_ms.append(1000.0 * (taken_s[many] - taken_s[few]) / (many - few))
    return dict(times)


def _round_s(kind: str, actors: int, rounds: int) -> float:
    """Return the processor time of a round in steady state, without the executor's."""
    executor = _Ready()
    spec = _spec(actors, rounds + 1)
    tariff = SimulatedOptions().tariff(PriceBook.load(), spec.memory_mb)
    inner: Platform
    if kind == "local":
        inner = LocalPlatform(LocalOptions(), executor=executor)
    else:
        inner = SimulatedPlatform(SimulatedOptions(), executor=executor)
    platform = MeteredPlatform(inner, MemoryLedger(_PLENTY_PICODOLLARS), tariff)
    began_s, finished = 0.0, 0
    try:
        for event in train(spec, platform=platform, checkpoints=NoCheckpoints(), control=Control):
            if event.kind != "round":
                continue
            finished += 1
            now_s = time.process_time() - executor.took_s
            if finished == 1:
                began_s = now_s
            if finished == rounds + 1:
                return (now_s - began_s) / rounds
    finally:
        platform.close()
    raise RuntimeError(f"only {finished} of {rounds + 1} rounds were played")


def _spec(actors: int, rounds: int) -> TrainingSpec:
    return TrainingSpec.model_validate(
        {
            "environment": {"id": "Hopper-v5"},
            "algorithm": {"kind": "ppo", "epochs": 1, "minibatch_size": 1024},
            "scaling": {"kind": "fixed", "actors": actors},
            "rollout": {"steps_per_call": _STEPS},
            "evaluation": {"every_rounds": 100_000, "episodes": 1},
            "checkpoints": {"every_rounds": 100_000},
            "stop": {"env_steps": None, "rounds": rounds},
        }
    )


class _Ready:
    """Implements `cloud.workers.executor.Executor` with answers made beforehand."""

    def __init__(self) -> None:
        self.took_s = 0.0
        self._waiting: deque[Call] = deque()
        spaces = spaces_of(EnvironmentSpec(id="Hopper-v5"))
        self._fragment = trajectory(spaces, _STEPS, 1, 0)
        self._state = bytes(_STATE_BYTES)
        self._update: Document | None = None
        self._version = 0

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None:
        self._waiting.append(call)

    def take(self, timeout_s: float) -> Execution | None:
        began_s = time.process_time()
        try:
            if not self._waiting:
                return None
            call = self._waiting.popleft()
            return Execution(call.id, self._answer(call))
        finally:
            self.took_s += time.process_time() - began_s

    def _answer(self, call: Call) -> Result:
        if isinstance(call.request, RolloutRequest):
            return Result(self._fragment, self._state, Usage(steps=_STEPS, inferences=_STEPS, macs=5000))
        if self._update is None:
            first = call.model_copy(update={"inputs": (call.inputs[0], self._fragment)})
            self._update = decode(execute(first, None, WarmCache()).payload)
        self._version += 1
        fresh = {**self._update, "version": self._version, "env_steps": _STEPS * (len(call.inputs) - 1)}
        return Result(encode(fresh), None, Usage(minibatches=1, samples=1024, macs=10_000))

    def cancel(self, call_id: str) -> None:
        return None

    def close(self) -> None:
        return None


class NoCheckpoints:
    def save(self, round_no: int, data: bytes, *, best: bool = False) -> CheckpointRef:
        return CheckpointRef("", round_no, "", len(data))

    def load(self, name: str) -> bytes:
        raise LookupError(name)
