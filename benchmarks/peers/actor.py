"""What an actor's body takes beside what it must: the same steps by a bare loop, and the same inferences, alone.

Both sides see the same states, actions and resets: the bare loop begins as the body did and repeats its actions.
All of it computes and nothing waits, so processor time is what counts, and others on the machine do not.
"""

import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.peers.calls import Part
from training.codec import decode
from training.environments.making import make
from training.functions.body import WarmCache
from training.functions.run import execute
from training.inference import NumpyPolicy
from training.seeds import derive

_FRAGMENTS = 12


def main(told: dict[str, Any]) -> dict[str, Any]:
    part, copies = Part(told), told["copies"]
    warm_cache, policy, env_state = WarmCache(), NumpyPolicy(part.weights), None
    made, others = ([make(part.spec.training.environment) for _ in range(copies)] for _ in range(2))
    body_s, loop_s, inference_s, both_s = [], [], [], []
    for serial in range(1, _FRAGMENTS + 1):
        call = part.rollout(0, serial, copies, env_state)
        if serial == 1:
            for n in range(copies):
                for environment in (made[n], others[n]):
                    environment.reset(seed=derive(call.seed, "reset", n) % 2**32)
        began_s = time.process_time()
        result = execute(call, part.weights, warm_cache)
        body_s.append(time.process_time() - began_s)
        env_state = result.env_state
        document = decode(result.payload)
        loop_s.append(_loop_s(made, document["actions"], policy.discrete))
        inference_s.append(_inference_s(policy, call.seed, document["observations"]))
        both_s.append(
            _loop_s(others, document["actions"], policy.discrete, (policy, document["observations"]))
        )
    body, loop, inference, both = (
        float(np.median(times[2:])) for times in (body_s, loop_s, inference_s, both_s)
    )
    steps = part.case.steps * copies
    return {
        "efficiency": (loop + inference) / body,
        # One loop that does both in turn: what is lost to caches in any program that does so is not ours to save.
        "efficiency_in_turn": both / body,
        "body_steps_per_s": steps / body,
        "loop_steps_per_s": steps / loop,
        "inference_share": inference / body,
    }


def _loop_s(
    made: list[Any],
    actions: np.ndarray,
    discrete: bool,
    inference: tuple[NumpyPolicy, np.ndarray] | None = None,
) -> float:
    """The steps alone, or with an inference before each of them."""
    if not discrete:
        space = made[0].action_space
        actions = np.clip(actions, space.low, space.high)
    rows = [[int(action) if discrete else action for action in row] for row in actions]
    policy, observations = inference or (None, None)
    began_s = time.process_time()
    noise = None
    if policy is not None:
        noise = policy.draw_noise(np.random.Generator(np.random.PCG64(0)), *actions.shape[:2])
    for t, row in enumerate(rows):
        if policy is not None:
            policy.sample(observations[t], noise[t])
        for environment, action in zip(made, row, strict=True):
            _, _, over, cut_off, _ = environment.step(action)
            if over or cut_off:
                environment.reset()
    return time.process_time() - began_s


def _inference_s(policy: NumpyPolicy, seed: int, observations: np.ndarray) -> float:
    began_s = time.process_time()
    noise = policy.draw_noise(np.random.Generator(np.random.PCG64(seed)), *observations.shape[:2])
    for t in range(len(observations)):
        policy.sample(observations[t], noise[t])
    return time.process_time() - began_s


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
