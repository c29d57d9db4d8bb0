"""The copies of a slot, stepped natively: physics and observations in each step, rewards for many steps at once."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.wrappers import TimeLimit

from training.environments.copies import Copies, End
from training.environments.native.families import Family

_STEPS_TOGETHER = 64
"""Rewards are computed for this many steps at once, because an array operation costs the same for one as for many."""

# Waking a thread takes up to 80 us where machines are virtual: steps of all copies that take less stay on one core.
_TRIAL_STEPS = 9
_WORTH_THREADS_S = 300e-6


class NativeCopies(Copies):
    """Each copy moves the simulation of one of Gymnasium's environments in `made`.

    With several `cores`, threads step copies whose physics runs outside Python's lock.
    """

    def __init__(self, made: list[Any], family: Family, cores: int = 1) -> None:
        super().__init__(made)
        kind = family.load()
        first = made[0].unwrapped
        self._copies = [kind(environment.unwrapped, first) for environment in made]
        self._steps = [copy.step for copy in self._copies]
        self._limits: list[Any] = [
            environment if isinstance(environment, TimeLimit) else None for environment in made
        ]
        shape = self.action_space.shape
        self._reads_actions = kind.reads_actions
        count = len(made)
        # Rows are taken once, because taking a row out of an array costs more than writing into it.
        self._records = np.zeros((_STEPS_TOGETHER, count, self._copies[0].width))
        self._rows = [list(step) for step in self._records]
        self._actions = np.zeros((_STEPS_TOGETHER, count, *shape), dtype=np.float32)
        threads = min(cores, count) if kind.releases else 1
        self._threads = threads
        self._shares = [range(count)]
        self._trial_s: list[float] | None = [] if threads > 1 else None
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
        ended = self._advance_all(actions, rows, seen)
        self._written = written + 1
        if self._written == _STEPS_TOGETHER:
            self._settle()
        if self._clock < self._next_cut_off:
            return [End(n, True, False, True) for n in sorted(ended)] if ended else ()
        cut_off = [n for n, at in enumerate(self._cut_off_at) if at <= self._clock]
        return [End(n, n in ended, n in cut_off, True) for n in sorted({*ended, *cut_off})]

    def _advance_all(self, actions: Any, rows: list[Any], seen: npt.NDArray[Any]) -> list[int]:
        """Step all copies. Return those that terminated."""
        here, *elsewhere = self._shares
        if not elsewhere:
            if self._trial_s is None:
                return self._advance(here, actions, rows, seen)
            began_s = perf_counter()
            ended = self._advance(here, actions, rows, seen)
            self._consider_threads(perf_counter() - began_s)
            return ended
        # This thread steps its own share while the others step theirs.
        pool = _threads(len(elsewhere))
        waited = [pool.submit(self._advance, share, actions, rows, seen) for share in elsewhere]
        ended = self._advance(here, actions, rows, seen)
        for share in waited:
            ended += share.result()
        return ended

    def _consider_threads(self, took_s: float) -> None:
        """Share copies out if the first steps took so long that it saves more time than threads need to wake."""
        assert self._trial_s is not None
        self._trial_s.append(took_s)
        if len(self._trial_s) < _TRIAL_STEPS:
            return
        if statistics.median(self._trial_s) >= _WORTH_THREADS_S:
            count = len(self._copies)
            self._shares = [range(n, count, self._threads) for n in range(self._threads)]
        self._trial_s = None

    def _advance(self, share: range, actions: Any, rows: list[Any], seen: npt.NDArray[Any]) -> list[int]:
        """Step the copies of `share`. Return those that terminated."""
        steps = self._steps
        return [n for n in share if steps[n](actions[n], rows[n], seen[n])]

    def restart(self, n: int, seen: npt.NDArray[Any]) -> None:
        self._copies[n].restart(seen)
        limit = self._limits[n]
        self._set_limit(n, inf if limit is None else limit._max_episode_steps)

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


@functools.cache
def _threads(count: int) -> ThreadPoolExecutor:
    """Return the threads that step copies beside the calling one. They last as long as the process."""
    return ThreadPoolExecutor(count, thread_name_prefix="copies")
