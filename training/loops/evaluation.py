"""Evaluations on the platform: episodes spread over actors, told as one event."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

import numpy as np

from training.checkpoints import Progress
from training.codec import decode
from training.deadlines import Deadlines
from training.loops.flight import Flight, Halt
from training.messages import BlobRef, Call, Evaluated, EvaluateRequest, Event
from training.seeds import derive
from training.spec import TrainingSpec

_CALLS_AT_MOST = 16


def evaluation(
    spec: TrainingSpec,
    progress: Progress,
    weights: BlobRef,
    flight: Flight,
    deadlines: Deadlines,
    call_prefix: str,
    clock: Callable[[], float],
) -> Generator[Event, None, tuple[Progress, Halt | None]]:
    """Play the spec's episodes; the progress with their mean noted. Without a single episode nothing is noted."""
    actors = progress.history[-1].actors if progress.history else 1
    seeds = [
        derive(spec.seed, "evaluation", progress.round_no, episode) % 2**31
        for episode in range(spec.evaluation.episodes)
    ]
    # The share of each call depends on the spec and the plan only, so that workers and timing change nothing.
    share = -(-len(seeds) // min(actors, len(seeds), _CALLS_AT_MOST))
    calls = [
        Call(
            id=f"{call_prefix}r{progress.round_no}-evaluate{position}-a1",
            request=EvaluateRequest(
                environment=spec.environment, episode_seeds=tuple(seeds[begin : begin + share])
            ),
            where="actor",
            round_no=progress.round_no,
            seed=derive(spec.seed, "evaluate", progress.round_no, position),
            deadline_s=deadlines.for_kind("evaluate"),
            memory_mb=spec.rollout.memory_mb,
            weights=weights,
        )
        for position, begin in enumerate(range(0, len(seeds), share))
    ]
    gathered = yield from flight.gather(calls, spec.rollout.attempts, "the evaluation")
    progress = replace(
        progress, cost_picodollars=progress.cost_picodollars + gathered.cost_picodollars, elapsed_s=clock()
    )
    if gathered.halt is not None or not gathered.done:
        return progress, gathered.halt
    documents = [decode(outcome.payload) for outcome in gathered.in_order()]
    returns = np.concatenate([document["returns"] for document in documents])
    mean = float(returns.mean())
    yield Evaluated(
        round_no=progress.round_no,
        total_env_steps=progress.total_env_steps,
        at_s=clock(),
        episode_returns=tuple(map(float, returns)),
        return_mean=mean,
        return_std=float(returns.std()),
        length_mean=float(np.concatenate([document["lengths"] for document in documents]).mean()),
        cost_picodollars=gathered.cost_picodollars,
    )
    progress = replace(
        progress,
        evaluation_means=(*progress.evaluation_means, mean),
        evaluated_round=progress.round_no,
    )
    return progress, None
