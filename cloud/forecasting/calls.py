"""A job's first calls, with which prices are computed."""

from __future__ import annotations

from training.loops.evaluation import CALLS_AT_MOST
from training.messages import Call, EvaluateRequest, RolloutRequest, UpdateRequest
from training.spec import TrainingSpec

_LEARNER_S = 900.0


def evaluations(training: TrainingSpec) -> int:
    """Return the most calls of an evaluation."""
    return min(training.evaluation.episodes, CALLS_AT_MOST)


def first_calls(training: TrainingSpec) -> tuple[Call, Call, Call]:
    """Return a rollout, an evaluation and an update, with the deadlines that they have before any call is measured."""
    environment, longest_s = training.environment, training.rollout.deadline_s
    share = -(-training.evaluation.episodes // evaluations(training))
    rollout = RolloutRequest(
        environment=environment, environments=1, steps=1, slot=0, discount=training.algorithm.discount
    )
    evaluation = EvaluateRequest(environment=environment, episode_seeds=(0,))
    update = UpdateRequest(algorithm=training.algorithm, network=training.network, progress=0.0)
    like = Call(
        id="forecast",
        request=rollout,
        where="actor",
        round_no=1,
        seed=0,
        deadline_s=longest_s,
        memory_mb=training.rollout.memory_mb,
    )
    judged_s = min(_LEARNER_S, longest_s * share)
    return (
        like,
        like.model_copy(update={"request": evaluation, "deadline_s": judged_s}),
        like.model_copy(update={"request": update, "where": "learner", "deadline_s": _LEARNER_S}),
    )
