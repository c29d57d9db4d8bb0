"""Turns trainings into what an agent learns from: samples of one, and a batch of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from training.engine.reports import RoundReport
from training.rl.algorithms.heads import Normals
from training.rl.batch import Batch
from training.rl.networks.inference import NumpyPolicy
from training.rl.spaces import Spaces
from training.scheduling.decisions import Decisions, EpisodeResult, Floats, Samples


def episode_of(
    rounds: Sequence[RoundReport], decisions: Decisions, weights: bytes, spaces: Spaces
) -> EpisodeResult:
    """Return a training, whose plans were decided with `weights`, as an episode."""
    return EpisodeResult(
        rounds=len(rounds),
        platform_s=sum(report.total_s for report in rounds),
        cost_picodollars=sum(report.cost_picodollars for report in rounds),
        best=decisions.best(rounds),
        reached=decisions.reached(rounds),
        score=decisions.score(rounds),
        actors=tuple(report.actors for report in rounds),
        samples=_samples_of(rounds, decisions, weights, spaces) if rounds else None,
    )


def _samples_of(
    rounds: Sequence[RoundReport], decisions: Decisions, weights: bytes, spaces: Spaces
) -> Samples:
    states, actions = decisions.states(rounds), decisions.actions(rounds)
    log_probs = log_probs_of(NumpyPolicy(weights).outputs(states[:-1].copy()), actions, spaces)
    return Samples(states, actions, log_probs, decisions.rewards(rounds))


def log_probs_of(outputs: Floats, actions: npt.NDArray[Any], spaces: Spaces) -> Floats:
    """Return the log-probability of each action by the outputs of a network for its state."""
    if not spaces.discrete:
        return np.asarray(Normals(outputs, actions, None).log_probs, dtype=np.float32)
    logits = outputs.astype(np.float64)
    top = logits.max(axis=1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    chosen: Floats = log_p[np.arange(len(actions)), actions].astype(np.float32)
    return chosen


def batch_of(episodes: Sequence[Samples], version: int) -> Batch:
    """Return episodes one after the other as an algorithm learns from them, decided by the agent of that version."""
    steps = [len(episode.rewards) for episode in episodes]
    ends = np.zeros((sum(steps), 1), dtype=bool)
    ends[np.cumsum(steps) - 1] = True
    states = np.concatenate([episode.states[:-1] for episode in episodes])
    return Batch(
        versions=np.array([version], dtype=np.int64),
        observations=states[:, None],
        actions=np.concatenate([episode.actions for episode in episodes])[:, None],
        log_probs=np.concatenate([episode.log_probs for episode in episodes])[:, None],
        rewards=np.concatenate([episode.rewards for episode in episodes])[:, None],
        terminated=ends,
        truncated=np.zeros_like(ends),
        discounted_returns=np.zeros((sum(steps), 1)),
        last_observations=episodes[-1].states[-1:],
        final_index=np.zeros((0, 2), dtype=np.int32),
        final_observations=np.zeros((0, states.shape[1]), dtype=np.float32),
        episode_returns=np.array([float(episode.rewards.sum()) for episode in episodes]),
        episode_lengths=np.array(steps, dtype=np.int32),
    )
