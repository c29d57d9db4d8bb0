"""Reinforcement learning: actors sample an environment with the newest policy, the learner updates it, and whole
episodes judge it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from training.calls.apply import ApplyRequest
from training.calls.evaluate import EvaluateRequest
from training.calls.gradient import GradientRequest
from training.calls.rollout import RolloutRequest
from training.calls.update import UpdateRequest
from training.engine.checkpoints import CheckpointError, Progress
from training.engine.codec import Document
from training.engine.memory_needs import MemoryNeeds
from training.engine.seeds import derive
from training.engine.unfinished import Unfinished
from training.loops.staleness_aware import StalenessAware
from training.rl.algorithms.ppo import PPO
from training.rl.environments.making import can_travel, spaces_of, stepped_by
from training.rl.figures import EpisodeFigures, LearningFigures, UpdateReport
from training.rl.learner import LearnerState
from training.rl.memory_needs import needs_of_reinforcement
from training.spec import TrainingSpec
from training.tasks.task import Judging, Mismatch, Task
from training.tasks.training import TrainingFacts

CALLS_AT_MOST = 16
DISTANCE_STATES = 64
"""The states of each gradient on which distances between policies are measured."""


class ReinforcementLearning(Task[TrainingSpec]):
    kind = "reinforcement"
    sampling, learning, judging = "rollout", "update", "evaluate"
    spec_model = TrainingSpec
    round_figures = LearningFigures
    evaluation_figures = EpisodeFigures

    @classmethod
    def facts_of(cls, stored: Mapping[str, Any]) -> TrainingFacts:
        """Return the facts as they are stored, also of specs that other releases wrote."""
        stop = stored.get("stop") or {}
        return TrainingFacts(
            kind=cls.kind,
            subject=str((stored.get("environment") or {}).get("id") or ""),
            method=str((stored.get("algorithm") or {}).get("kind") or ""),
            progress_unit=TrainingSpec.progress_unit,
            score=TrainingSpec.score,
            progress_limit=stop.get("env_steps"),
            rounds_limit=stop.get("rounds"),
            minutes_limit=stop.get("minutes"),
            memory_mb=int((stored.get("rollout") or {}).get("memory_mb") or 0),
        )

    def begin(self) -> Progress:
        spec = self.spec
        seed = derive(spec.seed, "network")
        state = spec.algorithm.initial_state(spec.network, spaces_of(spec.environment), seed)
        return Progress(learner=state.encode(), weights=state.actor_weights(spec.network))

    def fork(self, progress: Progress) -> Progress:
        """Return a start with the weights and normalisers of `progress`.

        Rounds, steps, episodes and the optimiser start from zero; algorithm and seed may differ. Raises
        CheckpointError if the observations would be normalised differently from those that the weights were learned
        with.
        """
        spec = self.spec
        learned = LearnerState.decode(progress.learner)
        fresh = spec.algorithm.initial_state(spec.network, learned.spaces, derive(spec.seed, "network"))
        if (learned.observation_moments is None) != (fresh.observation_moments is None):
            raise CheckpointError(
                "the checkpoint's weights were learned with observations that were"
                f"{' not' if learned.observation_moments is None else ''} normalised; they fit only those"
            )
        state = replace(
            fresh,
            parameters=learned.parameters,
            target_parameters=learned.parameters if fresh.target_parameters else {},
            observation_moments=learned.observation_moments,
            return_moments=fresh.return_moments and (learned.return_moments or fresh.return_moments),
        )
        return Progress(learner=state.encode(), weights=state.actor_weights(spec.network))

    def incompatible_part(self, other: TrainingSpec) -> tuple[str, object] | None:
        for part in ("environment", "network"):
            if getattr(other, part) != getattr(self.spec, part):
                return part, getattr(other, part)
        return None

    def unfinished_reason(self, other: TrainingSpec, unfinished: Unfinished) -> str:
        mine, theirs = self.spec.algorithm, other.algorithm
        begun = [slice_ for slice_ in unfinished.slices if slice_.passes]
        if (begun or unfinished.gradients) and mine.kind != theirs.kind:
            return f"by {theirs.kind}"
        loop, before = self.spec.loop, other.loop
        counts_kl = isinstance(loop, StalenessAware) and loop.distance == "kl"
        counted_kl = isinstance(before, StalenessAware) and before.distance == "kl"
        if unfinished.gradients and counts_kl and not counted_kl:
            return "with their staleness counted in versions, so their gradients lack what KL is measured on"
        if begun and mine.kept_of_first_pass != theirs.kept_of_first_pass:
            return f"by {theirs.kind} with another objective or advantages that are computed otherwise"
        if any(slice_.passes >= mine.passes for slice_ in begun):
            return f"in {theirs.passes} passes"
        return ""

    def mismatches(self, other: TrainingSpec) -> list[Mismatch]:
        mine, learned = self.spec, other.algorithm.normalise_observations
        parts = [
            Mismatch(part, path)
            for part, path in (("environment", "environment.id"), ("network", "network"))
            if getattr(other, part) != getattr(mine, part)
        ]
        if learned != mine.algorithm.normalise_observations:
            path = "algorithm.normalise_observations"
            parts.append(Mismatch("normalise observations", path, "with it" if learned else "without it"))
        return parts

    def notes(self) -> tuple[str, ...]:
        spec, notes = self.spec, []
        if not can_travel(spec.environment):
            notes.append(
                f"The state of {spec.environment.id} cannot be saved between calls, so every call starts with a new "
                f"episode. Episodes longer than {spec.rollout.steps_per_call} steps never reach their end in training."
            )
        algorithm = spec.algorithm
        if isinstance(algorithm, PPO) and algorithm.objective == "clipped" and spec.loop.staleness_limit:
            notes.append(
                f"The {spec.loop.kind} loop learns from data of older policies. PPO's clipped objective treats it "
                "as data of the newest policy: the decoupled objective, IMPALA or IMPACT suit such data better."
            )
        return tuple(notes)

    def memory_needs(self, spaces: Any, workers: int) -> MemoryNeeds:
        if spaces is None:
            return super().memory_needs(spaces, workers)
        return needs_of_reinforcement(self.spec, spaces, workers)

    def stepping(self) -> str:
        return stepped_by(self.spec.environment)

    def sample(self, slot: int) -> RolloutRequest:
        rollout = self.spec.rollout
        return RolloutRequest(
            environment=self.spec.environment,
            environments=rollout.environments_per_actor,
            steps=rollout.steps_per_call,
            slot=slot,
            discount=self.spec.algorithm.discount,
        )

    def learn(self, fraction_done: float) -> UpdateRequest:
        return UpdateRequest(
            algorithm=self.spec.algorithm,
            network=self.spec.network,
            progress=fraction_done,
            staleness_limit=self.spec.loop.staleness_limit,
            measures=self.spec.scaling.measures,
        )

    @property
    def replay(self) -> tuple[int, int]:
        return self.spec.algorithm.replay

    @property
    def passes(self) -> int:
        return self.spec.algorithm.passes

    @property
    def keeps_sampling_policy(self) -> bool:
        return self.spec.algorithm.anchors_to_sampling

    def parameters(self, learner: bytes) -> bytes:
        return LearnerState.decode(learner).for_gradients().encode()

    def gradient(self, fraction_done: float, pass_no: int, policies: int, *, anchors: int) -> GradientRequest:
        loop = self.spec.loop
        assert isinstance(loop, StalenessAware)
        return GradientRequest(
            environment=self.spec.environment,
            algorithm=self.spec.algorithm,
            network=self.spec.network,
            progress=fraction_done,
            pass_no=pass_no,
            passes=self.passes,
            policies=policies,
            anchors=anchors,
            truncation=loop.truncated,
            states=DISTANCE_STATES if loop.distance == "kl" else 0,
        )

    def apply(
        self, fraction_done: float, weights: tuple[float, ...], *, ends_round: bool, policies: int = 0
    ) -> ApplyRequest:
        loop = self.spec.loop
        assert isinstance(loop, StalenessAware)
        return ApplyRequest(
            algorithm=self.spec.algorithm,
            network=self.spec.network,
            progress=fraction_done,
            weights=weights,
            rule=loop.aggregation,
            ends_round=ends_round,
            policies=policies,
        )

    def judge(self, round_no: int, actors: int) -> Sequence[Judging]:
        seeds = [
            derive(self.spec.seed, "evaluation", round_no, episode) % 2**31
            for episode in range(self.spec.evaluation.episodes)
        ]
        # Each call's share depends only on the spec and the plan, so the workers and their timing change nothing.
        share = -(-len(seeds) // min(actors, len(seeds), CALLS_AT_MOST))
        return [
            Judging(
                EvaluateRequest(
                    environment=self.spec.environment, episode_seeds=tuple(seeds[begin : begin + share])
                ),
                share,
            )
            for begin in range(0, len(seeds), share)
        ]

    def most_judgings(self) -> tuple[int, int]:
        episodes = self.spec.evaluation.episodes
        calls = min(episodes, CALLS_AT_MOST)
        return calls, -(-episodes // calls)

    def round_figures_of(self, learned: Sequence[Document]) -> LearningFigures:
        last = learned[-1]
        episodes = sum(result["episodes"] for result in learned)
        return LearningFigures(
            episodes=episodes,
            episode_return_mean=_mean_of_episodes(learned, "episode_return_mean"),
            episode_length_mean=_mean_of_episodes(learned, "episode_length_mean"),
            update=UpdateReport.model_validate(last["report"]),
            curvature=last["curvature"],
            noise_scale=last["noise_scale"],
            policy_shift=last["policy_shift"],
        )

    def evaluation_figures_of(self, judged: Sequence[Document]) -> EpisodeFigures:
        returns = np.concatenate([document["returns"] for document in judged])
        return EpisodeFigures(
            episode_returns=tuple(map(float, returns)),
            return_mean=float(returns.mean()),
            return_std=float(returns.std()),
            length_mean=float(np.concatenate([document["lengths"] for document in judged]).mean()),
        )


def _mean_of_episodes(learned: Sequence[Document], name: str) -> Any:
    """Return the mean over all episodes that ended in the round; None if none did."""
    ended = [result for result in learned if result["episodes"]]
    if len(ended) < 2:
        return ended[0][name] if ended else None
    return float(np.average([one[name] for one in ended], weights=[one["episodes"] for one in ended]))
