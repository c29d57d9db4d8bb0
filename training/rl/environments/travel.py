"""Environment state travels: an outcome ends with it, and the slot's next call begins with it.

Only so can 256-step calls see step 257, and only so do the weights not depend on which worker answered. What is saved
is what the next step reads: physics, random generator and wrappers' counters. An environment that cannot be saved
gives None and starts at a reset in each call; the job says so.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, MountainCarEnv, PendulumEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from training.engine.codec import Document, decode, encode
from training.rl.environments.atari import AtariEnvironment

AnyEnvironment = gymnasium.Env[Any, Any]
_CLASSIC = (AcrobotEnv, CartPoleEnv, MountainCarEnv, PendulumEnv, Continuous_MountainCarEnv)


def save(environment: AnyEnvironment) -> bytes | None:
    """The state of `environment` in mid-episode, or None if we do not know how to save this kind."""
    document: Document = {}
    if not _save_wrappers(environment, document):
        return None
    base: Any = environment.unwrapped
    if isinstance(base, AtariEnvironment):
        document.update(base.save())
        document["rng"] = _generator_state(base.np_random)
        return encode(document, compress=True)
    if callable(getattr(base, "save_state", None)) and callable(getattr(base, "load_state", None)):
        # A user's own environment that knows how to travel (docs/environments.md).
        document["own"] = base.save_state()
        document["rng"] = _generator_state(base.np_random)
        return encode(document)
    # A subclass from elsewhere may hold more state than we know of, so only Gymnasium's own classes are trusted.
    if not type(base).__module__.startswith("gymnasium.envs."):
        return None
    if isinstance(base, _CLASSIC):
        # With its own dtype and type: what is computed from it next is not the same in float32 and float64.
        document["state"] = np.asarray(base.state)
        document["state_is_tuple"] = isinstance(base.state, tuple)
        document["beyond"] = getattr(base, "steps_beyond_terminated", None)
    elif _is_mujoco(base):
        _save_mujoco(base, document)
    else:
        return None
    document["rng"] = _generator_state(base.np_random)
    return encode(document)


def restore(environment: AnyEnvironment, data: bytes) -> None:
    """Put `environment` into a saved state, so that it goes on bit for bit as the saved one would have."""
    document = decode(data)
    _restore_wrappers(environment, document)
    base: Any = environment.unwrapped
    if isinstance(base, AtariEnvironment):
        base.restore(document)
    elif "own" in document:
        base.load_state(document["own"])
    elif isinstance(base, _CLASSIC):
        state = document["state"].copy()
        base.state = tuple(state.tolist()) if document["state_is_tuple"] else state
        if hasattr(base, "steps_beyond_terminated"):
            base.steps_beyond_terminated = document["beyond"]
    else:
        _restore_mujoco(base, document)
    base.np_random = _generator(document["rng"])


def _save_wrappers(environment: AnyEnvironment, document: Document) -> bool:
    layer = environment
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, TimeLimit):
            document["elapsed_steps"] = layer._elapsed_steps
        elif not isinstance(layer, OrderEnforcing):
            return False
        layer = layer.env
    return True


def _restore_wrappers(environment: AnyEnvironment, document: Document) -> None:
    layer = environment
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, TimeLimit):
            layer._elapsed_steps = document["elapsed_steps"]
        elif isinstance(layer, OrderEnforcing):
            layer._has_reset = True
        layer = layer.env


def _is_mujoco(base: Any) -> bool:
    from gymnasium.envs.mujoco.mujoco_env import MujocoEnv

    return isinstance(base, MujocoEnv)


def _save_mujoco(base: Any, document: Document) -> None:
    import mujoco

    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(base.model, kind))
    mujoco.mj_getState(base.model, base.data, state, kind)
    document["physics"] = state
    # Some rewards (Ant, Humanoid) read body positions as the last step left them, one substep behind the state.
    document["body_positions"] = base.data.xpos.copy()
    document["body_centres"] = base.data.xipos.copy()


def _restore_mujoco(base: Any, document: Document) -> None:
    import mujoco

    mujoco.mj_setState(base.model, base.data, document["physics"], mujoco.mjtState.mjSTATE_INTEGRATION)
    base.data.xpos[:] = document["body_positions"]
    base.data.xipos[:] = document["body_centres"]


def _generator_state(generator: np.random.Generator) -> list[Any]:
    """PCG64's state; its 128-bit numbers as bytes, which msgpack can hold."""
    state: Any = generator.bit_generator.state
    return [
        state["state"]["state"].to_bytes(16, "little"),
        state["state"]["inc"].to_bytes(16, "little"),
        int(state["has_uint32"]),
        int(state["uinteger"]),
    ]


def _generator(saved: list[Any]) -> np.random.Generator:
    generator = np.random.Generator(np.random.PCG64(0))
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int.from_bytes(saved[0], "little"), "inc": int.from_bytes(saved[1], "little")},
        "has_uint32": saved[2],
        "uinteger": saved[3],
    }
    return generator
