"""Evaluations: an actor plays whole episodes, which judge the policy."""

from __future__ import annotations

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
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result
from training.rl.environments.model import EnvironmentSpec

_KEYS = {"returns", "lengths"}
_HEADER_BYTES = 260
_LONGEST_EPISODE = 10**9


class EvaluateRequest(CallRequest):
    """Play whole episodes with the deterministic policy, each episode with its own seed."""

    kind: Literal["evaluate"] = "evaluate"
    environment: EnvironmentSpec
    episode_seeds: tuple[int, ...]


class Evaluate(CallKind[EvaluateRequest]):
    name = "evaluate"
    request = EvaluateRequest
    role = "judging"
    timed_as = "sampling"
    where = "actor"
    part = BillPart("evaluation", "Evaluation", "Judging what was learned so far")
    title = "Evaluation"
    who = "Evaluation"
    subject = "A call (evaluate)"
    grows_with_trials = True

    def answer_limit_bytes(self, call: Call, request: EvaluateRequest) -> int:
        return 16 * len(request.episode_seeds) + SLACK_BYTES

    def check(self, call: Call, request: EvaluateRequest, result: Result) -> None:
        episodes = len(request.episode_seeds)
        most_bytes = self.answer_limit_bytes(call, request)
        document = read_document(result.payload, most_bytes, _KEYS, "trajectory")
        for name, dtype in (("returns", "<f8"), ("lengths", "<i8")):
            array = document[name]
            if not isinstance(array, np.ndarray) or array.dtype.str != dtype or array.shape != (episodes,):
                raise BadAnswer("evaluation", f"{name} are not {episodes} numbers of type {dtype}")
            if not (np.abs(array) <= FIGURE_LIMIT).all():
                raise BadAnswer("evaluation", f"{name} are not finite numbers, or too large")
        if (document["lengths"] < 0).any() or (document["lengths"] > _LONGEST_EPISODE).any():
            raise BadAnswer("evaluation", f"lengths are not from 0 to {_LONGEST_EPISODE:,}")
        if result.usage.trials != episodes or int(document["lengths"].sum()) != result.usage.steps:
            raise BadAnswer("work", "the reported steps are not those of the episodes")

    def expected_work(self, planned: PlannedCall) -> Usage:
        sizes = planned.sizes
        return Usage(
            steps=planned.steps,
            inferences=planned.steps,
            trials=planned.trials,
            macs=sizes.policy_macs,
            pictures=sizes.pictures,
            bytes_in=sizes.weights,
            bytes_out=_HEADER_BYTES + 16 * planned.trials,
        )

    def stepped(self, request: EvaluateRequest) -> str:
        return request.environment.id

    def trials(self, request: EvaluateRequest) -> int | None:
        # Deadlines of evaluations depend on the requested episodes, which a failed call has not played.
        return len(request.episode_seeds)
