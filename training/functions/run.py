"""Runs a call's body on any platform."""

from __future__ import annotations

from training.engine.messages import Call
from training.engine.torch_loading import import_torch
from training.functions.body import Result, WarmCache


def execute(call: Call, weights: bytes | None, warm_cache: WarmCache) -> Result:
    """Run the body of `call` and return its result. Errors are raised unchanged; the platform makes failed outcomes
    of them.

    `weights` are the bytes that `call.weights` names, already fetched and checked by the platform.
    """
    from training.functions.bodies import BODIES  # gymnasium

    return BODIES[call.kind](call, call.request, weights, warm_cache)


def warm_learner() -> None:
    """Import what a learner may need, so that its first call does not wait for it."""
    import_torch()
