"""Environments we know well: what they are about, and a score to hold one's own against.

Any other Gymnasium id works too; those here are what forms offer first. Gymnasium is imported only when an id
is not in the list, so a web process that shows the list need not have it in memory.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    id: str
    title: str
    description: str
    reference_return: float
    reference: str
    observation_size: int
    action_count: int | None = None
    action_size: int = 0
    action_limit: float = 1.0


_CONTROL = (
    Entry(
        "CartPole-v1",
        "Cart pole",
        "Balance a pole on a cart by pushing left or right. Solved in under a minute.",
        475.0,
        "the environment's own threshold for solved",
        4,
        2,
    ),
    Entry(
        "Acrobot-v1",
        "Acrobot",
        "Swing a two-link arm above a line as fast as possible.",
        -100.0,
        "the environment's own threshold for solved",
        6,
        3,
    ),
    Entry(
        "MountainCar-v0",
        "Mountain car",
        "Rock a car out of a valley. Plain policy gradients stay at -200 here: a useful negative control.",
        -110.0,
        "the environment's own threshold for solved",
        2,
        3,
    ),
    Entry(
        "Pendulum-v1",
        "Pendulum",
        "Swing up and hold a pendulum with limited torque.",
        -172.0,
        "PPO after 100,000 steps in published benchmarks",
        3,
        None,
        1,
        2.0,
    ),
)

_MUJOCO = (
    Entry(
        "Hopper-v5",
        "Hopper",
        "Make a one-legged robot hop forward (MuJoCo).",
        2383.0,
        "PPO after 1,000,000 steps in published benchmarks: 2,383 ± 272 (v4)",
        11,
        None,
        3,
    ),
    Entry(
        "Walker2d-v5",
        "Walker",
        "Make a two-legged robot walk forward (MuJoCo).",
        2288.0,
        "PPO after 1,000,000 steps in published benchmarks: 2,288 ± 572 (v4)",
        17,
        None,
        6,
    ),
    Entry(
        "HalfCheetah-v5",
        "Half cheetah",
        "Make a planar cheetah run (MuJoCo).",
        1443.0,
        "PPO after 1,000,000 steps in published benchmarks: 1,443 ± 46 (v4)",
        17,
        None,
        6,
    ),
    Entry(
        "Humanoid-v5",
        "Humanoid",
        "Make a three-dimensional humanoid stand and walk (MuJoCo).",
        716.0,
        "PPO after 1,000,000 steps in published benchmarks: 716 ± 49 (v4)",
        348,
        None,
        17,
        0.4,
    ),
)

ENTRIES: dict[str, Entry] = {entry.id: entry for entry in (*_CONTROL, *_MUJOCO)}


def require_known(environment_id: str) -> None:
    """ValueError, with the nearest known names, unless Gymnasium can make this environment."""
    if environment_id in ENTRIES:
        return
    import gymnasium

    if environment_id in gymnasium.registry:
        return
    known = sorted({*ENTRIES, *gymnasium.registry})
    near = difflib.get_close_matches(environment_id, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(ENTRIES)}."
    raise ValueError(f"there is no environment named {environment_id!r}; {hint}")
