"""Updates: the learner learns from a round's trajectories and returns the next version."""

from __future__ import annotations

from math import ceil
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from training.calls.kind import (
    FIGURE_LIMIT,
    LONGEST_CALL_S,
    SLACK_BYTES,
    BadAnswer,
    BillPart,
    CallKind,
    PlannedCall,
    read_document,
)
from training.engine.codec import CodecError
from training.engine.messages import Call, CallRequest
from training.engine.reports import Message, Usage
from training.functions.body import Result
from training.rl.algorithms import AnyAlgorithm
from training.rl.batch import BadTrajectory, Batch
from training.rl.figures import CurvatureReport, NoiseScaleReport, UpdateReport
from training.rl.learner import LearnerState
from training.rl.measures.measures import AnyMeasure
from training.rl.networks import AnyNetwork

UPDATE_ATTEMPTS = 2
_UPDATE_REPORT_BYTES = 500
_MEASURED: dict[str, type[Message]] = {"curvature": CurvatureReport, "noise_scale": NoiseScaleReport}
_GROUPS = ("parameters", "first_moments", "second_moments", "target_parameters")
_MOMENTS = ("observation_moments", "return_moments")
_MOST_LETTERS = 300
_SQUARES = ("second_moments", "variance")


class UpdateRequest(CallRequest):
    """One learner update. The call's inputs are the learner's state, then the trajectories in order of slot.

    Trajectories may be up to `staleness_limit` versions older than the state.
    """

    kind: Literal["update"] = "update"
    algorithm: AnyAlgorithm
    network: AnyNetwork
    progress: float = Field(ge=0.0, le=1.0)
    staleness_limit: int = Field(0, ge=0)
    measures: tuple[AnyMeasure, ...] = ()


class Update(CallKind[UpdateRequest]):
    name = "update"
    request = UpdateRequest
    role = "learning"
    makes_version = True
    timed_as = "learning"
    where = "learner"
    part = BillPart("learner", "Learner", "Updates")
    title = "Update"
    who = "Learner"
    subject = "An update"
    attempts = UPDATE_ATTEMPTS
    deadline_s = LONGEST_CALL_S

    def answer_limit_bytes(self, call: Call, request: UpdateRequest) -> int:
        # The next state has the arrays of the state before, and the weights are some of them.
        return 2 * sum(map(len, call.inputs[:1])) + SLACK_BYTES

    def check(self, call: Call, request: UpdateRequest, result: Result) -> None:
        """Check all that can be known without learning again: everything but the numbers of the new parameters."""
        before = LearnerState.decode(call.inputs[0])
        batch = _batch_of(call, request, before)
        facts = facts_of(before, batch)
        keys = {"state", "weights", "version", "report", "policy_shift", *_MEASURED, *facts}
        document = read_document(result.payload, self.answer_limit_bytes(call, request), keys, "update")
        after = state_in(document["state"])
        _check_state(before, after, batch.size, batch.size * _passes(request))
        if type(document["version"]) is not int or document["version"] != after.version:
            raise BadAnswer("update", f"the update is of version {document['version']!r}, its state is not")
        weights = document["weights"]
        if not isinstance(weights, bytes) or weights != after.actor_weights(request.network):
            raise BadAnswer("update", "the weights are not those of the learner's state")
        for name, value in facts.items():
            if type(document[name]) is not type(value) or document[name] != value:
                raise BadAnswer("update", f"{name} is {document[name]!r}; the trajectories have {value!r}")
        check_reports(document)
        _check_work(request, result.usage, after, batch.size)

    def expected_work(self, planned: PlannedCall) -> Usage:
        """Return passes over minibatches, as any algorithm makes them."""
        algorithm, sizes, rollout = planned.training.algorithm, planned.sizes, planned.training.rollout
        steps = rollout.steps_per_call * rollout.environments_per_actor
        batch = max(1, planned.contributions * planned.fewer * steps)
        passes = int(getattr(algorithm, "epochs", 1))
        return Usage(
            minibatches=passes * ceil(batch / algorithm.minibatch_of(batch)),
            samples=batch * passes,
            macs=sizes.learner_macs,
            pictures=sizes.pictures,
            # A fleet that represents a larger one has lines that are as many times slower.
            bytes_in=sizes.learner // planned.fewer + planned.contributions * sizes.trajectory,
            bytes_out=(sizes.learner + sizes.weights + _UPDATE_REPORT_BYTES) // planned.fewer,
        )


def facts_of(before: LearnerState, batch: Batch) -> dict[str, Any]:
    """Return what an update reports of its trajectories."""
    episodes = len(batch.episode_returns)
    return {
        "env_steps": batch.size,
        "staleness_mean": float(np.mean(before.version - batch.versions)),
        "episodes": episodes,
        "episode_return_mean": float(np.mean(batch.episode_returns)) if episodes else None,
        "episode_length_mean": float(np.mean(batch.episode_lengths)) if episodes else None,
    }


def batch_of(call: Call, request: UpdateRequest, before: LearnerState) -> Batch:
    """Return the trajectories that the call learns from. Raises BadTrajectory."""
    versions = range(max(0, before.version - request.staleness_limit), before.version + 1)
    return Batch.of(call.inputs[1:], versions, before.spaces)


def _batch_of(call: Call, request: UpdateRequest, before: LearnerState) -> Batch:
    """Return the same for a check: what cannot be learned from has no answer."""
    try:
        return batch_of(call, request, before)
    except BadTrajectory as error:
        raise BadAnswer("update", f"no update can learn from these trajectories: {error}") from None


def state_in(data: Any) -> LearnerState:
    """Return the state in an answer, if the bytes are those of a state and nothing else."""
    if not isinstance(data, bytes):
        raise BadAnswer("update", "the update holds no state of the learner")
    try:
        state = LearnerState.decode(data)
        canonical = state.encode()
    except (CodecError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise BadAnswer("update", f"the learner's state cannot be read: {error}") from None
    if canonical != data:
        raise BadAnswer("update", "the learner's state holds more than a state")
    return state


def _check_state(before: LearnerState, after: LearnerState, samples: int, most_steps: int) -> None:
    """Check that it can follow the state before: the same arrays with finite numbers, one version later."""
    if type(after.version) is not int or after.version != before.version + 1:
        raise BadAnswer("update", f"the state is of version {after.version!r}, not {before.version + 1}")
    if repr(after.spaces) != repr(before.spaces):
        raise BadAnswer("update", "the state is of another environment")
    steps = after.optimiser_steps
    if type(steps) is not int or not 0 <= steps - before.optimiser_steps <= most_steps:
        raise BadAnswer("update", f"the state has made {after.optimiser_steps!r} steps of its optimiser")
    if type(after.kl_coefficient) is not float or not 0 <= after.kl_coefficient <= FIGURE_LIMIT:
        raise BadAnswer("update", f"the state has {after.kl_coefficient!r} as the weight of its KL penalty")
    for group in _GROUPS:
        check_arrays(getattr(before, group), getattr(after, group), group)
    for name in _MOMENTS:
        old, new = getattr(before, name), getattr(after, name)
        if (old is None) != (new is None):
            raise BadAnswer("update", f"the state lacks or adds {name}")
        if old is None:
            continue
        arrays = [{"mean": one.mean, "variance": one.variance} for one in (old, new)]
        check_arrays(arrays[0], arrays[1], name)
        if type(new.count) is not float or new.count != old.count + samples:
            raise BadAnswer("update", f"{name} are of {new.count!r} samples, not {old.count + samples:g}")


def check_arrays(before: dict[str, Any], after: dict[str, Any], what: str) -> None:
    if list(before) != list(after):
        raise BadAnswer("update", f"{what} have other names than before")
    for name, old in before.items():
        new = after[name]
        if not isinstance(new, np.ndarray) or new.shape != old.shape or new.dtype != old.dtype:
            raise BadAnswer("update", f"{what} have {name} of another shape or type than before")
        if not np.isfinite(new).all():
            raise BadAnswer("update", f"{what} have {name} that are not finite numbers")
        if (what in _SQUARES or name in _SQUARES) and (new < 0).any():
            raise BadAnswer("update", f"{what} have {name} below 0, which is a mean of squares")


def check_reports(document: dict[str, Any]) -> None:
    try:
        UpdateReport.model_validate(document["report"], strict=True)
        for name, model in _MEASURED.items():
            if document[name] is not None:
                model.model_validate(document[name], strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise BadAnswer("update", f"the report is not one of ours: {first['msg']}") from None
    shift = document["policy_shift"]
    if shift is not None and type(shift) is not float:
        raise BadAnswer("update", f"{shift!r} is no shift of a policy")
    for reported in (document["report"], *(document[name] or {} for name in _MEASURED), {"shift": shift}):
        for name, value in reported.items():
            if isinstance(value, (int, float)) and not abs(value) <= FIGURE_LIMIT:
                raise BadAnswer("update", f"{name} is {value!r}, which is not finite or too large")
            if isinstance(value, str) and len(value) > _MOST_LETTERS:
                raise BadAnswer("update", f"{name} has {len(value):,} letters")


def _passes(request: UpdateRequest) -> int:
    return int(getattr(request.algorithm, "epochs", 1))


def _check_work(request: UpdateRequest, usage: Usage, after: LearnerState, samples: int) -> None:
    if not 1 <= usage.minibatches <= usage.samples <= samples * _passes(request):
        raise BadAnswer("work", f"{usage.samples} samples are reported; {samples} came in")
    of_a_sample = request.network.learner_macs(after.spaces), after.spaces.pictures
    if (usage.macs, usage.pictures) != of_a_sample:
        raise BadAnswer("work", "the reported multiplications are not those of the network")
