"""What goes wrong with a cloud: on demand, or by chance with a seed, so that a bad day can be had again."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Kind = TypeVar("Kind", bound=str)


@dataclass
class Faults(Generic[Kind]):
    """`shares` say how often each kind strikes; `ordered` kinds strike as many next times for certain.

    Which kinds a cloud knows, and what each does, is said beside that cloud.
    """

    seed: int = 0
    shares: dict[Kind, float] = field(default_factory=dict)
    ordered: Counter[Kind] = field(default_factory=Counter)
    struck: Counter[Kind] = field(default_factory=Counter)
    slow_start_s: float = 2.0
    visibility_delay_s: float = 0.0

    def __post_init__(self) -> None:
        # Dice of its own for each kind: how often one is asked for changes no other's luck.
        self._chance: dict[Kind, random.Random] = {}

    def strikes(self, kind: Kind) -> bool:
        """Whether it goes wrong this time. Each kind is asked for where it would happen."""
        share = self.shares.get(kind, 0.0)
        dice = self._chance.setdefault(kind, random.Random(f"{self.seed} {kind}"))
        hit = share > 0.0 and dice.random() < share
        if self.ordered[kind] > 0:
            self.ordered[kind] -= 1
            hit = True
        self.struck[kind] += hit
        return hit

    def order(self, kind: Kind, times: int = 1) -> None:
        """The next `times` occasions go wrong."""
        self.ordered[kind] += times

    def end(self) -> None:
        """Everything works again."""
        self.shares = {}
        self.ordered.clear()
        self.visibility_delay_s = 0.0
