"""Which environments are stepped natively: the table of families, and the checks before one of them is used.

A native copy computes what the listed classes of Gymnasium compute. Everything that could change their numbers is
checked first: another version of Gymnasium, a subclass, a wrapper, a replaced method.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

COMPARED_VERSIONS = ("1.4.0",)
"""Versions of Gymnasium whose classes were compared with ours, step by step (tests/training/test_native.py)."""


@dataclass(frozen=True)
class Family:
    """A file here, the name of its class, and the classes of Gymnasium that compute the same."""

    file: str
    name: str
    classes: tuple[str, ...]

    def load(self) -> Any:
        return getattr(importlib.import_module(f"training.environments.native.{self.file}"), self.name)


FAMILIES = (
    Family("acrobot", "Acrobot", ("classic_control.acrobot:AcrobotEnv",)),
    Family("ant", "Ant", ("mujoco.ant_v4:AntEnv", "mujoco.ant_v5:AntEnv")),
    Family("cart_pole", "CartPole", ("classic_control.cartpole:CartPoleEnv",)),
    Family(
        "half_cheetah",
        "HalfCheetah",
        ("mujoco.half_cheetah_v4:HalfCheetahEnv", "mujoco.half_cheetah_v5:HalfCheetahEnv"),
    ),
    Family("hopper", "Hopper", ("mujoco.hopper_v4:HopperEnv", "mujoco.hopper_v5:HopperEnv")),
    Family("humanoid", "Humanoid", ("mujoco.humanoid_v4:HumanoidEnv", "mujoco.humanoid_v5:HumanoidEnv")),
    Family(
        "humanoid_standup",
        "HumanoidStandup",
        (
            "mujoco.humanoidstandup_v4:HumanoidStandupEnv",
            "mujoco.humanoidstandup_v5:HumanoidStandupEnv",
        ),
    ),
    Family(
        "inverted_double_pendulum",
        "InvertedDoublePendulum",
        (
            "mujoco.inverted_double_pendulum_v4:InvertedDoublePendulumEnv",
            "mujoco.inverted_double_pendulum_v5:InvertedDoublePendulumEnv",
        ),
    ),
    Family(
        "inverted_pendulum",
        "InvertedPendulum",
        (
            "mujoco.inverted_pendulum_v4:InvertedPendulumEnv",
            "mujoco.inverted_pendulum_v5:InvertedPendulumEnv",
        ),
    ),
    Family("mountain_car", "MountainCar", ("classic_control.mountain_car:MountainCarEnv",)),
    Family(
        "mountain_car_continuous",
        "MountainCarContinuous",
        ("classic_control.continuous_mountain_car:Continuous_MountainCarEnv",),
    ),
    Family("pendulum", "Pendulum", ("classic_control.pendulum:PendulumEnv",)),
    # Gymnasium refuses Pusher-v4 on the MuJoCo that we run.
    Family("pusher", "Pusher", ("mujoco.pusher_v5:PusherEnv",)),
    Family("reacher", "Reacher", ("mujoco.reacher_v4:ReacherEnv", "mujoco.reacher_v5:ReacherEnv")),
    Family("swimmer", "Swimmer", ("mujoco.swimmer_v4:SwimmerEnv", "mujoco.swimmer_v5:SwimmerEnv")),
    Family("walker2d", "Walker2d", ("mujoco.walker2d_v4:Walker2dEnv", "mujoco.walker2d_v5:Walker2dEnv")),
)
_BY_CLASS = {f"gymnasium.envs.{one}": family for family in FAMILIES for one in family.classes}


def recognise(made: Any) -> tuple[Family | None, str]:
    """Return the family of `made`; or None and the reason why Gymnasium steps it, as the end of a sentence."""
    import gymnasium
    from gymnasium.wrappers import OrderEnforcing, TimeLimit

    if gymnasium.__version__ not in COMPARED_VERSIONS:
        return None, f"Gymnasium {gymnasium.__version__} was not compared with native stepping yet"
    base = made.unwrapped
    kind = type(base)
    name = f"{kind.__module__}:{kind.__qualname__}"
    family = _BY_CLASS.get(name)
    if family is None:
        return None, f"no native family computes what {name} does"
    layers = []
    layer = made
    while isinstance(layer, gymnasium.Wrapper):
        layers.append(type(layer))
        layer = layer.env
    if layer is not base or layers not in ([TimeLimit, OrderEnforcing], [OrderEnforcing], [TimeLimit], []):
        return None, f"it is wrapped in {', '.join(one.__name__ for one in layers)}"
    if getattr(base, "render_mode", None) is not None:
        return None, "it draws itself at each step"
    for owner in (*kind.__mro__, *layers):
        for attribute in replaced(owner):
            return None, f"{owner.__name__}.{attribute} is not Gymnasium's own"
    for attribute in vars(base):
        if isinstance(getattr(kind, attribute, None), FunctionType | property):
            return None, f"its {attribute} was replaced"
    refusal: str = family.load().refusal(base)
    return (None, refusal) if refusal else (family, "")


def replaced(owner: type) -> Iterator[str]:
    """Yield the names of methods of a class of Gymnasium whose code is not in that class's file."""
    if not owner.__module__.startswith("gymnasium."):
        return
    for name, attribute in vars(owner).items():
        for function in _functions(attribute):
            if function.__code__.co_filename != inspect.getfile(owner):
                yield name


def _functions(attribute: Any) -> Iterator[FunctionType]:
    if isinstance(attribute, property):
        attribute = attribute.fget
    elif isinstance(attribute, staticmethod | classmethod):
        attribute = attribute.__func__
    if isinstance(attribute, FunctionType):
        yield attribute
