"""The environment copies of one slot, which step together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from training.rl.environments.travel import restore, save


class ChangedSpace(ValueError):
    """An environment returned an observation of another shape than before."""


class End(NamedTuple):
    """An end in copy `n`. `over`: the episode ended, so the copy has to restart.

    A lost life is a termination for the learner, but the game goes on.
    """

    n: int
    terminated: bool
    truncated: bool
    over: bool


class Copies:
    """Copies of one environment. The caller restarts a copy whose episode is over."""

    def __init__(self, made: list[Any]) -> None:
        self.made = made
        self.action_space = made[0].action_space

    def __len__(self) -> int:
        return len(self.made)

    def begin(self, seeds: Sequence[int]) -> list[Any]:
        """Begin an episode in each copy with its seed. Return the first observations."""
        seen = [copy.reset(seed=seed)[0] for copy, seed in zip(self.made, seeds, strict=True)]
        self.adopt()
        return seen

    def adopt(self) -> None:
        """Continue from the environments' state after a reset or a restore."""
        raise NotImplementedError

    def step(self, actions: Any, seen: npt.NDArray[Any]) -> Sequence[End]:
        """Take each copy's action and write its observation into its row of `seen`. Return what ended."""
        raise NotImplementedError

    def restart(self, n: int, seen: npt.NDArray[Any]) -> None:
        """Begin a new episode in copy `n` and write its first observation into `seen`."""
        raise NotImplementedError

    def rewards(self) -> npt.NDArray[np.float64]:
        """Return the rewards [step, copy] of all steps since the last call of this, `begin` or `restore`."""
        raise NotImplementedError

    def save(self) -> list[bytes | None]:
        """Return each copy's state; None for a copy that cannot be saved."""
        return [save(copy) for copy in self.made]

    def restore(self, states: Sequence[bytes]) -> None:
        """Put each copy into a saved state. Any kind of copies may have saved it."""
        for copy, state in zip(self.made, states, strict=True):
            restore(copy, state)
        self.adopt()


class GymnasiumCopies(Copies):
    """Copies of any environment, stepped by Gymnasium."""

    def __init__(self, made: list[Any], name: str) -> None:
        super().__init__(made)
        self._name = name
        self._rewards: list[list[float]] = []

    def adopt(self) -> None:
        self._rewards = []

    def step(self, actions: Any, seen: npt.NDArray[Any]) -> Sequence[End]:
        ends, rewards = [], []
        for n, (copy, action) in enumerate(zip(self.made, actions, strict=True)):
            shown, reward, over, cut_off, info = copy.step(action)
            rewards.append(float(reward))
            self._show(shown, seen[n])
            terminated = bool(over or info.get("life_lost", False))
            if terminated or cut_off:
                ends.append(End(n, terminated, bool(cut_off), bool(over or cut_off)))
        self._rewards.append(rewards)
        return ends

    def restart(self, n: int, seen: npt.NDArray[Any]) -> None:
        self._show(self.made[n].reset()[0], seen, done=1)

    def rewards(self) -> npt.NDArray[np.float64]:
        rewards, self._rewards = self._rewards, []
        return np.array(rewards, dtype=np.float64).reshape(-1, len(self))

    def _show(self, shown: Any, seen: npt.NDArray[Any], done: int = 0) -> None:
        if getattr(shown, "shape", None) != seen.shape and np.shape(shown) != seen.shape:
            step = len(self._rewards) - done
            raise ChangedSpace(
                f"{self._name} showed {np.shape(shown)} at step {step} and {seen.shape} before"
            )
        seen[...] = shown
