"""The work of a network by hand: one multiplication a weight and place where it is used."""

import pytest

from tests.training.specs import tiny
from training.calls.evaluate import EvaluateRequest
from training.calls.rollout import RolloutRequest
from training.calls.update import UpdateRequest
from training.engine.messages import BlobRef, Call
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl.environments.making import spaces_of
from training.rl.learner import LearnerState
from training.rl.networks import CNN, MLP
from training.rl.networks.inference import NumpyPolicy
from training.rl.spaces import Spaces

CARTPOLE = Spaces((4,), action_counts=(2,))
HOPPER = Spaces((11,), action_low=(-1.0,) * 3, action_high=(1.0,) * 3)
ATARI = Spaces((4, 84, 84), action_counts=(6,))


@pytest.mark.parametrize(
    ("network", "spaces", "policy", "both"),
    [
        (MLP(hidden=(8,)), CARTPOLE, 4 * 8 + 8 * 2, 4 * 8 + 8 * 2 + 4 * 8 + 8 * 1),
        (MLP(hidden=(8,), shared=True), CARTPOLE, 4 * 8 + 8 * 2, 4 * 8 + 8 * 2 + 8 * 1),
        (MLP(), HOPPER, 704 + 4096 + 192, 704 + 4096 + 192 + 704 + 4096 + 64),
        # Means and deviations: twice the outputs.
        (MLP(log_std="state"), HOPPER, 704 + 4096 + 384, 704 + 4096 + 384 + 704 + 4096 + 64),
        # 84 → 20 → 9 → 7: 400·32·(4·64) + 81·64·(32·16) + 49·64·(64·9), then 3,136·512 and the heads.
        (
            CNN(),
            ATARI,
            3_276_800 + 2_654_208 + 1_806_336 + 1_605_632 + 3_072,
            3_276_800 + 2_654_208 + 1_806_336 + 1_605_632 + 3_072 + 512,
        ),
        # 84 → 21 → 11 → 1: 441·16·(4·64) + 121·32·(16·16) + 1·256·(32·121), no hidden layer, in both towers.
        (
            CNN(layers="papers", hidden=(), shared=False),
            ATARI,
            1_806_336 + 991_232 + 991_232 + 256 * 6,
            2 * (1_806_336 + 991_232 + 991_232) + 256 * 7,
        ),
    ],
)
def test_multiplications_of_a_network(network, spaces, policy, both):
    assert network.policy_macs(spaces) == policy
    assert network.learner_macs(spaces) == both


def test_bodies_tell_the_size_of_the_network_they_ran():
    spec = tiny()
    spaces = spaces_of(spec.environment)
    state = LearnerState.initial(spec.network, spaces, seed=1)
    weights = state.actor_weights(spec.network)
    assert NumpyPolicy(weights).macs == spec.network.policy_macs(spaces)
    request = RolloutRequest(environment=spec.environment, environments=1, steps=8, slot=0, discount=0.9)
    ref = BlobRef(version=0, sha256="0" * 64, byte_count=len(weights))
    shared = {"round_no": 1, "seed": 1, "deadline_s": 1.0, "memory_mb": 128, "weights": ref}
    sampled = execute(Call(id="r", request=request, where="actor", **shared), weights, WarmCache())
    judged = execute(
        Call(
            id="e",
            request=EvaluateRequest(environment=spec.environment, episode_seeds=(1,)),
            where="actor",
            **shared,
        ),
        weights,
        WarmCache(),
    )
    learned = execute(
        Call(
            id="u",
            request=UpdateRequest(algorithm=spec.algorithm, network=spec.network, progress=0.0),
            where="learner",
            inputs=(spec.algorithm.initial_state(spec.network, spaces, 1).encode(), sampled.payload),
            **(shared | {"weights": None}),
        ),
        None,
        WarmCache(),
    )
    assert sampled.usage.macs == judged.usage.macs == spec.network.policy_macs(spaces)
    assert learned.usage.macs == spec.network.learner_macs(spaces)
    assert not sampled.usage.pictures
