"""The faults of an emulated cloud: on demand, or by chance with a seed, so that a bad day can be repeated."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeVar, get_args

Kind = TypeVar("Kind", bound=str)

AwsFault = Literal[
    "throttle",  # 429 before anything happens
    "service_error",  # 500 before anything happens
    "error_after",  # 500 although it was done
    "lost_request",  # the connection breaks before anything happens
    "lost_reply",  # the connection breaks after it was done
    "crash",  # the process of the function is killed while it runs
    "slow_start",  # a new sandbox takes longer
    "zombie_delete",  # the answer says deleted, and it still exists
]
AzureFault = Literal[
    "throttle",  # 429 with Retry-After before anything happens
    "service_error",  # 503 before anything happens
    "error_after",  # 500 although it was done
    "lost_request",  # the connection breaks before anything happens
    "lost_reply",  # the connection breaks after it was done
    "slow_start",  # a group takes longer to start
    "registry_error",  # 409 with Retry-After: the image's registry answers with an error for a while
    "failed_start",  # the operation fails, and the group remains as failed
    "crash",  # a container is killed soon after its start
    "zombie_delete",  # the answer says deleted, and it runs and is billed for a while longer
]


@dataclass
class Faults(Generic[Kind]):
    """`shares` say how often each kind strikes. A kind in `ordered` strikes the next so many times for certain."""

    kinds: ClassVar[frozenset[str]] = frozenset()

    seed: int = 0
    shares: dict[Kind, float] = field(default_factory=dict)
    ordered: Counter[Kind] = field(default_factory=Counter)
    struck: Counter[Kind] = field(default_factory=Counter)
    slow_start_s: float = 2.0
    visibility_delay_s: float = 0.0

    def __post_init__(self) -> None:
        # One generator for each kind: drawing for one kind does not change the others' luck.
        self._chance: dict[Kind, random.Random] = {}

    def strikes(self, kind: Kind) -> bool:
        """Return True if it goes wrong this time. Called wherever that kind could happen."""
        share = self.shares.get(kind, 0.0)
        dice = self._chance.setdefault(kind, random.Random(f"{self.seed} {kind}"))
        hit = share > 0.0 and dice.random() < share
        if self.ordered[kind] > 0:
            self.ordered[kind] -= 1
            hit = True
        self.struck[kind] += hit
        return hit

    def order(self, kind: Kind, times: int = 1) -> None:
        """Make the next `times` occasions go wrong."""
        self.ordered[kind] += times

    def end(self) -> None:
        """Make everything work again."""
        self.shares = {}
        self.ordered.clear()
        self.visibility_delay_s = 0.0


class AwsFaults(Faults[AwsFault]):
    kinds = frozenset(get_args(AwsFault))


@dataclass
class AzureFaults(Faults[AzureFault]):
    """`zombie_s`: how long a group runs on after its deletion; `crash_after_s`: how long a container lives that is to
    be killed.
    """

    kinds = frozenset(get_args(AzureFault))

    zombie_s: float = 2.0
    crash_after_s: float = 1.0
