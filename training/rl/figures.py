"""The figures that reinforcement learning reports of an update, a round and an evaluation."""

from __future__ import annotations

from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer

from training.engine.reports import EvaluationFigures, Figures, Message


class UpdateReport(Message):
    """The learner's measurements in one update, means over its gradient steps.

    Norms are those before clipping: of the whole gradient, and of the policy's and the critic's parts. Layers that both
    share count as the policy's. Updates from before the parts were measured do not have them.
    """

    policy_loss: float
    value_loss: float
    entropy: float
    approximate_kl: float
    clip_fraction: float
    explained_variance: float
    gradient_norm: float
    policy_gradient_norm: float | None = None
    critic_gradient_norm: float | None = None
    learning_rate: float
    device: str = "cpu"

    @model_serializer(mode="wrap")
    def _without_unmeasured_parts(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = handler(self)
        if self.policy_gradient_norm is None and self.critic_gradient_norm is None:
            del document["policy_gradient_norm"], document["critic_gradient_norm"]
        return document


class CurvatureReport(Message):
    """The curvature of the policy's objective: extreme eigenvalues of its Hessian, and R = −λ_max / λ_min.

    `note` says which value is used instead where the formula is undefined; `error` bounds how far the eigenvalues are
    off.
    """

    largest: float | None
    smallest: float | None
    ratio: float | None
    note: str = ""
    error: float | None = None
    products: int
    samples: int


class NoiseScaleReport(Message):
    """The gradient noise scale over `slices` actors' samples; None with a note where it is undefined."""

    scale: float | None
    note: str = ""
    slices: int


class LearningFigures(Figures):
    """A round of reinforcement learning."""

    episodes: int
    episode_return_mean: float | None
    episode_length_mean: float | None
    update: UpdateReport
    curvature: CurvatureReport | None = None
    noise_scale: NoiseScaleReport | None = None
    policy_shift: float | None = None

    @property
    def score(self) -> float | None:
        return self.episode_return_mean


class EpisodeFigures(EvaluationFigures):
    """An evaluation in reinforcement learning: whole episodes with the deterministic policy."""

    episode_returns: tuple[float, ...]
    return_mean: float
    return_std: float
    length_mean: float

    @property
    def score(self) -> float:
        return self.return_mean

    @property
    def text(self) -> str:
        return f"{self.return_mean:.1f} ± {self.return_std:.1f}"
