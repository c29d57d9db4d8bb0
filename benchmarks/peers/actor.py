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
from training.engine.codec import Document, decode
from training.engine.seeds import derive
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl.environments.copies import Copies
from training.rl.environments.making import make_copies
from training.rl.networks.inference import NumpyPolicy

_FRAGMENTS = 12


def main(settings: dict[str, Any]) -> dict[str, Any]:
    part, copies = Part(settings), settings["copies"]
    warm_cache, policy, slot_state = WarmCache(), NumpyPolicy(part.weights), None
    made, others = (make_copies(part.spec.training.environment, copies) for _ in range(2))
    body_s, loop_s, inference_s, both_s = [], [], [], []
    for serial in range(1, _FRAGMENTS + 1):
        call = part.rollout(0, serial, copies, slot_state)
        if serial == 1:
            for bare in (made, others):
                bare.begin([derive(call.seed, "reset", n) % 2**32 for n in range(copies)])
        began_s = time.process_time()
        result = execute(call, part.weights, warm_cache)
        body_s.append(time.process_time() - began_s)
        slot_state = result.slot_state
        document = decode(result.payload)
        loop_s.append(_loop_s(made, document, policy, infers=False))
        inference_s.append(_inference_s(policy, call.seed, document["observations"]))
        both_s.append(_loop_s(others, document, policy, infers=True))
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


def _loop_s(made: Copies, document: Document, policy: NumpyPolicy, *, infers: bool) -> float:
    """The steps alone, or with an inference before each of them."""
    actions, observations = document["actions"], document["observations"]
    if not policy.discrete:
        actions = np.clip(actions, made.action_space.low, made.action_space.high)
    rows = actions.tolist() if actions.ndim == 2 else list(actions)
    seen = np.empty_like(observations)
    began_s = time.process_time()
    if infers:
        noise = policy.draw_noise(np.random.Generator(np.random.PCG64(0)), *actions.shape[:2])
    for t, row in enumerate(rows):
        if infers:
            policy.act(observations[t], noise[t])
        for end in made.step(row, seen[t]):
            if end.over:
                made.restart(end.n, seen[t, end.n])
    made.rewards()
    return time.process_time() - began_s


def _inference_s(policy: NumpyPolicy, seed: int, observations: np.ndarray) -> float:
    began_s = time.process_time()
    noise = policy.draw_noise(np.random.Generator(np.random.PCG64(seed)), *observations.shape[:2])
    acted = [policy.act(observations[t], noise[t]) for t in range(len(observations))]
    actions, outputs = (np.stack(one) for one in zip(*acted, strict=True))
    policy.log_probs(outputs, noise, actions)
    return time.process_time() - began_s


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
