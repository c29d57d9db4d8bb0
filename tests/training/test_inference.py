"""The numpy policy is the torch policy; the learner recomputes what the actor said it sampled."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import updates_of
from tests.training.specs import tiny
from training.rl.batch import Batch
from training.rl.learner import LearnerState
from training.rl.networks import CNN, MLP
from training.rl.networks.distributions import Distribution
from training.rl.networks.inference import NumpyPolicy, normalise
from training.rl.networks.torch_network import TorchNetwork
from training.rl.normalisers import Moments
from training.rl.spaces import Spaces

VECTORS = {
    "discrete": Spaces((4,), (2,)),
    "several discrete": Spaces((5,), (3, 2, 4)),
    "continuous": Spaces((11,), (), (-1.0,) * 3, (1.0,) * 3),
}
MLPS = st.builds(
    MLP,
    hidden=st.sampled_from([(64, 64), (8,), (32, 16, 8)]),
    activation=st.sampled_from(["tanh", "relu"]),
    shared=st.booleans(),
    log_std=st.sampled_from(["free", "state"]),
    orthogonal=st.booleans(),
)


def state_of(network, spaces, seed):
    """A learner's state with weights and normaliser away from their beginnings."""
    rng = np.random.default_rng(seed)
    state = tiny().algorithm.initial_state(network, spaces, seed)
    for array in state.parameters.values():
        array += 0.1 * rng.standard_normal(array.shape).astype(np.float32)
    seen = rng.standard_normal((100, spaces.observation_size)) * 3 + 1
    return state.with_moments_of(seen.astype(np.float32), rng.standard_normal(10))


def assert_twins(network, spaces, observations, seed):
    """Outputs and log-probabilities of both within 1e-5, relative above 1."""
    state = state_of(network, spaces, seed)
    policy = NumpyPolicy(state.actor_weights(network))
    noise = policy.draw_noise(np.random.default_rng(seed), 1, len(observations))[0]
    actions, log_probs = policy.sample(observations, noise)
    parameters = {name: torch.tensor(array) for name, array in state.parameters.items()}
    seen = torch.from_numpy(normalise(observations, *state.normaliser()))
    outputs = TorchNetwork(network, spaces).policy(parameters, seen)
    expected = Distribution.of(outputs, parameters, spaces).log_prob(torch.from_numpy(actions))
    found = policy.outputs(observations)
    assert np.max(np.abs(found - outputs.numpy()) / np.maximum(1.0, np.abs(found))) <= 1e-5
    assert np.max(np.abs(log_probs - expected.numpy()) / np.maximum(1.0, np.abs(log_probs))) <= 1e-5


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), MLPS, st.sampled_from(list(VECTORS)))
def test_numpy_policy_equals_torch_policy(seed, network, kind):
    spaces = VECTORS[kind]
    rng = np.random.default_rng(seed)
    assert_twins(
        network, spaces, (rng.standard_normal((32, spaces.observation_size)) * 4).astype(np.float32), seed
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), MLPS, st.sampled_from(list(VECTORS)), st.integers(1, 5))
def test_log_probabilities_of_a_fragment_are_those_of_its_steps(seed, network, kind, copies):
    """Bit for bit, so that they do not depend on how many steps a fragment has."""
    spaces, rng = VECTORS[kind], np.random.default_rng(seed)
    policy = NumpyPolicy(state_of(network, spaces, seed).actor_weights(network))
    observations = rng.standard_normal((40, copies, spaces.observation_size)).astype(np.float32)
    noise = policy.draw_noise(rng, 40, copies)
    actions, outputs = map(np.stack, zip(*map(policy.act, observations, noise), strict=True))
    alone = [policy.sample(*one)[1] for one in zip(observations, noise, strict=True)]
    np.testing.assert_array_equal(policy.log_probs(outputs, noise, actions), np.stack(alone))


@pytest.mark.parametrize("layers", ["nature", "papers"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("frames", [3, 4])
def test_numpy_convolutions_equal_torchs(layers, shared, frames):
    network = CNN(layers=layers, shared=shared, hidden=(64,))
    pictures = np.random.default_rng(0).integers(0, 256, (3, frames, 84, 84)).astype(np.uint8)
    assert_twins(network, Spaces((frames, 84, 84), (6,)), pictures, 7)


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
def test_the_learner_recomputes_the_actors_log_probabilities(environment):
    """Of every round's real trajectories, with the version and normaliser of that round: catches most wrong wiring."""
    checked = 0
    for request, inputs in updates_of(tiny(environment), InlinePlatform()):
        state = LearnerState.decode(inputs[0])
        batch = Batch.of(inputs[1:], range(state.version, state.version + 1), state.spaces)
        parameters = {name: torch.tensor(array) for name, array in state.parameters.items()}
        seen = torch.from_numpy(normalise(batch.observations, *state.normaliser()).reshape(batch.size, -1))
        outputs = TorchNetwork(request.network, state.spaces).policy(parameters, seen)
        actions = torch.from_numpy(batch.actions.reshape(batch.size, *batch.actions.shape[2:]).copy())
        found = Distribution.of(outputs, parameters, state.spaces).log_prob(actions)
        assert np.abs(found.numpy() - batch.log_probs.reshape(-1)).max() <= 1e-5
        checked += 1
    assert checked == 4


def test_distributions_against_torchs_own():
    torch.manual_seed(0)
    means, log_std, other = torch.randn(20, 3), torch.tensor([-0.5, 0.0, 0.7]), torch.randn(20, 3)
    actions = torch.randn(20, 3)
    normal, shifted = torch.distributions.Normal(means, log_std.exp()), torch.distributions.Normal(other, 1.3)
    ours = Distribution(mean=means, log_std=log_std)
    theirs = Distribution(mean=other, log_std=torch.full((3,), 1.3).log())
    torch.testing.assert_close(ours.log_prob(actions), normal.log_prob(actions).sum(1))
    torch.testing.assert_close(ours.entropy(), normal.entropy().sum(1).mean())
    expected = torch.distributions.kl_divergence(shifted, normal).sum(1)
    torch.testing.assert_close(ours.divergence_from(theirs), expected)
    spaces, logits, older = Spaces((1,), (4, 2)), torch.randn(20, 6), torch.randn(20, 6)
    chosen = torch.stack([torch.randint(0, 4, (20,)), torch.randint(0, 2, (20,))], dim=1)
    parts = [torch.distributions.Categorical(logits=part) for part in logits.split([4, 2], dim=1)]
    before = [torch.distributions.Categorical(logits=part) for part in older.split([4, 2], dim=1)]
    found = Distribution.of(logits, {}, spaces)
    torch.testing.assert_close(
        found.log_prob(chosen), sum(p.log_prob(chosen[:, i]) for i, p in enumerate(parts))
    )
    torch.testing.assert_close(found.entropy(), sum(p.entropy() for p in parts).mean())
    expected = sum(torch.distributions.kl_divergence(b, p) for b, p in zip(before, parts, strict=True))
    torch.testing.assert_close(found.divergence_from(Distribution.of(older, {}, spaces)), expected)


def test_sampling_draws_what_the_policy_says():
    """Gumbel-max frequencies of one state against its softmax; oracle: three standard errors of 20,000 draws."""
    network = MLP()
    state = state_of(network, Spaces((4,), (3,)), 5)
    policy = NumpyPolicy(state.actor_weights(network))
    observations = np.tile(np.array([[0.1, 2.0, -1.0, 0.3]], dtype=np.float32), (20_000, 1))
    actions, log_probs = policy.sample(
        observations, policy.draw_noise(np.random.default_rng(3), 1, 20_000)[0]
    )
    logits = policy.outputs(observations[:1])[0].astype(np.float64)
    expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    frequency = np.bincount(actions, minlength=3) / 20_000
    assert (np.abs(frequency - expected) <= 3 * np.sqrt(expected * (1 - expected) / 20_000) + 1e-9).all()
    assert np.abs(np.exp(log_probs) - expected[actions]).max() < 1e-5


def test_a_normaliser_clips_and_is_absent_where_not_requested():
    mean, scale = np.zeros(1, np.float32), np.ones(1, np.float32)
    assert normalise(np.array([[1e9]], np.float32), mean, scale)[0, 0] == 10.0
    assert normalise(np.array([[1e9]], np.float32), None, None)[0, 0] == np.float32(1e9)
    assert Moments.empty(1).count == 0
