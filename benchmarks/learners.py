"""What many learners cost beside their gradients: the coordinator's CPU for each gradient of the staleness-aware loop.

A job of PPO with Hopper's slices of 1,024 steps runs twice in this process. The first run computes, the second is
answered with what the first returned. So what it takes is the coordinator alone: slices, the queue, releases, calls,
versions that are published, and the check of each gradient as if it came from a cloud.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from rig.figures import Figure
from training.calls import KINDS
from training.calls.gradient import GradientRequest
from training.engine.messages import BlobRef, Call, Outcome
from training.engine.ports import CheckpointRef, Control
from training.engine.train import train
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from training.spec import TrainingSpec

_MOST_MS = {(64, 64): 1.0, (256, 256): 3.0}
_LEARNERS = 4


def measure(*, quick: bool = False) -> Iterator[Figure]:
    for hidden, most in _MOST_MS.items():
        words = "×".join(map(str, hidden))
        times = _measured(hidden, rounds=3 if quick else 6, repeats=5)
        yield Figure(
            f"{words}: CPU of a gradient beside the bodies",
            times["beside_ms"],
            "ms",
            at_most=most,
            data=times,
        )
        yield Figure(f"{words}: CPU of a gradient's body", times["body_ms"], "ms")
        with_policies = f"truncation over {times['policies']} other policies"
        yield Figure(f"{words}: of that, {with_policies}", times["body_ms"] - times["alone_ms"], "ms")
        yield Figure(f"{words}: CPU of an aggregation's body", times["apply_ms"], "ms")


class _Platform:
    """Answers with what it knows, and computes the rest. Calls overlap: the one in the middle is answered first."""

    def __init__(self, answers: dict[str, Result]) -> None:
        self.answers = answers
        self.blobs: dict[str, bytes] = {}
        self.calls: list[Call] = []
        self._waiting: deque[Call] = deque()
        self._warm_cache = WarmCache()

    def publish(self, version: int, blob: bytes) -> BlobRef:
        digest = hashlib.sha256(blob).hexdigest()
        self.blobs[digest] = blob
        return BlobRef(version=version, sha256=digest, byte_count=len(blob))

    def submit(self, call: Call) -> None:
        self.calls.append(call)
        self._waiting.append(call)

    def next(self, timeout_s: float) -> Outcome | None:
        if not self._waiting:
            return None
        self._waiting.rotate(-(len(self._waiting) // 2))
        call = self._waiting.popleft()
        if call.id not in self.answers:
            weights = None if call.weights is None else self.blobs[call.weights.sha256]
            self.answers[call.id] = execute(call, weights, self._warm_cache)
        result = self.answers[call.id]
        if call.kind == "gradient":
            KINDS[call.kind].check(call, call.request, result)
        return Outcome(
            call_id=call.id,
            status="done",
            started_s=self.now_s(),
            finished_s=self.now_s(),
            usage=result.usage,
            payload=result.payload,
            slot_state=result.slot_state,
        )

    def cancel(self, call_id: str) -> None:
        """Nothing is stopped here."""

    def now_s(self) -> float:
        return float(len(self.calls))

    def close(self) -> None:
        self._waiting.clear()


class _NoCheckpoints:
    def save(self, round_no: int, data: bytes, *, best: bool = False) -> CheckpointRef:
        return CheckpointRef(str(round_no), round_no, "", len(data))

    def load(self, name: str) -> bytes:
        raise LookupError(name)


def _run(spec: TrainingSpec, platform: _Platform) -> None:
    for _ in train(spec, platform=platform, checkpoints=_NoCheckpoints(), control=Control):
        pass


def _measured(hidden: tuple[int, ...], *, rounds: int, repeats: int) -> dict[str, Any]:
    spec = TrainingSpec.model_validate(
        {
            "environment": {"id": "Hopper-v5"},
            "algorithm": {"kind": "ppo", "epochs": 10, "kl_coefficient": 0.2, "normalise_observations": True},
            "network": {"kind": "mlp", "hidden": list(hidden)},
            "rollout": {"steps_per_call": 256},
            "scaling": {"kind": "fixed", "actors": 4 * _LEARNERS},
            "loop": {"kind": "staleness_aware", "learners": _LEARNERS, "trajectories_per_gradient": 4},
            "stop": {"env_steps": None, "rounds": rounds},
            "evaluation": {"every_rounds": 1000, "episodes": 1},
            "checkpoints": {"every_rounds": 1000},
        }
    )
    computing = _Platform({})
    _run(spec, computing)
    count = Counter(call.kind for call in computing.calls)
    # Others on this machine can only make it slower, so the quickest of a few is nearest to the truth.
    beside = min(_cpu_s(lambda: _run(spec, _Platform(computing.answers))) for _ in range(repeats))
    crowded = max(
        (call for call in computing.calls if call.kind == "gradient"),
        key=lambda call: _request(call).policies,
    )
    applied = max(
        (call for call in computing.calls if call.kind == "apply"), key=lambda call: len(call.inputs)
    )
    return {
        "beside_ms": 1e3 * beside / count["gradient"],
        "body_ms": _body_ms(crowded, computing.blobs),
        "alone_ms": _body_ms(_without_policies(crowded), computing.blobs),
        "apply_ms": _body_ms(applied, computing.blobs),
        "policies": _request(crowded).policies,
        "gradients": count["gradient"],
        "versions": count["apply"],
    }


def _request(call: Call) -> GradientRequest:
    assert isinstance(call.request, GradientRequest)
    return call.request


def _without_policies(call: Call) -> Call:
    """Return the same call of a learner that runs alone."""
    request = _request(call)
    own = call.inputs[: len(call.inputs) - request.policies - request.anchors]
    anchors = call.inputs[len(call.inputs) - request.anchors :]
    return call.model_copy(
        update={"inputs": (*own, *anchors), "request": request.model_copy(update={"policies": 0})}
    )


def _body_ms(call: Call, blobs: dict[str, bytes]) -> float:
    """Return the CPU of a body, as the mean of ten runs: reading the clock takes long on some machines."""
    weights = None if call.weights is None else blobs[call.weights.sha256]

    def run() -> None:
        for _ in range(10):
            execute(call, weights, WarmCache())

    return 1e2 * min(_cpu_s(run) for _ in range(3))


def _cpu_s(run: Any) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began
