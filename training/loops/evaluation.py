"""Evaluations on the platform: calls that judge one version, reported as one event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from training.engine.checkpoints import Progress
from training.engine.codec import decode
from training.engine.deadlines import Deadlines
from training.engine.messages import BlobRef, Call, Evaluated
from training.engine.seeds import derive
from training.loops.flight import Landed
from training.tasks.task import Task


class Evaluation:
    """One evaluation of one version: its calls and their results so far."""

    def __init__(
        self,
        task: Task[Any],
        progress: Progress,
        weights: BlobRef,
        deadlines: Deadlines,
        identify: Callable[[str], str],
        memory_mb: int,
    ) -> None:
        self.progress = progress
        self._task = task
        self._landed: dict[str, Landed] = {}
        actors = progress.history[-1].actors if progress.history else 1
        self.calls = [
            Call(
                id=identify(f"evaluate{position}"),
                request=judging.request,
                where="actor",
                round_no=progress.round_no,
                seed=derive(task.spec.seed, "evaluate", progress.round_no, position),
                deadline_s=deadlines.for_kind(judging.request.kind, judging.share),
                memory_mb=memory_mb,
                weights=weights,
                inputs=task.inputs_of(judging.request),
            )
            for position, judging in enumerate(task.judge(progress.round_no, actors))
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
        """Return what the calls that were done found; None if none was."""
        outcomes = [self._landed[name].outcome for name in self.names if name in self._landed]
        done = [outcome for outcome in outcomes if outcome is not None]
        if not done:
            return None
        return Evaluated(
            round_no=self.progress.round_no,
            total_progress=self.progress.total_progress,
            at_s=at_s,
            figures=self._task.evaluation_figures_of([decode(outcome.payload) for outcome in done]),
            cost_picodollars=sum(outcome.cost_picodollars or 0 for outcome in done),
        )
