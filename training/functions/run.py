"""Runs a call's body on any platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from training.calls.merge import merge
from training.engine.messages import Call
from training.engine.torch_loading import import_torch
from training.functions.apply import apply
from training.functions.body import Result, WarmCache, required_weights
from training.functions.evaluate import evaluate
from training.functions.gradient import gradient
from training.functions.rollout import rollout
from training.functions.score import score
from training.functions.sgd import sgd
from training.functions.update import update

Body = Callable[[Call, Any, bytes | None, WarmCache], Result]
BODIES: dict[str, Body] = {
    "rollout": lambda call, request, weights, cache: rollout(call, request, required_weights(weights), cache),
    "evaluate": lambda call, request, weights, cache: evaluate(
        call, request, required_weights(weights), cache
    ),
    "update": lambda call, request, _, cache: update(call, request, cache),
    "gradient": lambda call, request, weights, _: gradient(call, request, required_weights(weights)),
    "apply": lambda call, request, *_: apply(call, request),
    "sgd": lambda call, request, weights, cache: sgd(call, request, required_weights(weights), cache),
    "merge": lambda call, request, *_: merge(call, request),
    "score": lambda call, request, weights, cache: score(call, request, required_weights(weights), cache),
}
"""By kind. They load with the process, before a first call's deadline, but for torch."""


def execute(call: Call, weights: bytes | None, warm_cache: WarmCache) -> Result:
    """Run the body of `call` and return its result. Errors are raised unchanged; the platform makes failed outcomes
    of them.

    `weights` are the bytes that `call.weights` names, already fetched and checked by the platform.
    """
    return BODIES[call.kind](call, call.request, weights, warm_cache)


def warm_learner() -> None:
    """Import what a learner may need, so that its first call does not wait for it."""
    import_torch()
