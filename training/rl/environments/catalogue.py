"""Environments we know well: what they are about, their spaces, and a score to hold one's own against.

Any other Gymnasium id works too; those here are what forms offer first, and they need not be built to know their
spaces. Gymnasium is imported only when an id is not in the list, so a web process that shows the list need not have
it in memory.
"""

from __future__ import annotations

import difflib
import struct
from dataclasses import dataclass

from training.rl import packages
from training.rl.environments.atari import atari_game
from training.rl.spaces import Spaces


@dataclass(frozen=True)
class Entry:
    """One environment. `reference` says where `reference_score` comes from; None where no honest one is known."""

    id: str
    family: str
    title: str
    description: str
    reference_score: float | None
    reference: str
    observation_size: int = 0
    action_counts: tuple[int, ...] = ()
    action_size: int = 0
    action_limit: float = 1.0
    reference_spread: float | None = None
    """How much published runs differ: their standard deviation, as their paper has it."""

    def spaces(self, frame_stack: int) -> Spaces:
        shape = (frame_stack, 84, 84) if self.family == "Atari" else (self.observation_size,)
        # Gymnasium keeps limits in float32.
        limit = struct.unpack("<f", struct.pack("<f", self.action_limit))[0]
        high = (limit,) * self.action_size
        return Spaces(shape, self.action_counts, tuple(-x for x in high), high)


_SOLVED = "the environment's own threshold for solved"
_PUBLISHED = "PPO after 1,000,000 steps in published benchmarks: {} (v4)"

# Title, what it is about, a reference and its source, numbers seen, choices, else numbers taken and their limit.
_CONTROL: dict[str, tuple[str, str, float, str, int, tuple[int, ...], int, float]] = {
    "CartPole-v1": (
        *("Cart pole", "Balance a pole on a cart by pushing left or right. Solved in under a minute."),
        *(475.0, _SOLVED, 4, (2,), 0, 1.0),
    ),
    "Acrobot-v1": (
        *("Acrobot", "Swing a two-link arm above a line as fast as possible."),
        *(-100.0, _SOLVED, 6, (3,), 0, 1.0),
    ),
    "MountainCar-v0": (
        "Mountain car",
        "Rock a car out of a valley. Plain policy gradients stay at -200 here: a useful negative control.",
        *(-110.0, _SOLVED, 2, (3,), 0, 1.0),
    ),
    "MountainCarContinuous-v0": (
        *("Mountain car, continuous", "The same valley with a continuous throttle."),
        *(90.0, _SOLVED, 2, (), 1, 1.0),
    ),
    "Pendulum-v1": (
        *("Pendulum", "Swing up and hold a pendulum with limited torque."),
        *(-172.0, "PPO after 100,000 steps in published benchmarks", 3, (), 1, 2.0),
    ),
}
# Title, what it is about, published PPO score at 1M steps with its spread, sizes in v4 and v5, actions, their limit.
_ROBOTS = {
    "Hopper": ("Hopper", "Make a one-legged robot hop forward", 2383.0, 272.0, 11, 11, 3, 1.0),
    "Walker2d": ("Walker", "Make a two-legged robot walk forward", 2288.0, 572.0, 17, 17, 6, 1.0),
    "HalfCheetah": ("Half cheetah", "Make a planar cheetah run", 1443.0, 46.0, 17, 17, 6, 1.0),
    "Humanoid": ("Humanoid", "Make a humanoid stand and walk", 716.0, 49.0, 376, 348, 17, 0.4),
    "Ant": ("Ant", "Make a four-legged robot walk", None, None, 27, 105, 8, 1.0),
}


def _robots() -> tuple[Entry, ...]:
    entries = []
    for version in ("v5", "v4"):
        for name, (title, about, score, spread, v4_size, v5_size, actions, limit) in _ROBOTS.items():
            entries.append(
                Entry(
                    f"{name}-{version}",
                    "MuJoCo",
                    f"{title} {version}",
                    f"{about} (MuJoCo).",
                    score,
                    _PUBLISHED.format(f"{score:,.0f} ± {spread:,.0f}")
                    if score is not None
                    else "no published score read for this version",
                    v5_size if version == "v5" else v4_size,
                    (),
                    actions,
                    limit,
                    spread,
                )
            )
    return tuple(entries)


# Legal actions, and CleanRL's PPO after 10M steps (40M frames) with its spread.
_GAMES: dict[str, tuple[int, float, float, str]] = {
    "SpaceInvaders": (6, 1189.0, 81.0, "1,189 ± 81"),
    "Qbert": (6, 17246.0, 605.0, "17,246 ± 605"),
    "Gravitar": (18, 1099.0, 603.0, "1,099 ± 603"),
    "Breakout": (4, 414.7, 28.0, "414.7 ± 28"),
    "Pong": (6, 20.4, 0.2, "20.4 ± 0.2"),
    "BeamRider": (9, 1916.0, 485.0, "1,916 ± 485"),
}


def _games() -> tuple[Entry, ...]:
    entries = []
    for pattern, note in (("ALE/{}-v5", "sticky actions"), ("{}NoFrameskip-v4", "no sticky actions")):
        for game, (actions, score, spread, words) in _GAMES.items():
            entries.append(
                Entry(
                    pattern.format(game),
                    "Atari",
                    f"{game} ({note})",
                    f"Atari {game} from pictures, {note}; 84 × 84 grey, 4 frames an action.",
                    score,
                    f"PPO after 10,000,000 steps in published benchmarks: {words} (without sticky actions)",
                    0,
                    (actions,),
                    reference_spread=spread,
                )
            )
    return tuple(entries)


_CLASSIC = (Entry(name, "Classic control", *facts) for name, facts in _CONTROL.items())
ENTRIES: dict[str, Entry] = {entry.id: entry for entry in (*_CLASSIC, *_robots(), *_games())}


def require_known(environment_id: str) -> None:
    """ValueError, with the nearest known names, unless this environment can be made."""
    if environment_id in ENTRIES:
        return
    import gymnasium

    packages.load()
    if environment_id in gymnasium.registry or atari_game(environment_id) is not None:
        return
    known = sorted({*ENTRIES, *gymnasium.registry})
    near = difflib.get_close_matches(environment_id, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(ENTRIES)}."
    raise ValueError(f"there is no environment named {environment_id!r}; {hint}")
