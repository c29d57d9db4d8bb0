"""How much faster copies of an environment step on two cores than on one, in wall-clock time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from training.rl.environments.copies import Copies
from training.rl.environments.making import make_copies
from training.rl.environments.model import EnvironmentSpec

_COPIES = 4


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return how many times as fast two threads were, for each repeat. `arguments`: environment, steps, repeats."""
    environment, steps = EnvironmentSpec(id=arguments["environment"]), arguments["steps"]
    alone, together = (make_copies(environment, _COPIES, cores) for cores in (1, 2))
    space = alone.action_space
    actions = np.random.default_rng(0).uniform(space.low, space.high, (steps, _COPIES, *space.shape))
    # The first turn fills caches, and tries whether threads are worth it.
    turns = [(_turn_s(alone, actions), _turn_s(together, actions)) for _ in range(arguments["repeats"] + 1)]
    return {"speed_ups": [one_s / two_s for one_s, two_s in turns[1:]]}


def _turn_s(copies: Copies, actions: np.ndarray) -> float:
    first = copies.begin(range(_COPIES))
    seen = np.empty((_COPIES, *np.shape(first[0])), dtype=np.float32)
    began_s = time.perf_counter()
    for action in actions.astype(np.float32):
        for end in copies.step(action, seen):
            if end.over:
                copies.restart(end.n, seen[end.n])
    copies.rewards()
    return time.perf_counter() - began_s
