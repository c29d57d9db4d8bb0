"""Every part of every kind of answer is replaced by what nobody asked for: the check refuses it, and never fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.cloud.test_supervised_runs import descent, of
from tests.training.gradient_calls import apply_call, gradient_call, make_gradient, sampled, spec_of
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import tiny
from training.calls import KINDS
from training.calls.gradient import MEASURED
from training.calls.kind import BadAnswer
from training.engine.codec import decode, encode
from training.engine.messages import Call
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from training.rl.figures import UpdateReport
from training.rl.learner import LearnerState
from training.rl.truncation import Truncation

ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0.5,
        1e308,
        float("nan"),
        2**63,
        "",
        "x" * 100,
        b"",
        b"x",
        [],
        [1],
        ["x", None],
        {},
        {"x": 1},
    ),
    *(
        np.zeros(0),
        np.full(3, np.nan),
        np.full((2, 2), 1e308),
        np.zeros((0, 2**20), np.uint8),
        np.ones(3, bool),
    ),
)
FEWER = (None, True, 0.5, 2**63, "x", [1], ODD[-4])


@cache
def of_rounds() -> dict[str, tuple[Call, Result]]:
    """The last call of each kind of a run by rounds."""
    spec = tiny("CartPole-v1", rollout={"steps_per_call": 40}, stop={"rounds": 2})
    platform = InlinePlatform()
    events_of(spec, platform)
    found = {}
    for call in platform.submitted:
        weights = platform._blobs[call.weights.sha256] if call.weights is not None else None
        found[call.kind] = call, execute(call, weights, WarmCache())
    return found


@cache
def honest(kind: str) -> tuple[Call, Result]:
    """A call, and the answer of its body."""
    if kind in ("sgd", "merge", "score"):
        call, weights = of(descent(significance=0.5 if kind == "sgd" else 0.0), kind)
        return call, execute(call, weights if call.weights is not None else None, WarmCache())
    if kind == "gradient":
        policy = LearnerState.decode(sampled()[1][0][0]).actor_weights(spec_of("ppo, 1 pass").network)
        return make_gradient(
            "ppo, 10 passes", truncation=Truncation(rule="mean_step"), policies=(policy,), states=8
        )
    if kind in ("update", "evaluate", "rollout"):
        return of_rounds()[kind]
    spec = spec_of("impact")
    state = spec.algorithm.initial_state(spec.network, LearnerState.decode(sampled()[1][0][0]).spaces, 3)
    made, blob = gradient_call(spec, state, tuple(sampled()[1][0][1:]), states=8)
    payload = execute(made, blob, WarmCache()).payload
    call = apply_call(spec, state, [payload], policies=(state.actor_weights(spec.network),), ends_round=False)
    return call, execute(call, None, WarmCache())


def changed(document: dict[str, Any], things: Sequence[Any] = ODD) -> Iterator[tuple[str, bytes]]:
    """The document with each part, and each part of a part, replaced by each odd thing."""
    for name, value in document.items():
        if isinstance(value, dict):
            for inner in value:
                yield from (
                    (f"{name}.{inner}", encode({**document, name: {**value, inner: odd}})) for odd in ODD[:12]
                )
        yield from ((name, encode({**document, name: odd})) for odd in things)


def believed(kind: str, results: Iterator[tuple[str, Result]]) -> set[str]:
    """The parts that some odd thing may take the place of. A check raises nothing but BadAnswer."""
    call, honest_result = honest(kind)
    found = set()
    for name, result in results:
        if result == honest_result:
            continue
        try:
            KINDS[kind].check(call, call.request, result)
        except BadAnswer:
            continue
        found.add(name)
    return found


GRADIENTS = {f"report.{name}" for name in MEASURED} | {"divergence", "device"}
GRADIENTS |= {"importance.effective", "importance.truncated"}
BELIEVED: dict[str, set[str]] = {
    "sgd": {"loss", "diverged"},
    "merge": set(),
    "score": set(),
    "gradient": GRADIENTS,
    "apply": {f"report.{name}" for name in UpdateReport.model_fields} | {"policy_shift"},
    "update": {f"report.{name}" for name in UpdateReport.model_fields} | {"policy_shift"},
    "evaluate": set(),
    "rollout": set(),
}
OF_STATES = {"apply": {"step_divergence"}, "update": {"kl_coefficient"}}
"""What a function measured, and no one can know without computing it again. None of it moves a parameter or money."""


@pytest.mark.parametrize("kind", BELIEVED)
def test_only_measurements_of_an_answer_are_believed_and_no_part_makes_its_check_fail(kind: str) -> None:
    call, result = honest(kind)
    KINDS[kind].check(call, call.request, result)
    odd = ((name, replace(result, payload=data)) for name, data in changed(decode(result.payload)))
    assert believed(kind, odd) == BELIEVED[kind]


@pytest.mark.parametrize("kind", ["apply", "update"])
def test_no_part_of_a_state_in_an_answer_is_believed(kind: str) -> None:
    _, result = honest(kind)
    document = decode(result.payload)
    odd = (
        (name, replace(result, payload=encode({**document, "state": state})))
        for name, state in changed(decode(document["state"]), FEWER)
    )
    assert believed(kind, odd) == OF_STATES[kind]


@pytest.mark.parametrize("kind", ["sgd", "gradient"])
def test_no_part_of_what_a_slot_keeps_is_believed(kind: str) -> None:
    _, result = honest(kind)
    assert result.slot_state is not None
    odd = ((name, replace(result, slot_state=data)) for name, data in changed(decode(result.slot_state)))
    assert not believed(kind, odd)
