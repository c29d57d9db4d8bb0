"""Atari games from pictures, as DQN and PPO papers play them, without OpenCV.

Each action lasts 4 frames; the last two are merged by their maximum, made 84 × 84 grey by averaging areas, and the
last few pictures are stacked, channels first. An episode begins with up to 30 idle actions and, where the game waits
for it, a press of fire; it ends with the game, or is cut off after 27,000 actions' frames. For training a lost life
counts as the end of an episode for the learner only; evaluation plays whole games.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

_NAMES = (
    re.compile(r"^ALE/(?P<game>[A-Za-z0-9]+)-v5$"),
    re.compile(r"^(?P<game>[A-Za-z0-9]+)NoFrameskip-v4$"),
)
_STICKY = (0.25, 0.0)
_FRAMES_PER_ACTION = 4
_IDLE_AT_MOST = 30
_FRAMES_PER_EPISODE = 108_000
_SIZE = 84
_WARM_UP_FRAMES = 5


def atari_game(environment_id: str) -> tuple[str, float] | None:
    """The ROM's name and the probability of sticky actions, if the id is that of a game we have."""
    for pattern, sticky in zip(_NAMES, _STICKY, strict=True):
        match = pattern.match(environment_id)
        if match is not None:
            rom = re.sub(r"(?<!^)(?=[A-Z])", "_", match["game"]).lower()
            return (rom, sticky) if rom in _roms() else None
    return None


@functools.cache
def _roms() -> frozenset[str]:
    from ale_py import roms

    return frozenset(roms.get_all_rom_ids())


class AtariEnvironment:
    """One game with Gymnasium's `reset` and `step`. Its whole state can be saved and restored elsewhere."""

    def __init__(self, game: tuple[str, float], frame_stack: int) -> None:
        from ale_py import Action, ALEInterface, LoggerMode, roms
        from gymnasium.spaces import Box, Discrete

        rom, sticky = game
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self._ale = ALEInterface()
        self._idle = Action.NOOP
        self._ale.setFloat("repeat_action_probability", sticky)
        self._ale.setInt("max_num_frames_per_episode", _FRAMES_PER_EPISODE)
        self._rom: Any = roms.get_rom_path(rom)
        self._load(0)
        self._actions = list(self._ale.getMinimalActionSet())
        self._fire = [action for action in self._actions if action == Action.FIRE]
        rows, columns = self._ale.getScreenDims()
        self._frames = np.zeros((2, rows, columns), dtype=np.uint8)
        self._shrink = Shrinking(rows, columns)
        self._stack = np.zeros((frame_stack, _SIZE, _SIZE), dtype=np.uint8)
        self._lives = 0
        self.np_random = np.random.Generator(np.random.PCG64(0))
        self.observation_space = Box(0, 255, self._stack.shape, np.uint8)
        self.action_space = Discrete(len(self._actions))

    @property
    def unwrapped(self) -> AtariEnvironment:
        return self

    def reset(self, *, seed: int | None = None) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
        if seed is not None:
            self.np_random = np.random.Generator(np.random.PCG64(seed))
            self._load(seed % 2**31)
        self._ale.reset_game()
        for _ in range(int(self.np_random.integers(1, _IDLE_AT_MOST + 1))):
            self._ale.act(self._idle)
            if self._ale.game_over():
                self._ale.reset_game()
        if self._fire:
            self._ale.act(self._fire[0])
        self._lives = self._ale.lives()
        self._ale.getScreenGrayscale(self._frames[0])
        self._frames[1] = self._frames[0]
        self._shrink(self._frames, self._stack[-1])
        self._stack[:-1] = self._stack[-1]
        return self._stack.copy(), {"lives": self._lives}

    def step(self, action: int) -> tuple[npt.NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        reward = 0.0
        act = self._actions[action]
        over = False
        for frame in range(_FRAMES_PER_ACTION):
            reward += self._ale.act(act)
            over = self._ale.game_over(with_truncation=False)
            if over or self._ale.game_truncated():
                break
            if frame >= _FRAMES_PER_ACTION - 2:
                self._ale.getScreenGrayscale(self._frames[frame - 2])
        self._stack[:-1] = self._stack[1:]
        self._shrink(self._frames, self._stack[-1])
        lives = self._ale.lives()
        lost, self._lives = lives < self._lives, lives
        if lost and not over and self._fire:
            # Some games wait for fire after each life; a policy should not have to find that out.
            self._ale.act(self._fire[0])
        return self._stack.copy(), reward, over, self._ale.game_truncated() and not over, {"life_lost": lost}

    def save(self) -> dict[str, Any]:
        """Everything the next step depends on."""
        return {
            "ale": self._ale.cloneState(include_rng=True).serialize(),
            "lives": self._lives,
            "frames": self._frames.copy(),
            "stack": self._stack.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        from ale_py import ALEState

        self._ale.restoreState(ALEState(state["ale"]))
        self._lives = state["lives"]
        self._frames[:] = state["frames"]
        self._stack[:] = state["stack"]

    def render(self) -> npt.NDArray[np.uint8]:
        """The screen in colours, for videos."""
        screen: npt.NDArray[np.uint8] = self._ale.getScreenRGB()
        return screen

    def close(self) -> None:
        """Nothing to give back: the emulator goes with the object."""

    def _load(self, seed: int) -> None:
        self._ale.setInt("random_seed", seed)
        self._ale.loadROM(self._rom)
        # The emulator takes a state only once it has run: on a fresh one the first frames would differ.
        self._ale.reset_game()
        for _ in range(_WARM_UP_FRAMES):
            self._ale.act(self._idle)


class Shrinking:
    """The maximum of two frames, averaged down to 84 × 84, in memory that is kept.

    Rows repeat: each few lines of a frame make a few of the picture by the same weights, so one small product serves
    them all. Columns are multiplied as a whole, as their sums would be rounded otherwise in parts.
    """

    def __init__(self, rows: int, columns: int) -> None:
        blocks = math.gcd(rows, _SIZE)
        height = rows // blocks
        self._weights = np.ascontiguousarray(_averaging(rows)[: _SIZE // blocks, :height])
        self._to_columns = np.ascontiguousarray(_averaging(columns).T)
        self._merged = np.empty((rows, columns), dtype=np.uint8)
        # Lines that have the same place in their block lie beside each other.
        self._by_place = self._merged.reshape(blocks, height, columns).transpose(1, 0, 2)
        self._lines = np.empty((height, blocks, columns), dtype=np.float32)
        self._flat_lines = self._lines.reshape(height, -1)
        self._rows = np.empty((_SIZE // blocks, blocks * columns), dtype=np.float32)
        self._rows_by_place = self._rows.reshape(_SIZE // blocks, blocks, columns).transpose(1, 0, 2)
        self._low = np.empty((_SIZE, columns), dtype=np.float32)
        self._low_by_place = self._low.reshape(blocks, _SIZE // blocks, columns)
        self._small = np.empty((_SIZE, _SIZE), dtype=np.float32)

    def __call__(self, frames: npt.NDArray[np.uint8], picture: npt.NDArray[np.uint8]) -> None:
        """Write the picture of two frames into `picture`."""
        np.maximum(frames[0], frames[1], out=self._merged)
        self._lines[:] = self._by_place
        np.matmul(self._weights, self._flat_lines, out=self._rows)
        self._low_by_place[:] = self._rows_by_place
        np.matmul(self._low, self._to_columns, out=self._small)
        np.rint(self._small, out=self._small)
        picture[:] = self._small


@functools.cache
def _averaging(size: int) -> npt.NDArray[np.float32]:
    """The matrix that averages `size` lines into 84 by area, as image libraries shrink pictures."""
    matrix = np.zeros((_SIZE, size), dtype=np.float32)
    width = size / _SIZE
    for i in range(_SIZE):
        begin, end = i * width, (i + 1) * width
        for j in range(int(begin), min(size, int(np.ceil(end)))):
            matrix[i, j] = (min(end, j + 1) - max(begin, j)) / width
    return matrix
