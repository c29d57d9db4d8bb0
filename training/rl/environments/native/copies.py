"""The copies of a slot, stepped natively: physics and observations in each step, rewards for many steps at once."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.wrappers import TimeLimit

from training.rl.environments.copies import Copies, End
from training.rl.environments.native.cores import WORTH_THREADS_S
from training.rl.environments.native.families import Family
from training.rl.environments.native.threads import share

_STEPS_TOGETHER = 64
"""Rewards are computed for this many steps at once, because an array operation costs the same for one as for many."""

_TRIAL_STEPS = 9


class NativeCopies(Copies):
    """Each copy moves the simulation of one of Gymnasium's environments in `made`.

    With several `cores`, threads step copies whose physics runs outside Python's lock.
    """

    def __init__(self, made: list[Any], family: Family, cores: int = 1) -> None:
        super().__init__(made)
        kind = family.load()
        first = made[0].unwrapped
        self._copies = [kind(environment.unwrapped, first) for environment in made]
        self._steps = list(enumerate(copy.step for copy in self._copies))
        self._terminations = [End(n, True, False, True) for n in range(len(made))]
        self._limits: list[Any] = [
            environment if isinstance(environment, TimeLimit) else None for environment in made
        ]
        self._longest = [inf if limit is None else limit._max_episode_steps for limit in self._limits]
        shape = self.action_space.shape
        self._reads_actions = kind.reads_actions
        count = len(made)
        # Rows are taken once, because taking a row out of an array costs more than writing into it.
        self._records = np.zeros((_STEPS_TOGETHER, count, self._copies[0].width))
        self._rows = [list(step) for step in self._records]
        self._actions = np.zeros((_STEPS_TOGETHER, count, *shape), dtype=np.float32)
        threads = min(cores, count) if kind.releases else 1
        self._threads = threads
        self._shared = False
        self._trial_s: list[float] = []
        self._written = 0
        self._rewards: list[npt.NDArray[np.float64]] = []
        # All copies share a clock of steps: when each reaches its time limit, and when the first does.
        self._clock = 0
        self._cut_off_at: list[float] = [inf] * count
        self._next_cut_off = inf

    def step(self, actions: Any, seen: npt.NDArray[Any]) -> Sequence[End]:
        self._clock += 1
        written = self._written
        if self._reads_actions:
            self._actions[written] = actions
        rows = self._rows[written]
        if self._threads == 1:
            ended = []
            for n, step in self._steps:
                if step(actions[n], rows[n], seen[n]):
                    ended.append(n)
        else:
            ended = self._advance_in_threads(actions, rows, seen)
        self._written = written = written + 1
        if written == _STEPS_TOGETHER:
            self._settle()
        if self._clock < self._next_cut_off:
            return [self._terminations[n] for n in ended] if ended else ()
        cut_off = [n for n, at in enumerate(self._cut_off_at) if at <= self._clock]
        return [End(n, n in ended, n in cut_off, True) for n in sorted({*ended, *cut_off})]

    def _advance_in_threads(self, actions: Any, rows: list[Any], seen: npt.NDArray[Any]) -> list[int]:
        """Step all copies. Return those that terminated. The first steps are a trial on one core."""
        # Each thread takes the next copy from here when it has stepped its last one.
        left = iter(self._steps)
        ended: list[int] = []

        def advance() -> None:
            for n, step in left:
                if step(actions[n], rows[n], seen[n]):
                    ended.append(n)

        if self._shared:
            share(advance, self._threads)
            return sorted(ended)
        began_s = perf_counter()
        advance()
        self._consider_threads(perf_counter() - began_s)
        return ended

    def _consider_threads(self, took_s: float) -> None:
        """Step in threads if the first steps took so long that it saves more time than threads need to wake."""
        self._trial_s.append(took_s)
        if len(self._trial_s) < _TRIAL_STEPS:
            return
        if statistics.median(self._trial_s) >= WORTH_THREADS_S:
            self._shared = True
        else:
            self._threads = 1

    def restart(self, n: int, seen: npt.NDArray[Any]) -> None:
        self._copies[n].restart(seen)
        self._set_limit(n, self._longest[n])

    def rewards(self) -> npt.NDArray[np.float64]:
        self._settle()
        settled, self._rewards = self._rewards, []
        return np.concatenate([np.empty((0, len(self))), *settled])

    def save(self) -> list[bytes | None]:
        for n, copy in enumerate(self._copies):
            copy.hand_over()
            limit = self._limits[n]
            if limit is not None:
                limit._elapsed_steps = int(limit._max_episode_steps - (self._cut_off_at[n] - self._clock))
        return super().save()

    def adopt(self) -> None:
        self._written, self._rewards = 0, []
        for n, copy in enumerate(self._copies):
            copy.adopt()
            limit = self._limits[n]
            self._set_limit(n, inf if limit is None else limit._max_episode_steps - limit._elapsed_steps)

    def _set_limit(self, n: int, steps: float) -> None:
        self._cut_off_at[n] = self._clock + steps
        self._next_cut_off = min(self._cut_off_at)

    def _settle(self) -> None:
        """Compute the rewards of the recorded steps."""
        if written := self._written:
            self._rewards.append(self._copies[0].rewards(self._records[:written], self._actions[:written]))
            self._written = 0
