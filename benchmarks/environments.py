"""Environments against their physics: ours, Gymnasium's loop and its vector environments, EnvPool, and `mj_step` alone.

All of a task take the same actions from the same seeds in turns, so they pass through the same states and the same
resets; only EnvPool draws its own. Raw physics is a loop of `mj_step` over prepared actions, with `mj_resetData`,
a prepared pose and `mj_forward` where an episode begins. Processor time on one core: like actors, all compute in one
thread. Only the comparison of threads is in time on the wall.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.peers import PEERS_PYTHON, ROOT
from rig.figures import Figure
from training.functions.rollout import as_stored
from training.rl.environments.copies import GymnasiumCopies
from training.rl.environments.making import make_copies
from training.rl.environments.model import EnvironmentSpec

MUJOCO = tuple(
    f"{name}-v5"
    for name in (
        "Ant",
        "HalfCheetah",
        "Hopper",
        "Humanoid",
        "HumanoidStandup",
        "InvertedDoublePendulum",
        "InvertedPendulum",
        "Pusher",
        "Reacher",
        "Swimmer",
        "Walker2d",
    )
)
CLASSIC = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")
GAMES = ("SpaceInvadersNoFrameskip-v4", "ALE/Qbert-v5", "ALE/Gravitar-v5")
_COPIES = 4
# Many short turns: what others do to this machine in the meantime falls on all alike.
_TURNS = 31
_TURN_S = 0.06
_PILOT_STEPS = 50


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """Everything; `quick` takes a few turns."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        turns = 5 if quick else _TURNS
        yield from one_core(turns)
        yield from threads(turns)
        yield from games(turns)


def one_core(turns: int) -> Iterator[Figure]:
    if not _has("envpool"):
        yield Figure("EnvPool takes no part: .venv-bench/bin/pip install envpool==1.2.5 (740 MB)", 0.0, "")
    for copies in (_COPIES, 1):
        words = f"{copies} copies" if copies > 1 else "1 copy"
        shares = []
        for task in (*MUJOCO, *CLASSIC):
            contestants, steps = _contestants(task, copies)
            took_s = _in_turns(contestants, turns)
            yield Figure(
                f"{task}, {words}: over Gymnasium's loop",
                _ratio(took_s, "gymnasium", "ours"),
                "×",
                at_least=3.0 if task in CLASSIC else None,
                data=_data(took_s, steps * copies),
            )
            if "raw" in took_s:
                shares.append(_ratio(took_s, "raw", "ours"))
                yield Figure(f"{task}, {words}: share of raw physics", shares[-1], "", at_least=0.75)
            if "envpool" in took_s:
                over = _ratio(took_s, "envpool", "ours")
                yield Figure(f"{task}, {words}: over EnvPool", over, "×", at_least=1.0)
        yield Figure(
            f"MuJoCo, {words}: share of raw physics, geometric mean",
            statistics.geometric_mean(shares),
            "",
            at_least=0.85,
        )


def threads(turns: int) -> Iterator[Figure]:
    for task in ("Humanoid-v5", "Ant-v5"):
        actions = _actions(task, _COPIES, 200)
        took_s = _in_turns({str(cores): _Ours(task, _COPIES, actions, cores) for cores in (1, 2)}, turns)
        yield Figure(
            f"{task}, {_COPIES} copies: two threads over one",
            _ratio(took_s, "1", "2"),
            "×",
            at_least=1.7,
            data=_data(took_s, len(actions) * _COPIES),
        )


def games(turns: int) -> Iterator[Figure]:
    if not _has("cv2", "ale_py"):
        return
    for game in GAMES:
        actions = _actions(game, 1, 100)
        peer = _Peer("atari_steps", game=game, steps=len(actions))
        took_s = _in_turns({"ours": _Ours(game, 1, actions), "gymnasium": peer}, turns)
        over = _ratio(took_s, "gymnasium", "ours")
        data = _data(took_s, len(actions))
        yield Figure(f"{game}: over Gymnasium's", over, "×", at_least=1.2, data=data)


def _contestants(task: str, count: int) -> tuple[dict[str, Callable[[], float]], int]:
    """Return what takes turns at a task, and the steps of a turn."""
    actions = _actions(task, count, _PILOT_STEPS)
    pilot_s = _Ours(task, count, actions)() / len(actions)
    actions = _actions(task, count, max(_PILOT_STEPS, int(_TURN_S / pilot_s)))
    contestants: dict[str, Callable[[], float]] = {
        "ours": _Ours(task, count, actions),
        "gymnasium": _Gymnasium(task, count, actions),
        "vector": _Vector(task, count, actions),
    }
    if task in MUJOCO:
        contestants["raw"] = _Raw(task, count, actions)
    if _has("envpool"):
        contestants["envpool"] = _Peer("envpool_steps", task=task, count=count, steps=len(actions))
    return contestants, len(actions)


def _in_turns(contestants: dict[str, Callable[[], float]], turns: int) -> dict[str, list[float]]:
    """Return the seconds of each contestant's turns. The first turn fills caches and does not count."""
    took_s: dict[str, list[float]] = {who: [] for who in contestants}
    for _ in range(turns + 1):
        for who, play in contestants.items():
            took_s[who].append(play())
    for play in contestants.values():
        if isinstance(play, _Peer):
            play.close()
    return {who: times[1:] for who, times in took_s.items() if min(times) > 0}


def _ratio(took_s: dict[str, list[float]], slower: str, faster: str) -> float:
    """Return the median over turns: what others do to this machine meanwhile falls on both sides of a turn."""
    return statistics.median(one / other for one, other in zip(took_s[slower], took_s[faster], strict=True))


def _data(took_s: dict[str, list[float]], steps: int) -> dict[str, Any]:
    speeds = {who: steps / statistics.median(times) for who, times in took_s.items()}
    return {"steps_per_s": speeds, "turns": len(next(iter(took_s.values()))), "load": os.getloadavg()[0]}


def _actions(task: str, count: int, steps: int) -> np.ndarray:
    space = make_copies(EnvironmentSpec(id=task), 1).action_space
    rng = np.random.default_rng(0)
    if space.shape == ():
        return rng.integers(0, space.n, (steps, count))
    return rng.uniform(space.low, space.high, (steps, count, *space.shape)).astype(np.float32)


class _Ours:
    """The loop of a fragment without its policy. With several cores time is that on the wall."""

    def __init__(self, task: str, count: int, actions: np.ndarray, cores: int | None = None) -> None:
        self._now_s = time.process_time if cores is None else time.perf_counter
        self._copies = make_copies(EnvironmentSpec(id=task), count, cores or 1)
        self._actions = actions.tolist() if actions.ndim == 2 else list(actions)
        first = as_stored(self._copies.begin(range(count)))
        self._seen = np.empty((len(actions), *first.shape), dtype=first.dtype)

    def __call__(self) -> float:
        copies = self._copies
        copies.begin(range(len(copies)))
        began_s = self._now_s()
        for action, seen in zip(self._actions, self._seen, strict=True):
            for end in copies.step(action, seen):
                if end.over:
                    copies.restart(end.n, seen[end.n])
        copies.rewards()
        return self._now_s() - began_s


class _Gymnasium:
    """What everyone writes: step, and reset where an episode ended."""

    def __init__(self, task: str, count: int, actions: np.ndarray) -> None:
        self._made = _made(task, count)
        self._actions = actions.tolist() if actions.ndim == 2 else [list(row) for row in actions]

    def __call__(self) -> float:
        for n, environment in enumerate(self._made):
            environment.reset(seed=n)
        began_s = time.process_time()
        for row in self._actions:
            for environment, action in zip(self._made, row, strict=True):
                _, _, over, cut_off, _ = environment.step(action)
                if over or cut_off:
                    environment.reset()
        return time.process_time() - began_s


class _Vector:
    """Gymnasium's vector environment in this process."""

    def __init__(self, task: str, count: int, actions: np.ndarray) -> None:
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        self._vector = SyncVectorEnv(
            [lambda: _made(task, 1)[0]] * count, autoreset_mode=AutoresetMode.SAME_STEP
        )
        self._actions = list(actions)

    def __call__(self) -> float:
        self._vector.reset(seed=0)
        began_s = time.process_time()
        for action in self._actions:
            self._vector.step(action)
        return time.process_time() - began_s


class _Raw:
    """`mj_step` alone, over the same actions and resets."""

    def __init__(self, task: str, count: int, actions: np.ndarray) -> None:
        made = _made(task, count)
        copies = GymnasiumCopies(made, task)
        seen = as_stored(copies.begin(range(count)))
        model = made[0].unwrapped.model
        self._model, self._frames = model, made[0].unwrapped.frame_skip
        self._steps: list[tuple[Any, Any, Any, Any]] = []
        for row in actions:
            over = {end.n for end in copies.step(row, seen)}
            for n, environment in enumerate(made):
                data = environment.unwrapped.data
                pose = None
                if n in over:
                    copies.restart(n, seen[n])
                    pose = data.qpos.copy(), data.qvel.copy()
                self._steps.append((data, data.ctrl, row[n].astype(np.float64), pose))
        copies.begin(range(count))
        self._begin = [
            (
                environment.unwrapped.data,
                environment.unwrapped.data.qpos.copy(),
                environment.unwrapped.data.qvel.copy(),
            )
            for environment in made
        ]

    def __call__(self) -> float:
        from mujoco import mj_forward, mj_resetData, mj_step

        model, frames = self._model, self._frames
        for data, qpos, qvel in self._begin:
            mj_resetData(model, data)
            data.qpos[:], data.qvel[:] = qpos, qvel
            mj_forward(model, data)
        began_s = time.process_time()
        for data, ctrl, action, pose in self._steps:
            ctrl[:] = action
            mj_step(model, data, frames)
            if pose is not None:
                mj_resetData(model, data)
                data.qpos[:], data.qvel[:] = pose
                mj_forward(model, data)
        return time.process_time() - began_s


def _made(task: str, count: int) -> list[Any]:
    import gymnasium

    return [gymnasium.make(task, disable_env_checker=True) for _ in range(count)]


def _has(*modules: str) -> bool:
    """Return whether these are in `.venv-bench`; what needs them is left out otherwise."""
    if not PEERS_PYTHON.exists():
        return False
    wanted = f"import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, {modules})))"
    return subprocess.run([str(PEERS_PYTHON), "-c", wanted], check=False).returncode == 0


class _Peer:
    """A contestant in a process of its own in `.venv-bench`, which takes a turn for each line."""

    def __init__(self, module: str, **arguments: Any) -> None:
        command = [
            str(PEERS_PYTHON),
            "-W",
            "ignore",
            "-m",
            f"benchmarks.peers.{module}",
            json.dumps(arguments),
        ]
        one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **one_thread},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._input, self._output = self._process.stdin, self._process.stdout

    def __call__(self) -> float:
        """Return the turn's seconds of the processor; 0 if the contestant does not know the task."""
        assert self._input is not None
        assert self._output is not None
        self._input.write("go\n")
        self._input.flush()
        return float(self._output.readline())

    def close(self) -> None:
        assert self._input is not None
        self._input.close()
        self._process.wait()


if __name__ == "__main__":
    for figure in measure(quick="--quick" in sys.argv):
        print(json.dumps(figure.as_dict()), flush=True)
