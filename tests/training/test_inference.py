"""The numpy policy is the torch policy; the learner recomputes what the actor said it sampled."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.inline_platform import InlinePlatform
from tests.training.specs import tiny
from training.batch import Batch
from training.environments.model import Spaces
from training.inference import NumpyPolicy, normalised
from training.learner import LearnerState
from training.networks import forward, log_probs_and_entropy
from training.normalisers import Moments
from training.spec import NetworkSpec


def state_of(spec, spaces, seed):
    """A learner's state with weights and normaliser away from their beginnings."""
    rng = np.random.default_rng(seed)
    state = LearnerState.initial(spec, spaces, seed)
    for array in state.parameters.values():
        array += 0.3 * rng.standard_normal(array.shape).astype(np.float32)
    seen = rng.standard_normal((100, spaces.observation_size)) * 3 + 1
    return state.having_seen(seen.astype(np.float32), rng.standard_normal(10))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from(["tanh", "relu"]),
    st.sampled_from([(64, 64), (8,), (32, 16, 8)]),
    st.sampled_from([Spaces(4, 2), Spaces(11, None, (-1.0,) * 3, (1.0,) * 3)]),
)
def test_numpy_policy_equals_torch_policy(seed, activation, hidden, spaces):
    network = NetworkSpec(hidden=hidden, activation=activation)
    spec = tiny(network=network.model_dump())
    state = state_of(spec, spaces, seed)
    policy = NumpyPolicy(state.actor_weights(activation))
    observations = (np.random.default_rng(seed).standard_normal((32, spaces.observation_size)) * 4).astype(
        np.float32
    )
    noise = policy.draw_noise(np.random.default_rng(seed), 1, 32)[0]
    actions, log_probs = policy.sample(observations, noise)

    parameters = {name: torch.tensor(array) for name, array in state.parameters.items()}
    seen = torch.from_numpy(normalised(observations, *state.normaliser()))
    outputs = forward(seen, parameters, "policy", network)
    expected, _ = log_probs_and_entropy(outputs, parameters.get("policy.log_std"), torch.from_numpy(actions))

    scale = np.maximum(1.0, np.abs(outputs.numpy()))
    assert np.max(np.abs(policy.outputs(observations) - outputs.numpy()) / scale) <= 1e-5
    assert np.max(np.abs(log_probs - expected.numpy()) / np.maximum(1.0, np.abs(log_probs))) <= 1e-5


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
def test_the_learner_recomputes_the_actors_log_probabilities(environment):
    """Of every round's real trajectories, with the version and normaliser of that round: catches most wrong wiring."""
    from tests.training.runs import updates_of

    checked = 0
    for request, inputs in updates_of(tiny(environment), InlinePlatform()):
        state = LearnerState.decode(inputs[0])
        batch = Batch.of(inputs[1:], state.version, state.parameters["policy.0.weight"].shape[1])
        parameters = {name: torch.tensor(array) for name, array in state.parameters.items()}
        seen = torch.from_numpy(normalised(batch.observations, *state.normaliser()).reshape(batch.size, -1))
        outputs = forward(seen, parameters, "policy", request.network)
        actions = torch.from_numpy(batch.actions.reshape(batch.size, *batch.actions.shape[2:]).copy())
        found, _ = log_probs_and_entropy(outputs, parameters.get("policy.log_std"), actions)
        assert np.abs(found.numpy() - batch.log_probs.reshape(-1)).max() <= 1e-5
        checked += 1
    assert checked == 4


def test_distributions_against_torchs_own():
    means, log_std = torch.randn(20, 3), torch.tensor([-0.5, 0.0, 0.7])
    actions = torch.randn(20, 3)
    normal = torch.distributions.Normal(means, log_std.exp())
    log_probs, entropy = log_probs_and_entropy(means, log_std, actions)
    torch.testing.assert_close(log_probs, normal.log_prob(actions).sum(1))
    torch.testing.assert_close(entropy, normal.entropy().sum(1))
    logits, chosen = torch.randn(20, 4), torch.randint(0, 4, (20,))
    categorical = torch.distributions.Categorical(logits=logits)
    log_probs, entropy = log_probs_and_entropy(logits, None, chosen)
    torch.testing.assert_close(log_probs, categorical.log_prob(chosen))
    torch.testing.assert_close(entropy, categorical.entropy())


def test_sampling_draws_what_the_policy_says():
    """Gumbel-max frequencies of one state against its softmax; oracle: three standard errors of 20,000 draws."""
    state = state_of(tiny(), Spaces(4, 3), 5)
    policy = NumpyPolicy(state.actor_weights("tanh"))
    observations = np.tile(np.array([[0.1, 2.0, -1.0, 0.3]], dtype=np.float32), (20_000, 1))
    actions, log_probs = policy.sample(
        observations, policy.draw_noise(np.random.default_rng(3), 1, 20_000)[0]
    )
    logits = policy.outputs(observations[:1])[0].astype(np.float64)
    expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    frequency = np.bincount(actions, minlength=3) / 20_000
    assert (np.abs(frequency - expected) <= 3 * np.sqrt(expected * (1 - expected) / 20_000) + 1e-9).all()
    assert np.abs(np.exp(log_probs) - expected[actions]).max() < 1e-5


def test_a_normaliser_clips_and_is_absent_where_not_asked_for():
    mean, scale = np.zeros(1, np.float32), np.ones(1, np.float32)
    assert normalised(np.array([[1e9]], np.float32), mean, scale)[0, 0] == 10.0
    assert normalised(np.array([[1e9]], np.float32), None, None)[0, 0] == np.float32(1e9)
    assert Moments.nothing_seen(1).count == 0
