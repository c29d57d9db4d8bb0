"""Evaluations on the platform: episodes spread over actors, reported as one event."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from training.calls.evaluate import EvaluateRequest
from training.checkpoints import Progress
from training.codec import decode
from training.deadlines import Deadlines
from training.loops.flight import Landed
from training.messages import BlobRef, Call, Evaluated
from training.seeds import derive
from training.spec import TrainingSpec

CALLS_AT_MOST = 16


class Evaluation:
    """One evaluation of one version: its calls and their results so far."""

    def __init__(
        self,
        spec: TrainingSpec,
        progress: Progress,
        weights: BlobRef,
        deadlines: Deadlines,
        identify: Callable[[str], str],
        memory_mb: int,
    ) -> None:
        self.progress = progress
        self._landed: dict[str, Landed] = {}
        actors = progress.history[-1].actors if progress.history else 1
        seeds = [
            derive(spec.seed, "evaluation", progress.round_no, episode) % 2**31
            for episode in range(spec.evaluation.episodes)
        ]
        # Each call's share depends only on the spec and the plan, so the workers and their timing change nothing.
        share = -(-len(seeds) // min(actors, len(seeds), CALLS_AT_MOST))
        self.calls = [
            Call(
                id=identify(f"evaluate{position}"),
                request=EvaluateRequest(
                    environment=spec.environment, episode_seeds=tuple(seeds[begin : begin + share])
                ),
                where="actor",
                round_no=progress.round_no,
                seed=derive(spec.seed, "evaluate", progress.round_no, position),
                deadline_s=deadlines.for_kind("evaluate", share),
                memory_mb=memory_mb,
                weights=weights,
            )
            for position, begin in enumerate(range(0, len(seeds), share))
        ]
        self.names = tuple(call.name for call in self.calls)

    def expects(self, landed: Landed) -> bool:
        return landed.name in self.names

    def land(self, landed: Landed) -> None:
        self._landed[landed.name] = landed

    @property
    def complete(self) -> bool:
        return len(self._landed) == len(self.names)

    def result(self, at_s: float) -> Evaluated | None:
        """Return the returns of the finished episodes; None if no call was done."""
        outcomes = [self._landed[name].outcome for name in self.names if name in self._landed]
        done = [outcome for outcome in outcomes if outcome is not None]
        if not done:
            return None
        documents = [decode(outcome.payload) for outcome in done]
        returns = np.concatenate([document["returns"] for document in documents])
        return Evaluated(
            round_no=self.progress.round_no,
            total_env_steps=self.progress.total_env_steps,
            at_s=at_s,
            episode_returns=tuple(map(float, returns)),
            return_mean=float(returns.mean()),
            return_std=float(returns.std()),
            length_mean=float(np.concatenate([document["lengths"] for document in documents]).mean()),
            cost_picodollars=sum(outcome.cost_picodollars or 0 for outcome in done),
        )
