"""An actor's work: sample a fragment with one version of the policy, from the slot's last state on.

It needs numpy only. Several environment copies step together, so that one small matrix product serves all of them.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from training.calls.rollout import RolloutRequest
from training.engine.codec import decode, encode
from training.engine.messages import Call
from training.engine.reports import Usage
from training.engine.seeds import derive
from training.functions.body import Result, WarmCache
from training.functions.fragment import SlotEnvironments, sample
from training.rl.environments.copies import Copies
from training.rl.environments.making import make_copies
from training.rl.networks.inference import NumpyPolicy

# Each worker keeps this many slots' environments warm; restoring others takes well under a millisecond.
_WARM_AT_MOST = 32


def rollout(call: Call, request: RolloutRequest, weights: bytes, warm_cache: WarmCache) -> Result:
    """Take `steps` steps in each copy. Return a trajectory, and the state with which the slot's next call begins."""
    policy = policy_of(call, weights, warm_cache)
    slot = _environments(call, request, warm_cache)
    noise = policy.draw_noise(
        np.random.Generator(np.random.PCG64(call.seed)), request.steps, request.environments
    )
    sampled = sample(slot, policy, noise, request)
    document = sampled.document
    state = slot.encode_states()
    # Environments whose state cannot be saved have no name: they may only be reset, as in any other process.
    name = "" if state is None else hashlib.sha256(state).hexdigest()
    warm_cache.slots[_kind(request)][name] = slot
    document["version"] = policy.version
    document["slot"] = request.slot
    steps = request.steps * request.environments
    usage = Usage(
        steps=steps,
        inferences=steps,
        trials=len(document["episode_returns"]),
        macs=policy.macs,
        pictures=policy.pictures,
        steps_s=sampled.environment_s,
        inference_s=sampled.inference_s,
    )
    return Result(encode(document), state, usage)


def policy_of(call: Call, weights: bytes, warm_cache: WarmCache) -> NumpyPolicy:
    """Return the policy in `weights`, kept from the last call of the same version."""
    key = call.weights.sha256 if call.weights is not None else hashlib.sha256(weights).hexdigest()
    if key not in warm_cache.policies:
        warm_cache.policies.clear()
        warm_cache.policies[key] = NumpyPolicy(weights)
    policy: NumpyPolicy = warm_cache.policies[key]
    return policy


def _environments(call: Call, request: RolloutRequest, warm_cache: WarmCache) -> SlotEnvironments:
    """Return the slot's copies in the state that the call brings: warm if this process has them, else restored.

    Copies are taken out of the cache and put back when the fragment is done, so a call that fails in the middle
    leaves none in an unknown state. Any slot may use them, so a few serve any number of slots.
    """
    wanted = "" if call.slot_state is None else hashlib.sha256(call.slot_state).hexdigest()
    kept = warm_cache.slots.setdefault(_kind(request), {})
    warm: SlotEnvironments | None = kept.pop(wanted, None)
    if warm is not None and wanted:
        return warm
    if warm is None and len(kept) >= _WARM_AT_MOST:
        warm = kept.pop(next(iter(kept)))
    copies = (
        warm.copies
        if warm is not None
        else make_copies(request.environment, request.environments, warm_cache.cores)
    )
    return _reset(copies, call) if call.slot_state is None else _restored(copies, call.slot_state)


def _kind(request: RolloutRequest) -> str:
    """Return the key of environments that can replace each other."""
    return f"{request.environment.model_dump_json()} × {request.environments}"


def _reset(copies: Copies, call: Call) -> SlotEnvironments:
    n = len(copies)
    seen = copies.begin([derive(call.seed, "reset", number) % 2**32 for number in range(n)])
    return SlotEnvironments(copies, as_stored(seen), np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n))


def as_stored(observations: Any) -> np.ndarray:
    """Return observations as they are stored and sent: pictures stay bytes, all else becomes float32."""
    array = np.asarray(observations)
    return array if array.dtype == np.uint8 else array.astype(np.float32)


def _restored(copies: Copies, state: bytes) -> SlotEnvironments:
    document = decode(state)
    if len(document["states"]) != len(copies):
        raise ValueError(
            f"the state holds {len(document['states'])} environments; the call asks for {len(copies)}"
        )
    copies.restore(document["states"])
    return SlotEnvironments(
        copies,
        document["observations"].copy(),
        document["episode_returns"].copy(),
        document["episode_lengths"].copy(),
        document["discounted_returns"].copy(),
    )
