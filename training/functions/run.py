"""Runs a call's body on any platform."""

from __future__ import annotations

from training.functions.body import Result, WarmCache
from training.messages import Call, EvaluateRequest, RolloutRequest, UpdateRequest


def execute(call: Call, weights: bytes | None, warm_cache: WarmCache) -> Result:
    """Run the body of `call` and return its result. Errors are raised unchanged; the platform makes failed outcomes
    of them.

    `weights` are the bytes that `call.weights` names, already fetched and checked by the platform.
    """
    request = call.request
    if isinstance(request, RolloutRequest):
        from training.functions.rollout import rollout

        return rollout(call, request, _present(weights), warm_cache)
    if isinstance(request, EvaluateRequest):
        from training.functions.evaluate import evaluate

        return evaluate(call, request, _present(weights), warm_cache)
    if isinstance(request, UpdateRequest):
        from training.functions.update import update

        return update(call, request, warm_cache)
    raise TypeError(f"no body for a call of kind {request!r}")


def warm_learner() -> None:
    """Import what a learner needs, so that its first call does not wait for it."""
    from training.functions.update import import_torch

    import_torch()


def _present(weights: bytes | None) -> bytes:
    if weights is None:
        raise ValueError("this call needs weights but has none")
    return weights
