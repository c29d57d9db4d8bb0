"""Is this the answer to that call? What comes from an actor is not trusted: it may be wrong, old or hostile."""

from __future__ import annotations

import hmac
from functools import cache
from math import prod
from typing import Any

import numpy as np

from cloud.wire import Answer, Refusal, read_answer
from training import batch
from training.batch import BadTrajectory
from training.codec import CodecError, decode
from training.environments.making import spaces_of
from training.environments.spaces import Spaces
from training.functions.body import Result
from training.messages import Call, EvaluateRequest, RolloutRequest

STATE_LIMIT_BYTES = 64 * 2**20
_SLACK_BYTES = 64 * 2**10
_EVALUATION_KEYS = {"returns", "lengths"}
_TRAJECTORY_KEYS = {
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

_spaces_of = cache(spaces_of)


def answer_to(call: Call, run: str, data: bytes) -> tuple[Answer, Result | None]:
    """The checked answer, with a result if the call was done. Refusal says what is wrong with it."""
    answer = read_answer(data, limit_bytes=limit_bytes(call))
    if answer.status == "refused" and not answer.run:
        # The actor could not read what it was sent, so it cannot know whom it answers.
        return answer, None
    if not hmac.compare_digest(answer.run.encode(), run.encode()):
        raise Refusal("run", "the answer belongs to another run")
    if answer.call_id != call.id:
        raise Refusal("call", f"the answer is to another call, {answer.call_id[:80]!r}")
    if answer.status != "done":
        return answer, None
    return answer, result_of(call, answer)


def result_of(call: Call, answer: Answer) -> Result:
    """What a done call gave, if it is what `call` asks for."""
    version = call.weights.version if call.weights is not None else None
    if answer.version != version:
        raise Refusal("version", f"sampled with version {answer.version}; version {version} was sent")
    request = call.request
    if isinstance(request, RolloutRequest):
        _check_trajectory(answer, request, version or 0)
    elif isinstance(request, EvaluateRequest):
        _check_evaluation(answer, request)
    return Result(answer.payload, answer.env_state, answer.work.usage())


def limit_bytes(call: Call) -> int:
    """The most that an answer to this call can unpack to."""
    request = call.request
    if isinstance(request, RolloutRequest):
        return _trajectory_bytes(request, _spaces_of(request.environment)) + STATE_LIMIT_BYTES
    if isinstance(request, EvaluateRequest):
        return 16 * len(request.episode_seeds) + _SLACK_BYTES
    return 2 * (sum(map(len, call.inputs)) + STATE_LIMIT_BYTES)


def _trajectory_bytes(request: RolloutRequest, spaces: Spaces) -> int:
    """Every step may end an episode, which then is told of with one more observation."""
    samples = request.steps * request.environments
    observation = prod(spaces.observation_shape) * (1 if spaces.pictures else 4)
    actions = 8 * max(len(spaces.action_counts), len(spaces.action_low), 1)
    return (2 * samples + request.environments) * observation + samples * (actions + 64) + _SLACK_BYTES


def _check_trajectory(answer: Answer, request: RolloutRequest, version: int) -> None:
    spaces = _spaces_of(request.environment)
    document = _document(answer.payload, _trajectory_bytes(request, spaces), _TRAJECTORY_KEYS)
    try:
        batch.check(document, range(version, version + 1), spaces)
    except (BadTrajectory, TypeError, AttributeError, ValueError, IndexError) as error:
        raise Refusal("trajectory", f"the trajectory is not what was asked for: {error}") from None
    asked = (request.steps, request.environments)
    if document["rewards"].shape != asked:
        raise Refusal("trajectory", f"the trajectory is {document['rewards'].shape}, not {asked}")
    if document["slot"] != request.slot:
        raise Refusal("trajectory", f"the trajectory is of slot {document['slot']}, not {request.slot}")
    _check_episodes(answer, document, prod(asked))
    _check_state(answer.env_state, request.environments)


def _check_episodes(answer: Answer, document: dict[str, Any], samples: int) -> None:
    """Their returns and lengths are told of beside the steps, and the work says as much."""
    returns, lengths = document["episode_returns"], document["episode_lengths"]
    if returns.ndim != 1 or returns.shape != lengths.shape:
        raise Refusal("trajectory", "episodes have more returns than lengths")
    if len(returns) > samples or not np.isfinite(returns).all():
        raise Refusal("trajectory", "episodes that cannot be")
    if (answer.work.env_steps, answer.work.episodes) != (samples, len(returns)):
        raise Refusal("work", f"{answer.work.env_steps} steps are told of; {samples} were asked for")


def _check_state(state: bytes | None, environments: int) -> None:
    if state is None:
        return
    states = _document(state, STATE_LIMIT_BYTES, None).get("states")
    if not isinstance(states, list) or len(states) != environments:
        raise Refusal("state", f"the state is not that of {environments} environments")


def _check_evaluation(answer: Answer, request: EvaluateRequest) -> None:
    episodes = len(request.episode_seeds)
    document = _document(answer.payload, 16 * episodes + _SLACK_BYTES, _EVALUATION_KEYS)
    for name, dtype in (("returns", "<f8"), ("lengths", "<i8")):
        array = document[name]
        if not isinstance(array, np.ndarray) or array.dtype.str != dtype or array.shape != (episodes,):
            raise Refusal("evaluation", f"{name} are not {episodes} numbers of type {dtype}")
        if not np.isfinite(array).all():
            raise Refusal("evaluation", f"{name} are not finite numbers")
    if answer.work.episodes != episodes or int(document["lengths"].sum()) != answer.work.env_steps:
        raise Refusal("work", "the steps that are told of are not those of the episodes")


def _document(data: bytes, most_bytes: int, keys: set[str] | None) -> dict[str, Any]:
    try:
        document = decode(data, body_limit_bytes=most_bytes)
    except (CodecError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise Refusal("codec", f"the result cannot be read: {error}") from None
    if keys is not None and set(document) != keys:
        odd = sorted(map(str, set(document) ^ keys))[:5]
        raise Refusal("trajectory", f"the result lacks or adds: {', '.join(odd)}")
    return document
