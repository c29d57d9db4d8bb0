"""Fitting a quadratic: actors draw noisy gradients, the learner descends, and the loss judges it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from training.calls.quadratic import AppraiseRequest, DescendRequest, SlopeRequest, state_of

from training.base_model import FrozenModel
from training.engine.checkpoints import Progress
from training.engine.codec import Document, decode
from training.engine.reports import EvaluationFigures, Figures
from training.loops.model import AnyLoop
from training.loops.synchronous import Synchronous
from training.scaling import AnyScaling
from training.scaling.fixed import Fixed
from training.spec import CheckpointSpec
from training.tasks.score import Score
from training.tasks.task import Judging, Task
from training.tasks.training import Training


class QuadraticCalls(FrozenModel):
    samples: int = Field(16, ge=1, title="Samples a call", json_schema_extra={"unit": "samples"})
    memory_mb: int = Field(1024, ge=128, title="Memory of an actor")
    longest_s: float = Field(60.0, gt=0, title="Longest call", json_schema_extra={"unit": "s"})
    attempts: int = Field(3, ge=1, title="Attempts")


class QuadraticJudging(FrozenModel):
    every_rounds: int = Field(2, ge=1, title="Judge every", json_schema_extra={"unit": "rounds"})


class QuadraticStop(FrozenModel):
    samples: int | None = Field(1000, ge=1, title="Samples")
    target_loss: float | None = Field(None, title="Target loss")
    rounds: int | None = Field(None, ge=1, title="Rounds")
    minutes: float | None = Field(None, gt=0, title="Time", json_schema_extra={"unit": "min"})
    no_progress_evaluations: int | None = Field(None, ge=1, title="Patience")

    @property
    def progress_limit(self) -> int | None:
        return self.samples

    @property
    def target_score(self) -> float | None:
        return self.target_loss


class Quadratic(Training):
    """A quadratic: fit its minimum."""

    progress_unit: ClassVar[str] = "samples"
    learned: ClassVar[str] = "model"
    score: ClassVar[Score] = Score("loss", higher_is_better=False, decimals=4)
    reviewed: ClassVar[tuple[tuple[str, str], ...]] = (("Dimension", "dimension"), ("Rate", "rate"))
    limit_field: ClassVar[str] = "stop.samples"
    memory_field: ClassVar[str] = "calls.memory_mb"

    kind: Literal["quadratic"] = "quadratic"
    schema_version: Literal[1] = 1
    dimension: int = Field(4, ge=1, le=1000, title="Dimension")
    rate: float = Field(0.3, gt=0, le=1, title="Learning rate")
    scaling: AnyScaling = Field(default_factory=Fixed)
    loop: AnyLoop = Field(default_factory=Synchronous)
    calls: QuadraticCalls = QuadraticCalls()
    evaluation: QuadraticJudging = QuadraticJudging()
    checkpoints: CheckpointSpec = CheckpointSpec()
    stop: QuadraticStop = QuadraticStop()
    seed: int = Field(0, ge=0, title="Seed")

    @property
    def subject(self) -> str:
        return f"Quadratic of {self.dimension}"

    @property
    def method(self) -> str:
        return "descent"

    @property
    def memory_mb(self) -> int:
        return self.calls.memory_mb

    @property
    def progress_a_call(self) -> int:
        return self.calls.samples

    @property
    def longest_call_s(self) -> float:
        return self.calls.longest_s

    @property
    def attempts(self) -> int:
        return self.calls.attempts


class QuadraticRound(Figures):
    training: Literal["quadratic"] = "quadratic"
    loss: float

    @property
    def score(self) -> float:
        return self.loss


class QuadraticLoss(EvaluationFigures):
    training: Literal["quadratic"] = "quadratic"
    loss: float

    @property
    def score(self) -> float:
        return self.loss


class QuadraticTask(Task[Quadratic]):
    kind = "quadratic"
    sampling, learning, judging = "slope", "descend", "appraise"
    spec_model = Quadratic
    round_figures = QuadraticRound
    evaluation_figures = QuadraticLoss

    def begin(self) -> Progress:
        start = state_of(np.zeros(self.spec.dimension), 0)
        return Progress(learner=start, weights=start)

    def fork(self, progress: Progress) -> Progress:
        start = state_of(decode(progress.learner)["theta"], 0)
        return Progress(learner=start, weights=start)

    def incompatible_part(self, other: Quadratic) -> tuple[str, object] | None:
        return ("dimension", other.dimension) if other.dimension != self.spec.dimension else None

    def sample(self, slot: int) -> SlopeRequest:
        return SlopeRequest(samples=self.spec.calls.samples, slot=slot)

    def learn(self, fraction_done: float) -> DescendRequest:
        return DescendRequest(rate=self.spec.rate * (1.0 - 0.5 * fraction_done))

    def judge(self, round_no: int, actors: int) -> Sequence[Judging]:
        return [Judging(AppraiseRequest(), 1)]

    def round_figures_of(self, learned: Sequence[Document]) -> QuadraticRound:
        return QuadraticRound(loss=learned[-1]["loss"])

    def evaluation_figures_of(self, judged: Sequence[Document]) -> QuadraticLoss:
        return QuadraticLoss(loss=judged[0]["loss"])
