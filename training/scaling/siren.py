"""Siren: an agent that was trained beforehand reads nine numbers of the last epoch and returns how many functions the
next one gets, and how much memory each of them has.

The policy holds the agent's weights, so a spec is complete: it can be run again anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from pydantic import model_validator

from training.base_model import setting
from training.engine.reports import RoundReport
from training.rl.networks.inference import LOG_STD_LIMITS, NumpyPolicy
from training.scaling.agent_weights import MOST_LETTERS, check_inputs, read_agent
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.scheduling.siren.choices import Choices
from training.scheduling.siren.state import STATE_SIZE, SirenScales, StateKind, state_of
from training.tasks.score import Score

_OUTPUTS = 4


class Siren(PolicyBase):
    """Siren: a trained agent decides how many functions each epoch gets and how much memory each has."""

    kind: Literal["siren"] = "siren"
    scheduler: str = setting("", "Scheduler", "One of this project's trained schedulers.", max_length=100)
    actors_min: int = setting(1, "Fewest functions", ge=1, le=4096, follows="scheduler")
    actors_max: int = setting(150, "Most functions", ge=1, le=4096, follows="scheduler")
    memory_min_mb: int = setting(256, "Least memory", ge=128, le=10_240, unit="MB", follows="scheduler")
    memory_max_mb: int = setting(3008, "Most memory", ge=128, le=10_240, unit="MB", follows="scheduler")
    target_loss: float = setting(0.1, "Target loss", gt=0, follows="scheduler")
    rounds: int = setting(
        20,
        "Usual epochs",
        "About how many epochs such a training takes.",
        ge=1,
        le=100_000,
        follows="scheduler",
    )
    deadline_s: float | None = setting(
        None, "Deadline", "Empty: it watches the budget.", gt=0, unit="s", follows="scheduler"
    )
    state: StateKind = setting(
        "normalised", "State", "Printed: plain numbers, as on the slides.", follows="scheduler"
    )
    explore: bool = setting(
        False, "Draw the decision", "As in the agent's training. Otherwise its mean is taken.", advanced=True
    )
    weights: str = setting("", "Weights", max_length=MOST_LETTERS, follows="scheduler")

    @model_validator(mode="after")
    def fits(self) -> Siren:
        if self.actors_min > self.actors_max:
            raise ValueError("the fewest functions must not be more than the most functions")
        if self.memory_min_mb > self.memory_max_mb:
            raise ValueError("the least memory must not be more than the most memory")
        if self.weights:
            _policy(self.weights)
        return self

    @property
    def largest(self) -> int:
        return self.actors_max

    @property
    def memory_range_mb(self) -> tuple[int, int] | None:
        return None if self.memory_min_mb == self.memory_max_mb else (self.memory_min_mb, self.memory_max_mb)

    @property
    def reads_times(self) -> bool:
        return True

    @property
    def decision_macs(self) -> int:
        return _policy(self.weights).macs if self.weights else 0

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        if not self.weights:
            raise ValueError("no scheduler was chosen: train one, or take another scaling policy")
        scales = SirenScales(target_loss=self.target_loss, rounds=self.rounds, deadline_s=self.deadline_s)
        state = state_of(history, self.state, scales)
        outputs = _policy(self.weights).outputs(state[None].copy())[0].astype(np.float64)
        if not np.isfinite(outputs).all():
            outputs, how = np.zeros(_OUTPUTS), "numbers that are not finite, so the middle of its range"
        else:
            how = "the agent's mean"
        mean, deviation = outputs[:2], np.exp(np.clip(outputs[2:], *LOG_STD_LIMITS))
        if self.explore:
            noise = np.random.Generator(np.random.PCG64(seed)).standard_normal(2)
            mean, how = mean + deviation * noise, "drawn by the agent"
        choices = Choices(
            actors_min=self.actors_min,
            actors_max=self.actors_max,
            memory_min_mb=self.memory_min_mb,
            memory_max_mb=self.memory_max_mb,
        )
        wish = choices.wishes(mean)
        functions, memory = choices.carried_out(wish, bounds.memory_sizes_mb or (bounds.memory_mb,))
        left = float(state_of(history, "normalised", scales)[-1])
        limit = "time" if self.deadline_s is not None else "budget"
        loss = next((report.score for report in reversed(history) if report.score is not None), None)
        where = "before the first epoch" if loss is None else f"at loss {loss:.4g}"
        wished = f"{wish[0]:.3g} functions of {wish[1]:,.0f} MB"
        why = f"{wished}, {how}, {where}, with {100 * left:.0f} % of the {limit} left"
        plan = clip_to_bounds(int(functions), bounds, why, int(memory))
        return Plan(plan.actors, plan.memory_mb, plan.why, (float(wish[0]), float(wish[1])))


@lru_cache(maxsize=16)
def _policy(weights: str) -> NumpyPolicy:
    """Return the policy of these weights. Raises ValueError if they are not those of such an agent."""
    policy = read_agent(weights)
    if policy.discrete or policy.outputs_size != _OUTPUTS:
        raise ValueError("this scheduler decides only how many actors: take one that decides memory as well")
    check_inputs(policy, STATE_SIZE)
    return policy
