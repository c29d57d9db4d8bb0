"""What goes wrong with a cloud: on demand, or by chance with a seed, so that a bad day can be had again."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, get_args

FaultKind = Literal[
    "throttle",  # 429 before anything happens
    "service_error",  # 500 before anything happens
    "error_after",  # 500 although it was done
    "lost_request",  # the connection breaks before anything happens
    "lost_reply",  # the connection breaks after it was done
    "crash",  # the process of the function is killed while it runs
    "slow_start",  # a new environment takes longer
    "zombie_delete",  # deleted, says the answer, and it is still there
]
KINDS = frozenset(get_args(FaultKind))


@dataclass
class Faults:
    """`shares` say how often each kind strikes; `ordered` kinds strike as many next times for certain."""

    seed: int = 0
    shares: dict[FaultKind, float] = field(default_factory=dict)
    ordered: Counter[FaultKind] = field(default_factory=Counter)
    struck: Counter[FaultKind] = field(default_factory=Counter)
    slow_start_s: float = 2.0
    visibility_delay_s: float = 0.0

    def __post_init__(self) -> None:
        # Dice of its own for each kind: how often one is asked for changes no other's luck.
        self._chance = {kind: random.Random(f"{self.seed} {kind}") for kind in KINDS}

    def strikes(self, kind: FaultKind) -> bool:
        """Whether it goes wrong this time. Each kind is asked for where it would happen."""
        share = self.shares.get(kind, 0.0)
        hit = share > 0.0 and self._chance[kind].random() < share
        if self.ordered[kind] > 0:
            self.ordered[kind] -= 1
            hit = True
        self.struck[kind] += hit
        return hit

    def order(self, kind: FaultKind, times: int = 1) -> None:
        """The next `times` occasions go wrong."""
        self.ordered[kind] += times

    def end(self) -> None:
        """Everything works again."""
        self.shares = {}
        self.ordered.clear()
        self.visibility_delay_s = 0.0
