"""The shape of what an agent sees and does."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Spaces:
    """What a policy needs to know of its task: the shape of what it sees, and how it acts.

    Pictures are bytes of [channel, row, column]; everything else is a vector of float32. `action_counts` holds the
    number of choices of each discrete action; `action_low` and `action_high` are for continuous ones.
    """

    observation_shape: tuple[int, ...]
    action_counts: tuple[int, ...] = ()
    action_low: tuple[float, ...] = ()
    action_high: tuple[float, ...] = ()

    @property
    def pictures(self) -> bool:
        return len(self.observation_shape) == 3

    @property
    def observation_size(self) -> int:
        return prod(self.observation_shape)

    @property
    def discrete(self) -> bool:
        return bool(self.action_counts)

    @property
    def policy_outputs(self) -> int:
        """Logits of all discrete choices, or means of continuous actions."""
        return sum(self.action_counts) if self.action_counts else len(self.action_low)
