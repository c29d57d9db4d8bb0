"""The limit: the environment's bare loop with random actions on two cores, then the bare update.

Nothing of the engine is in the loop. The update is `learn` itself on sampled data, without decoding and encoding, on as
many cores as the learner takes: all for pictures, else one.
"""

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.peers.calls import Part
from benchmarks.peers.cases import CASES, ENVIRONMENTS

_CORES = 2
_LOOP_S = 4.0
_UPDATES_S = 4.0


def main(settings: dict[str, Any]) -> dict[str, Any]:
    if "loop_s" in settings:
        return {"steps_per_s": _loop(settings["case"], settings["loop_s"])}
    sampled = _on_all_cores(settings["case"])
    learn_s, minibatches = _learn_s(settings)
    steps = CASES[settings["case"]].steps_a_round
    return {
        "steps_per_s": steps / (steps / sampled + learn_s),
        "sampled_steps_per_s": sampled,
        "learn_s": learn_s,
        "minibatches": minibatches,
    }


def _on_all_cores(name: str) -> float:
    """Steps a second of all loops together, begun at the same moment."""
    command = [sys.executable, "-m", "benchmarks.peers.bare", json.dumps({"case": name, "loop_s": _LOOP_S})]
    loops = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(_CORES)
    ]
    for loop in loops:
        assert loop.stdout is not None
        loop.stdout.readline()
    for loop in loops:
        assert loop.stdin is not None
        loop.stdin.write("\n")
        loop.stdin.flush()
    return sum(json.loads(loop.communicate()[0].splitlines()[-1])["steps_per_s"] for loop in loops)


def _loop(name: str, loop_s: float) -> float:
    environment = _environment(name)
    environment.reset(seed=0)
    environment.action_space.seed(0)
    actions = [environment.action_space.sample() for _ in range(4096)]
    print("ready", flush=True)
    sys.stdin.readline()
    began_s = time.perf_counter()
    steps = 0
    while time.perf_counter() - began_s < loop_s:
        for _ in range(16):
            _, _, over, cut_off, _ = environment.step(actions[steps % len(actions)])
            steps += 1
            if over or cut_off:
                environment.reset()
    return steps / (time.perf_counter() - began_s)


def _environment(name: str) -> Any:
    """Gymnasium's own, as everyone gets it; for pictures ours, as its preprocessing belongs to the environment."""
    import gymnasium

    from training.rl.environments.making import make
    from training.rl.environments.model import EnvironmentSpec

    case = CASES[name]
    if case.pictures:
        return make(EnvironmentSpec(id=case.environment))
    return gymnasium.make(case.environment, disable_env_checker=True)


def _learn_s(settings: dict[str, Any]) -> tuple[float, int]:
    """Median time of `learn` on a round of sampled data."""
    from training.engine.torch_loading import import_torch
    from training.functions.body import WarmCache
    from training.functions.run import execute
    from training.rl.batch import Batch

    part = Part(settings)
    payload = execute(part.rollout(0, 1, ENVIRONMENTS, None), part.weights, WarmCache()).payload
    batch = Batch.of([payload], range(1), part.state.spaces)
    training = part.spec.training
    import_torch()
    took_s: list[float] = []
    minibatches = 0
    end_s = time.perf_counter() + _UPDATES_S
    while len(took_s) < 2 or time.perf_counter() < end_s:
        began_s = time.perf_counter()
        minibatches = training.algorithm.learn(part.state, batch, training.network, 0.0, 1).minibatches
        took_s.append(time.perf_counter() - began_s)
    return float(np.median(took_s[1:])), minibatches


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
