"""The body of each kind of call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from training.calls.merge import merge
from training.engine.messages import Call
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
"""By kind. Actors import this table as they start, before the deadline of a first call."""
