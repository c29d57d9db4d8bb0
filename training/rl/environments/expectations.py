"""What to expect of an environment before it was ever built: how long its episodes are and how large its state is.

For forecasts only; nothing that learns reads it. A state is counted as it travels with a call, for one copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.model import EnvironmentSpec
from training.rl.spaces import Spaces

_GUESSED_NUMBERS, _GUESSED_ACTIONS, _GUESSED_BUTTONS = 64, 8, 18


@dataclass(frozen=True)
class Expectation:
    """Mean steps of an episode of the deterministic policy, from a bad one to a good one, and bytes of one state.

    `basis`: where the range of lengths comes from, in words.
    """

    shortest: int
    usual: int
    longest: int
    state_bytes: int
    basis: str = "its time limit and what policies reach"


_ALWAYS = "every episode runs to its time limit"

_KNOWN = {
    "CartPole-v1": Expectation(100, 450, 500, 167),
    "Acrobot-v1": Expectation(75, 100, 500, 167),
    "MountainCar-v0": Expectation(110, 200, 200, 151),
    "MountainCarContinuous-v0": Expectation(70, 300, 999, 151),
    "Pendulum-v1": Expectation(200, 200, 200, 151, _ALWAYS),
}
_ROBOTS = {
    "Hopper": Expectation(100, 400, 1000, 869),
    "Walker2d": Expectation(100, 450, 1000, 1277),
    "HalfCheetah": Expectation(1000, 1000, 1000, 1277, _ALWAYS),
    "Humanoid": Expectation(30, 120, 1000, 2398),
    "Ant": Expectation(100, 700, 1000, 2038),
}
_GAME = Expectation(300, 1000, 6000, 39_500, "what policies reach in Atari games")
_UNKNOWN = Expectation(20, 300, 1000, 1000, "assumed, since nothing is known of this environment")


def expectation_of(environment_id: str, *, pictures: bool = False) -> Expectation:
    """For any id; what is not known is guessed, and its `basis` says so."""
    known = _KNOWN.get(environment_id) or _ROBOTS.get(environment_id.split("-")[0])
    if known is not None:
        return known
    entry = ENTRIES.get(environment_id)
    return _GAME if pictures or (entry is not None and entry.family == "Atari") else _UNKNOWN


def expected_spaces(environment: EnvironmentSpec, *, pictures: bool) -> tuple[Spaces, bool]:
    """Return an environment's spaces without building it, and whether they are known or guessed."""
    entry = ENTRIES.get(environment.id)
    if entry is not None:
        return entry.spaces(environment.frame_stack), True
    if pictures:
        return Spaces((environment.frame_stack, 84, 84), (_GUESSED_BUTTONS,)), False
    limits = (1.0,) * _GUESSED_ACTIONS
    return Spaces((_GUESSED_NUMBERS,), (), tuple(-limit for limit in limits), limits), False
