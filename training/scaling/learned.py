"""MinionsRL: a scheduler that was trained beforehand reads eight numbers of the last round and returns how many
actors.

The policy holds the scheduler's weights, so a spec is complete: it can be run again anywhere. When a user chooses a
scheduler by name, the form fills in the fields that follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from pydantic import model_validator

from training.base_model import setting
from training.engine.reports import RoundReport
from training.rl.measures.measures import AnyMeasure
from training.rl.measures.policy_shift import PolicyShiftSpec
from training.rl.networks.inference import NumpyPolicy
from training.scaling.agent_weights import MOST_LETTERS, check_inputs, read_agent
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.scheduling.minionsrl.state import STATE_SIZE, MinionsScales, StateKind, state_of
from training.tasks.score import Score

_NAMED = (
    "round",
    "loss",
    "return",
    "KL",
    "learner's time",
    "an actor's time",
    "the round's time",
    "budget left",
)


class Learned(PolicyBase):
    """MinionsRL: a trained scheduler decides how many actors each round gets."""

    kind: Literal["learned"] = "learned"
    scheduler: str = setting("", "Scheduler", "One of this project's trained schedulers.", max_length=100)
    actors_max: int = setting(
        32,
        "Most actors",
        "What the scheduler was trained to choose from.",
        ge=2,
        le=1024,
        follows="scheduler",
    )
    target_return: float = setting(
        500.0, "Target return", "The return that this training aims at.", follows="scheduler"
    )
    rounds: int = setting(
        50,
        "Usual rounds",
        "About how many rounds such a training takes.",
        ge=1,
        le=100_000,
        follows="scheduler",
    )
    state: StateKind = setting(
        "normalised", "State", "Printed: plain numbers, as in the paper.", follows="scheduler"
    )
    explore: bool = setting(
        False,
        "Draw the decision",
        "By the scheduler's probabilities, as in its training. Otherwise its likeliest decision is taken.",
        advanced=True,
    )
    weights: str = setting("", "Weights", max_length=MOST_LETTERS, follows="scheduler")

    @model_validator(mode="after")
    def fits(self) -> Learned:
        if not self.weights:
            return self
        policy = _policy(self.weights)
        if policy.action_counts != (self.actors_max,):
            trained = ", ".join(map(str, policy.action_counts)) or "something else"
            raise ValueError(
                f"this scheduler was trained to choose from 1 to {trained} actors, not 1 to {self.actors_max}:"
                " set the most actors to that, or take another scheduler"
            )
        return self

    @property
    def largest(self) -> int:
        return self.actors_max

    @property
    def measures(self) -> tuple[AnyMeasure, ...]:
        return (PolicyShiftSpec(),)

    @property
    def reads_times(self) -> bool:
        return True

    @property
    def decision_macs(self) -> int:
        return _policy(self.weights).macs if self.weights else 0

    def state_after(self, history: Sequence[RoundReport]) -> Any:
        """Return the state for the next decision."""
        return state_of(
            history, self.state, MinionsScales(target_return=self.target_return, rounds=self.rounds)
        )

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        if not self.weights:
            raise ValueError("no scheduler was chosen: train one, or take another scaling policy")
        state = self.state_after(history)
        logits = _policy(self.weights).outputs(state[None].copy())[0].astype(np.float64)
        if not np.isfinite(logits).all():
            middle = (1 + self.actors_max) // 2
            return clip_to_bounds(
                middle, bounds, "the scheduler returned numbers that are not finite: half of its range"
            )
        likely = np.exp(logits - logits.max())
        likely /= likely.sum()
        if self.explore:
            choice = int(np.random.Generator(np.random.PCG64(seed)).choice(len(likely), p=likely))
            how = "drawn"
        else:
            choice, how = int(np.argmax(likely)), "the likeliest"
        where = f"return {state[2]:.3g}, {_NAMED[6]} {state[6]:.3g}, {_NAMED[7]} {state[7]:.3g}"
        why = f"the scheduler gives {choice + 1} a probability of {100 * likely[choice]:.0f} %, {how}, in state {where}"
        return clip_to_bounds(choice + 1, bounds, why)


@lru_cache(maxsize=16)
def _policy(weights: str) -> NumpyPolicy:
    """Return the policy of these weights. Raises ValueError if they are not a scheduler's."""
    policy = read_agent(weights)
    check_inputs(policy, STATE_SIZE)
    return policy
