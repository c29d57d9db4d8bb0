"""An actor's call divided into the bare steps, the policy, and the rest of the body.

The bare loop sees the same states, actions and resets: it begins in the body's state and repeats its actions.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cloud.timing.calibration.samples import Slot
from training.engine.codec import Document, decode
from training.engine.seeds import derive
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl.environments.copies import Copies
from training.rl.environments.making import make_copies
from training.rl.environments.model import EnvironmentSpec
from training.rl.networks.inference import NumpyPolicy


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the microseconds of each part, for each repeat and length of a call. `arguments`: environment, lengths,
    repeats.
    """
    slot, warm_cache = Slot(EnvironmentSpec(id=arguments["environment"])), WarmCache()
    bare = make_copies(slot.environment, 1)
    first, _ = slot.call(1)
    slot.serial = 0
    bare.begin([derive(first.seed, "reset", 0) % 2**32])
    _turn(slot, warm_cache, bare, min(arguments["lengths"]))
    turns = [
        [_turn(slot, warm_cache, bare, length) for length in arguments["lengths"]]
        for _ in range(arguments["repeats"])
    ]
    return {"turns": turns, "macs": slot.network.policy_macs(slot.spaces), "pictures": slot.spaces.pictures}


def _turn(slot: Slot, warm_cache: WarmCache, bare: Copies, steps: int) -> dict[str, float]:
    call, weights = slot.call(steps)
    began_s = time.process_time()
    result = execute(call, weights, warm_cache)
    body_s = time.process_time() - began_s
    slot.slot_state = result.slot_state
    document = decode(result.payload)
    policy = NumpyPolicy(weights)
    stepping_s, resetting_s = _bare_s(bare, document, policy.discrete)
    inference_s = _inference_s(policy, document, call.seed)
    return {
        "steps": steps,
        "bytes_out": len(result.payload) + len(result.slot_state or b""),
        "body_us": body_s * 1e6,
        "stepping_us": stepping_s * 1e6,
        "resetting_us": resetting_s * 1e6,
        "inference_us": inference_s * 1e6,
    }


def _bare_s(bare: Copies, document: Document, discrete: bool) -> tuple[float, float]:
    """Return the seconds of the same steps in the environment alone, and of the resets between them."""
    actions = document["actions"]
    if not discrete:
        actions = np.clip(actions, bare.action_space.low, bare.action_space.high)
    taken = actions.tolist() if actions.ndim == 2 else list(actions)
    seen = np.empty_like(document["observations"][0])
    resetting_s = 0.0
    began_s = time.process_time()
    for action in taken:
        for end in bare.step(action, seen):
            if end.over:
                reset_s = time.process_time()
                bare.restart(end.n, seen[end.n])
                resetting_s += time.process_time() - reset_s
    bare.rewards()
    return time.process_time() - began_s - resetting_s, resetting_s


def _inference_s(policy: NumpyPolicy, document: Document, seed: int) -> float:
    observations = document["observations"]
    began_s = time.process_time()
    noise = policy.draw_noise(np.random.Generator(np.random.PCG64(seed)), len(observations), 1)
    acted = [policy.act(observations[t], noise[t]) for t in range(len(observations))]
    actions, outputs = (np.stack(arrays) for arrays in zip(*acted, strict=True))
    policy.log_probs(outputs, noise, actions)
    return time.process_time() - began_s
