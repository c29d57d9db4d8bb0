"""What is compared when environments are stepped natively and by Gymnasium: tasks, their arguments, and plays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from training.functions.rollout import as_stored
from training.rl.environments.copies import Copies, GymnasiumCopies
from training.rl.environments.native.copies import NativeCopies
from training.rl.environments.native.families import recognise

_WEIGHT = st.floats(-3, 3) | st.integers(0, 3)
_NOISE = st.floats(0, 0.3)
_SEEN = st.booleans()
_FRAMES = st.integers(1, 4)
_LOW, _HIGH = st.floats(-2, 0.6), st.floats(0.7, 3) | st.just(float("inf"))
_RANGE = st.tuples(_LOW, _HIGH)
_COST_RANGE = st.tuples(st.floats(-1, 0.1) | st.just(-np.inf), st.floats(0.2, 10))

_FORWARD = {"forward_reward_weight": _WEIGHT, "ctrl_cost_weight": _WEIGHT, "reset_noise_scale": _NOISE}
_HIDDEN = {"exclude_current_positions_from_observation": _SEEN}
_RUNNING = {**_FORWARD, **_HIDDEN}
_HEALTH = {"healthy_reward": _WEIGHT, "terminate_when_unhealthy": st.booleans(), "healthy_z_range": _RANGE}
_BALANCING = {**_RUNNING, **_HEALTH, "healthy_angle_range": _RANGE}
_STATE = {"healthy_state_range": st.tuples(st.floats(-20, 1), st.floats(2, 20))}
_BODY = {f"include_{name}_in_observation": _SEEN for name in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")}
_ANT = {
    **{name: given for name, given in _RUNNING.items() if name != "forward_reward_weight"},
    **_HEALTH,
    "contact_cost_weight": _WEIGHT,
    "contact_force_range": st.tuples(st.floats(-2, 0), st.floats(0, 2)),
}
_CAR = {"goal_velocity": st.sampled_from([0, 0.01, 0.07, 0.02])}

# The arguments of each task that change a number; those of the newer version all take the frame skip too.
ARGUMENTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "Ant-v4": {**_ANT, "use_contact_forces": st.booleans()},
    "Ant-v5": {
        **_ANT,
        "forward_reward_weight": _WEIGHT,
        "main_body": st.sampled_from([1, 2, "torso", "aux_1"]),
        "include_cfrc_ext_in_observation": _SEEN,
    },
    "HalfCheetah-v4": _RUNNING,
    "HalfCheetah-v5": _RUNNING,
    "Hopper-v4": {**_BALANCING, **_STATE},
    "Hopper-v5": {**_BALANCING, **_STATE},
    "Humanoid-v4": {**_RUNNING, **_HEALTH},
    "Humanoid-v5": {
        **_RUNNING,
        **_HEALTH,
        **_BODY,
        "contact_cost_weight": _WEIGHT,
        "contact_cost_range": _COST_RANGE,
    },
    "HumanoidStandup-v4": {},
    "HumanoidStandup-v5": {
        **_HIDDEN,
        **_BODY,
        "uph_cost_weight": _WEIGHT,
        "ctrl_cost_weight": _WEIGHT,
        "impact_cost_weight": _WEIGHT,
        "impact_cost_range": _COST_RANGE,
        "reset_noise_scale": _NOISE,
    },
    "InvertedDoublePendulum-v4": {},
    "InvertedDoublePendulum-v5": {"healthy_reward": _WEIGHT, "reset_noise_scale": _NOISE},
    "InvertedPendulum-v4": {},
    "InvertedPendulum-v5": {"reset_noise_scale": _NOISE},
    "Pusher-v5": {f"reward_{part}_weight": _WEIGHT for part in ("near", "dist", "control")},
    "Reacher-v4": {},
    "Reacher-v5": {f"reward_{part}_weight": _WEIGHT for part in ("dist", "control")},
    "Swimmer-v4": _RUNNING,
    "Swimmer-v5": _RUNNING,
    "Walker2d-v4": _BALANCING,
    "Walker2d-v5": _BALANCING,
    "CartPole-v0": {"sutton_barto_reward": st.booleans()},
    "CartPole-v1": {"sutton_barto_reward": st.booleans()},
    "Acrobot-v1": {},
    "MountainCar-v0": _CAR,
    "MountainCarContinuous-v0": _CAR,
    "Pendulum-v1": {"g": st.floats(0, 20) | st.integers(1, 20)},
}
TASKS = list(ARGUMENTS)


@st.composite
def arguments_of(draw: Callable[[Any], Any], task: str) -> dict[str, Any]:
    """Some of a task's arguments, and sometimes a time limit."""
    known = {**ARGUMENTS[task], "max_episode_steps": st.integers(1, 30)}
    if task.endswith("-v5"):
        known["frame_skip"] = _FRAMES
    names = draw(st.lists(st.sampled_from(sorted(known)), unique=True))
    return {name: draw(known[name]) for name in names}


def native(task: str, count: int = 2, **arguments: Any) -> NativeCopies:
    made = _made(task, count, arguments)
    family, reason = recognise(made[0])
    assert family is not None, reason
    return NativeCopies(made, family)


def gymnasiums(task: str, count: int = 2, **arguments: Any) -> GymnasiumCopies:
    return GymnasiumCopies(_made(task, count, arguments), task)


def _made(task: str, count: int, arguments: dict[str, Any]) -> list[Any]:
    return [gymnasium.make(task, disable_env_checker=True, **arguments) for _ in range(count)]


def random_actions(copies: Copies, steps: int, seed: int) -> npt.NDArray[Any]:
    """Actions [step, copy], gentle for the first of them."""
    rng, space = np.random.default_rng(seed), copies.action_space
    if space.shape == ():
        return rng.integers(0, space.n, (steps, len(copies)))
    strength = np.where(np.arange(steps) < steps / 2, 0.3, 1.0).reshape(-1, 1, *[1] * len(space.shape))
    drawn = rng.uniform(space.low, space.high, (steps, len(copies), *space.shape))
    return (strength * drawn).astype(np.float32)


def begin(copies: Copies, seed: int) -> npt.NDArray[Any]:
    return as_stored(copies.begin([seed + n for n in range(len(copies))]))


def played(copies: Copies, actions: npt.NDArray[Any], seen: npt.NDArray[Any]) -> list[bytes]:
    """All that can be known of playing `actions`, over ends of episodes too; `seen` ends as what is seen last."""
    return [*_steps(copies, actions, seen), copies.rewards().tobytes()]


def _steps(copies: Copies, actions: npt.NDArray[Any], seen: npt.NDArray[Any]) -> Iterator[bytes]:
    for action in actions:
        for end in copies.step(action.tolist() if action.ndim == 1 else action, seen):
            yield repr(end).encode()
            yield seen[end.n].tobytes()
            if end.over:
                copies.restart(end.n, seen[end.n])
        yield seen.tobytes()
