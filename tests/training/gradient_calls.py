"""Calls that compute gradients and apply them, made by hand over real samples."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from typing import Any

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import updates_of
from tests.training.specs import tiny
from training.calls import KINDS
from training.calls.apply import ApplyRequest
from training.calls.gradient import GradientRequest
from training.engine.codec import decode, encode
from training.engine.messages import BlobRef, Call
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from training.rl.learner import LearnerState
from training.rl.truncation import Truncation
from training.spec import TrainingSpec

OFF = Truncation(rule="off")


WHOLE = {
    "minibatch_size": 1_000_000,
    "normalise_observations": True,
    "normalise_rewards": True,
    "learning_rate": 1e-3,
}


NO_MINIBATCHES = {name: value for name, value in WHOLE.items() if name != "minibatch_size"}


ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo, 1 pass": {"kind": "ppo", "epochs": 1, **WHOLE},
    "ppo, 10 passes": {"kind": "ppo", "epochs": 10, "value_clip": 0.2, "kl_coefficient": 0.2, **WHOLE},
    "ppo, decoupled": {"kind": "ppo", "epochs": 3, "objective": "decoupled", "clip_decay": True, **WHOLE},
    "ppo, recomputed": {"kind": "ppo", "epochs": 3, "recompute_advantages": True, **WHOLE},
    "ppo, KL limit": {"kind": "ppo", "epochs": 10, "target_kl": 1e-4, **WHOLE},
    "a2c": {"kind": "a2c", "normalise_advantages": True, **NO_MINIBATCHES},
    "impala": {"kind": "impala", "epochs": 3, **WHOLE},
    "impact": {"kind": "impact", "epochs": 3, "kl_coefficient": 0.1, "target_every_updates": 2, **WHOLE},
}


@cache
def sampled(environment: str = "CartPole-v1") -> tuple[TrainingSpec, list[tuple[bytes, ...]]]:
    """Two rounds' inputs of updates: the learner's state, then trajectories."""
    spec = tiny(environment, rollout={"steps_per_call": 40}, stop={"rounds": 2})
    return spec, [inputs for _, inputs in updates_of(spec, InlinePlatform())]


def spec_of(name: str, environment: str = "CartPole-v1") -> TrainingSpec:
    return tiny(environment, algorithm=ALGORITHMS[name], rollout={"steps_per_call": 40})


def named(version: int, blob: bytes) -> BlobRef:
    return BlobRef(version=version, sha256=hashlib.sha256(blob).hexdigest(), byte_count=len(blob))


def gradient_call(
    spec: TrainingSpec,
    state: LearnerState,
    trajectories: tuple[bytes, ...],
    *,
    pass_no: int = 1,
    start: bytes | None = None,
    policies: tuple[bytes, ...] = (),
    anchors: tuple[bytes, ...] = (),
    truncation: Truncation = OFF,
    seed: int = 7,
    progress: float = 0.25,
    states: int = 0,
) -> tuple[Call, bytes]:
    """A call for a gradient, and the parameters that it names."""
    blob = state.for_gradients().encode()
    request = GradientRequest(
        environment=spec.environment,
        algorithm=spec.algorithm,
        network=spec.network,
        progress=progress,
        pass_no=pass_no,
        passes=spec.algorithm.passes,
        policies=len(policies),
        anchors=len(anchors),
        truncation=truncation,
        states=states,
    )
    call = Call(
        id="r1-gradient-n1-a1",
        request=request,
        where="actor",
        round_no=1,
        seed=seed,
        deadline_s=60,
        memory_mb=1024,
        weights=named(state.version, blob),
        slot_state=start,
        inputs=(*trajectories, *policies, *anchors),
    )
    return call, blob


def apply_call(
    spec: TrainingSpec,
    state: LearnerState,
    payloads: list[bytes],
    *,
    weights: tuple[float, ...] | None = None,
    policies: tuple[bytes, ...] = (),
    round_no: int = 1,
    **changes: Any,
) -> Call:
    request = ApplyRequest(
        algorithm=spec.algorithm,
        network=spec.network,
        progress=changes.pop("progress", 0.25),
        weights=weights or (1.0,) * len(payloads),
        policies=len(policies),
        **changes,
    )
    return Call(
        id="r1-apply-n2-a1",
        request=request,
        where="learner",
        round_no=round_no,
        seed=0,
        deadline_s=60,
        memory_mb=1024,
        inputs=(state.encode(), *payloads, *policies),
    )


def answered(call: Call, weights: bytes | None = None) -> Result:
    """The result of a call, checked as one that came from an actor."""
    result = execute(call, weights, WarmCache())
    KINDS[call.kind].check(call, call.request, result)
    return result


def learned_by_calls(
    spec: TrainingSpec, state: LearnerState, trajectories: tuple[bytes, ...], round_no: int, seed: int
) -> tuple[LearnerState, list[Result]]:
    """One learner makes all passes over the whole of a round, and each gradient is applied by itself."""
    start, results, first = None, [], state.actor_weights(spec.network)
    for pass_no in range(1, spec.algorithm.passes + 1):
        anchored = pass_no > 1 and spec.algorithm.anchors_to_sampling
        call, blob = gradient_call(
            spec,
            state,
            trajectories,
            pass_no=pass_no,
            start=start,
            seed=seed,
            anchors=(first,) if anchored else (),
        )
        found = answered(call, blob)
        last = decode(found.payload)["last"]
        start = start or found.slot_state
        applied = answered(apply_call(spec, state, [found.payload], round_no=round_no, ends_round=last))
        results += [found, applied]
        state = LearnerState.decode(decode(applied.payload)["state"])
        if last:
            break
    return state, results


def make_gradient(name: str = "ppo, 10 passes", **options: Any) -> tuple[Call, Result]:
    """A call for a gradient of real samples, and the result of its body."""
    spec, (_, *trajectories) = spec_of(name), sampled()[1][0]
    spaces = LearnerState.decode(sampled()[1][0][0]).spaces
    state = spec.algorithm.initial_state(spec.network, spaces, 3)
    call, blob = gradient_call(spec, state, tuple(trajectories), **options)
    return call, execute(call, blob, WarmCache())


def with_changes(result: Result, changes: dict[str, Any]) -> Result:
    """The result with parts of its document replaced; None takes one away."""
    document = {**decode(result.payload), **changes}
    kept = {name: value for name, value in document.items() if value is not None or name not in changes}
    return replace(result, payload=encode(kept))


WEIGHT, BIAS = "g:policy.0.weight", "g:policy.0.bias"
