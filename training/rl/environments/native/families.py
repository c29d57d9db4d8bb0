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
        return getattr(importlib.import_module(f"training.rl.environments.native.{self.file}"), self.name)


def _robot(file: str, name: str, module: str = "", versions: tuple[str, ...] = ("v4", "v5")) -> Family:
    """Return the family of a MuJoCo robot, whose module at Gymnasium is `module` or has the name of our file."""
    return Family(file, name, tuple(f"mujoco.{module or file}_{version}:{name}Env" for version in versions))


FAMILIES = (
    Family("acrobot", "Acrobot", ("classic_control.acrobot:AcrobotEnv",)),
    _robot("ant", "Ant"),
    Family("cart_pole", "CartPole", ("classic_control.cartpole:CartPoleEnv",)),
    _robot("half_cheetah", "HalfCheetah"),
    _robot("hopper", "Hopper"),
    _robot("humanoid", "Humanoid"),
    _robot("humanoid_standup", "HumanoidStandup", "humanoidstandup"),
    _robot("inverted_double_pendulum", "InvertedDoublePendulum"),
    _robot("inverted_pendulum", "InvertedPendulum"),
    Family("mountain_car", "MountainCar", ("classic_control.mountain_car:MountainCarEnv",)),
    Family(
        "mountain_car_continuous",
        "MountainCarContinuous",
        ("classic_control.continuous_mountain_car:Continuous_MountainCarEnv",),
    ),
    Family("pendulum", "Pendulum", ("classic_control.pendulum:PendulumEnv",)),
    # Gymnasium refuses Pusher-v4 on the MuJoCo that we run.
    _robot("pusher", "Pusher", versions=("v5",)),
    _robot("reacher", "Reacher"),
    _robot("swimmer", "Swimmer"),
    _robot("walker2d", "Walker2d"),
)
_BY_CLASS = {f"gymnasium.envs.{class_}": family for family in FAMILIES for class_ in family.classes}


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
        return None, f"it is wrapped in {', '.join(wrapper.__name__ for wrapper in layers)}"
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
