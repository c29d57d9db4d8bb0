"""Slopes written out against slopes measured, in float64: by moving weights, outputs, values a little."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from tests.training.batches import SPACES, batch_of, state_away_from_zero
from training.engine import torch_loading
from training.rl.algorithms import losses
from training.rl.algorithms.heads import head_of
from training.rl.algorithms.impact import Impact
from training.rl.algorithms.ppo import PPO
from training.rl.networks import MLP
from training.rl.networks.inference import LOG_STD_LIMITS, normalise
from training.rl.returns import generalised_advantages


def own_forward(parameters, network, observations):
    """The network once more, as plainly as can be."""
    act = np.tanh if network.activation == "tanh" else partial(np.maximum, 0.0)

    def tower(name, x, *, last):
        i = 0
        while f"{name}.{i}.weight" in parameters:
            x = x @ parameters[f"{name}.{i}.weight"].T + parameters[f"{name}.{i}.bias"]
            i += 1
            if last or f"{name}.{i}.weight" in parameters:
                x = act(x)
        return x

    features = tower("trunk", observations, last=True)
    return tower("policy", features, last=False), tower("value", features, last=False)[:, 0]


def own_policy(outputs, parameters, spaces, actions):
    """Log-probabilities of the actions, and the mean entropy."""
    if spaces.discrete:
        log_probs, entropy, begin = 0.0, 0.0, 0
        for count, chosen in zip(spaces.action_counts, actions.reshape(len(outputs), -1).T, strict=True):
            odds = np.exp(outputs[:, begin : begin + count])
            p = odds / odds.sum(axis=1, keepdims=True)
            log_probs = log_probs + np.log(p[np.arange(len(p)), chosen])
            entropy -= (p * np.log(p)).sum(axis=1).mean()
            begin += count
        return log_probs, entropy
    size = len(spaces.action_low)
    log_std = parameters.get("policy.log_std")
    if log_std is None:
        log_std = np.clip(outputs[:, size:], *LOG_STD_LIMITS)
    log_std = np.broadcast_to(log_std, (len(outputs), size))
    scaled = (actions - outputs[:, :size]) / np.exp(log_std)
    log_probs = (-0.5 * scaled**2 - log_std - 0.5 * np.log(2 * np.pi)).sum(axis=1)
    return log_probs, (log_std + 0.5 * np.log(2 * np.pi * np.e)).sum(axis=1).mean()


def own_loss(algorithm, network, state, batch):
    """PPO's loss over the whole batch as a function of the parameters, in float64."""
    seen = normalise(batch.observations, *state.normaliser()).reshape(batch.size, -1)

    def values_of(parameters, observations):
        shape = observations.shape[:-1]
        return own_forward(parameters, network, observations.reshape(-1, observations.shape[-1]))[1].reshape(
            shape
        )

    before = values_of(state.parameters, normalise(batch.observations, *state.normaliser()))
    following = np.concatenate(
        [
            before[1:],
            values_of(state.parameters, normalise(batch.last_observations, *state.normaliser()))[None],
        ]
    )
    finals = values_of(state.parameters, normalise(batch.final_observations, *state.normaliser()))
    following[tuple(batch.final_index.T)] = finals
    advantages = generalised_advantages(
        batch.rewards,
        before,
        following,
        batch.terminated,
        batch.ended,
        algorithm.discount,
        algorithm.trace_decay,
    )
    targets, old = (advantages + before).ravel(), before.ravel()
    gains = advantages.ravel()
    gains = (gains - gains.mean()) / gains.std(ddof=1)
    actions = batch.actions.reshape(batch.size, *batch.actions.shape[2:])

    def loss(parameters):
        outputs, values = own_forward(parameters, network, seen)
        log_probs, entropy = own_policy(outputs, parameters, state.spaces, actions)
        ratio = np.exp(log_probs - batch.log_probs.ravel())
        held = np.clip(ratio, 1 - algorithm.clip, 1 + algorithm.clip)
        policy_loss = np.maximum(-gains * ratio, -gains * held).mean()
        near = old + np.clip(values - old, -algorithm.value_clip, algorithm.value_clip)
        value_loss = 0.5 * np.maximum((values - targets) ** 2, (near - targets) ** 2).mean()
        return (
            policy_loss + algorithm.value_coefficient * value_loss - algorithm.entropy_coefficient * entropy
        )

    return loss


@pytest.mark.parametrize("spaces", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "apart"])
@pytest.mark.parametrize("log_std", ["free", "state"])
def test_the_gradient_is_the_slope_of_the_loss(spaces, activation, shared, log_std, monkeypatch):
    """In float64. Adam's first moment after the first step is a tenth of the gradient."""
    monkeypatch.setattr(torch_loading, "_GPU_FILES", ())
    network = MLP(hidden=(9, 8), activation=activation, shared=shared, log_std=log_std)
    algorithm = PPO(
        epochs=1, minibatch_size=100, max_gradient_norm=1e6, entropy_coefficient=0.05, value_clip=0.2
    )
    state = state_away_from_zero(algorithm, network, spaces, 5)
    zeros = {name: np.zeros(array.shape) for name, array in state.parameters.items()}
    parameters = {name: array.astype(np.float64) for name, array in state.parameters.items()}
    state = replace(state, parameters=parameters, first_moments=zeros, second_moments=zeros)
    batch = batch_of(
        replace(state, parameters={n: a.astype("f4") for n, a in parameters.items()}), network, 5
    )
    loss = own_loss(algorithm, network, state, batch)
    moments = algorithm.learn(state, batch, network, 0.0, 3).state.first_moments
    rng = np.random.default_rng(0)
    for name, array in parameters.items():
        direction = rng.standard_normal(array.shape)
        there, back = (loss({**parameters, name: array + step * direction}) for step in (1e-5, -1e-5))
        expected = (there - back) / 2e-5
        assert (10 * moments[name] * direction).sum() == pytest.approx(expected, rel=1e-5, abs=1e-6), name


def chosen_samples(rng, n):
    """A minibatch that critic and policy have moved away from, some of it beyond every clip."""
    drawn = {name: rng.standard_normal(n) for name in ("advantages", "values", "targets", "log_probs")}
    return {
        **drawn,
        "start_log_probs": drawn["log_probs"] + 0.5 * rng.standard_normal(n),
        "weights": np.minimum(rng.random(n) * 3, 2.0),
    }


OBJECTIVES = {
    "ppo": lambda arrays, chosen: partial(PPO().slopes, arrays, chosen, 0.2),
    "value clip": lambda arrays, chosen: partial(PPO(value_clip=0.3).slopes, arrays, chosen, 0.1),
    "clamped value error": lambda arrays, chosen: partial(
        PPO(value_clip=0.3, value_error="clamped_square").slopes, arrays, chosen, 0.1
    ),
    "whole value error": lambda arrays, chosen: partial(
        PPO(value_error="clamped_square").slopes, arrays, chosen, 0.1
    ),
    "decoupled": lambda arrays, chosen: partial(PPO(objective="decoupled").slopes, arrays, chosen, 0.2),
    "impact": lambda arrays, chosen: partial(Impact().slopes, arrays, chosen),
    "actor-critic": lambda arrays, chosen: partial(
        losses.actor_critic, chosen["advantages"], chosen["targets"], 0.5
    ),
}


@pytest.mark.parametrize("objective_of", OBJECTIVES.values(), ids=OBJECTIVES)
def test_slopes_are_those_of_the_loss_that_is_reported(objective_of):
    """Moved by a little, one sample at a time, in float64; and alike in torch."""
    rng = np.random.default_rng(1)
    n = 40
    chosen = chosen_samples(rng, n)
    log_probs = chosen["log_probs"] + 0.4 * rng.standard_normal(n)
    values = chosen["values"] + 0.4 * rng.standard_normal(n)
    objective = objective_of(np, chosen)

    def loss(log_probs, values):
        measured = objective(log_probs, values).measured
        return measured["policy_loss"] + 0.5 * measured["value_loss"]

    steps = 1e-6 * np.eye(n)
    by_log_prob = [loss(log_probs + step, values) - loss(log_probs - step, values) for step in steps]
    by_value = [loss(log_probs, values + step) - loss(log_probs, values - step) for step in steps]
    slopes = objective(log_probs, values)
    np.testing.assert_allclose(slopes.log_probs, np.array(by_log_prob) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(slopes.values, np.array(by_value) / 2e-6, atol=1e-8)
    in_torch = objective_of(torch, {name: torch.from_numpy(array) for name, array in chosen.items()})
    other = in_torch(torch.from_numpy(log_probs), torch.from_numpy(values))
    np.testing.assert_allclose(other.log_probs.numpy(), slopes.log_probs, atol=1e-12)
    np.testing.assert_allclose(other.values.numpy(), slopes.values, atol=1e-12)
    for name, value in slopes.measured.items():
        assert float(other.measured[name]) == pytest.approx(float(value))


@pytest.mark.parametrize(
    ("spaces", "free"),
    [(SPACES["several discrete"], False), (SPACES["continuous"], False), (SPACES["continuous"], True)],
    ids=["discrete", "state", "free"],
)
def test_slopes_of_the_divergence_are_those_of_its_value(spaces, free):
    rng = np.random.default_rng(2)
    size = spaces.policy_outputs * (1 if spaces.discrete or free else 2)
    outputs, older = rng.standard_normal((2, 6, size))
    said, older_said = (
        {"policy.log_std": rng.standard_normal(spaces.policy_outputs)} if free else {} for _ in range(2)
    )
    if not spaces.discrete and not free:
        outputs[0, -1] = LOG_STD_LIMITS[1] + 0.5
    actions = np.zeros((6, len(spaces.action_counts)), dtype=int) if spaces.discrete else outputs[:, :3]
    into = {name: np.zeros_like(array) for name, array in said.items()}

    def divergence(outputs, said):
        theirs = head_of(older, actions, older_said, spaces)
        return head_of(outputs, actions, said, spaces).backward_from(theirs, 0.3, into)

    _, slopes = divergence(outputs, said)
    written = {name: array.copy() for name, array in into.items()}
    moves = 1e-6 * np.eye(outputs.size).reshape(-1, *outputs.shape)
    measured = [divergence(outputs + move, said)[0] - divergence(outputs - move, said)[0] for move in moves]
    np.testing.assert_allclose(slopes.ravel(), 0.3 * np.array(measured) / 2e-6, atol=1e-8)
    for name, array in written.items():
        steps = 1e-6 * np.eye(len(array))
        there = [divergence(outputs, {name: said[name] + step})[0] for step in steps]
        back = [divergence(outputs, {name: said[name] - step})[0] for step in steps]
        np.testing.assert_allclose(array, 0.3 * (np.array(there) - np.array(back)) / 2e-6, atol=1e-8)
