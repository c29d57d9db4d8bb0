"""Rollouts: an actor samples a fragment with one version of the policy."""

from __future__ import annotations

from math import prod
from typing import Literal

import numpy as np

from training.calls.kind import (
    FIGURE_LIMIT,
    SLACK_BYTES,
    BadAnswer,
    BillPart,
    CallKind,
    PlannedCall,
    read_document,
)
from training.engine.codec import Document
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result
from training.rl import batch
from training.rl.environments.making import known_spaces
from training.rl.environments.model import EnvironmentSpec
from training.rl.spaces import Spaces

STATE_LIMIT_BYTES = 64 * 2**20
_KEYS = {
    "observations",
    "actions",
    "log_probs",
    "rewards",
    "terminated",
    "truncated",
    "discounted_returns",
    "last_observations",
    "final_index",
    "final_observations",
    "episode_returns",
    "episode_lengths",
    "version",
    "slot",
}


class RolloutRequest(CallRequest):
    """Sample `steps` steps of each of `environments` copies, from the slot's travelling state on."""

    kind: Literal["rollout"] = "rollout"
    environment: EnvironmentSpec
    environments: int
    steps: int
    slot: int
    discount: float


class Rollout(CallKind[RolloutRequest]):
    name = "rollout"
    request = RolloutRequest
    role = "sampling"
    timed_as = "sampling"
    where = "actor"
    part = BillPart("actors", "Actors", "Sampling whose parts were not timed")
    title = "Rollout"
    who = "Actor"
    subject = "A call (rollout)"

    def answer_limit_bytes(self, call: Call, request: RolloutRequest) -> int:
        return _trajectory_bytes(request, known_spaces(request.environment)) + STATE_LIMIT_BYTES

    def check(self, call: Call, request: RolloutRequest, result: Result) -> None:
        spaces = known_spaces(request.environment)
        version = call.weights.version if call.weights is not None else 0
        document = read_document(result.payload, _trajectory_bytes(request, spaces), _KEYS, "trajectory")
        try:
            batch.check(document, range(version, version + 1), spaces)
        except (batch.BadTrajectory, TypeError, AttributeError, ValueError, IndexError) as error:
            raise BadAnswer("trajectory", f"the trajectory is not what was requested: {error}") from None
        expected = (request.steps, request.environments)
        if document["rewards"].shape != expected:
            raise BadAnswer("trajectory", f"the trajectory is {document['rewards'].shape}, not {expected}")
        if type(document["slot"]) is not int or document["slot"] != request.slot:
            found = f"{document['slot']!r:.40}"
            raise BadAnswer("trajectory", f"the trajectory is of slot {found}, not {request.slot}")
        if type(document["version"]) is not int:
            raise BadAnswer(
                "trajectory", f"the trajectory is of version {document['version']!r}, not {version}"
            )
        _check_episodes(result.usage, document, prod(expected))
        _check_state(result.slot_state, request.environments)

    def expected_work(self, planned: PlannedCall) -> Usage:
        rollout, sizes = planned.training.rollout, planned.sizes
        steps = rollout.steps_per_call * rollout.environments_per_actor
        return Usage(
            steps=steps,
            inferences=steps,
            macs=sizes.policy_macs,
            pictures=sizes.pictures,
            bytes_in=sizes.weights + sizes.state,
            bytes_out=sizes.trajectory + sizes.state,
        )

    def stepped(self, request: RolloutRequest) -> str:
        return request.environment.id

    def copies(self, request: RolloutRequest) -> int:
        return request.environments


def _trajectory_bytes(request: RolloutRequest, spaces: Spaces) -> int:
    """Return the most bytes of a trajectory. Every step may end an episode, which adds one more observation."""
    samples = request.steps * request.environments
    observation = prod(spaces.observation_shape) * (1 if spaces.pictures else 4)
    actions = 8 * max(len(spaces.action_counts), len(spaces.action_low), 1)
    return (2 * samples + request.environments) * observation + samples * (actions + 64) + SLACK_BYTES


def _check_episodes(usage: Usage, document: Document, samples: int) -> None:
    """Check that ended episodes have a return and a length each, and that the work counts as many."""
    returns, lengths = document["episode_returns"], document["episode_lengths"]
    if returns.ndim != 1 or returns.shape != lengths.shape:
        raise BadAnswer("trajectory", "episodes have more returns than lengths")
    if len(returns) > samples or not (np.abs(returns) <= FIGURE_LIMIT).all() or (lengths < 0).any():
        raise BadAnswer("trajectory", "episodes that cannot be")
    if (usage.steps, usage.trials) != (samples, len(returns)):
        raise BadAnswer("work", f"{usage.steps} steps are reported; {samples} were requested")


def _check_state(state: bytes | None, environments: int) -> None:
    if state is None:
        return
    states = read_document(state, STATE_LIMIT_BYTES, None, "state").get("states")
    if not isinstance(states, list) or len(states) != environments:
        raise BadAnswer("state", f"the state is not that of {environments} environments")
