"""The closed form against autograd, and against slopes measured by moving the weights a little."""

import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.batches import batch_of, state_away_from_zero
from training.algorithms import losses, optimisation
from training.algorithms.a2c import A2C
from training.algorithms.autograd import Autograd
from training.algorithms.closed_form import ClosedForm
from training.algorithms.impact import Impact
from training.algorithms.impala import Impala
from training.algorithms.optimisation import BadLoss, descent_of
from training.algorithms.ppo import PPO
from training.architectures import CNN, MLP
from training.environments.spaces import Spaces
from training.inference import LOG_STD_LIMITS, normalised
from training.returns import generalised_advantages
from training.spec import TrainingSpec

PRESETS = Path(__file__).parents[2] / "webapp" / "jobs" / "preset_files"
SPACES = {
    "discrete": Spaces((4,), (3,)),
    "several discrete": Spaces((5,), (3, 2, 4)),
    "continuous": Spaces((7,), (), (-1.0,) * 3, (1.0,) * 3),
}
NETWORKS = st.builds(
    MLP,
    hidden=st.sampled_from([(16, 16), (8,), (12, 1, 6)]),
    activation=st.sampled_from(["tanh", "relu"]),
    shared=st.booleans(),
    log_std=st.sampled_from(["free", "state"]),
    log_std_initial=st.sampled_from([0.0, -0.5, 1.95]),
)
OPTIONS = {
    "entropy_coefficient": st.sampled_from([0.0, 0.02]),
    "max_gradient_norm": st.sampled_from([0.1, 100.0]),
    "normalise_observations": st.booleans(),
    "normalise_rewards": st.booleans(),
    "learning_rate": st.just(1e-3),
    "normalise_advantages": st.booleans(),
}
PASSES = {"epochs": st.integers(1, 3), "minibatch_size": st.sampled_from([7, 8, 23, 100])}
ALGORITHMS = st.one_of(
    st.builds(
        PPO,
        clip_decay=st.booleans(),
        value_clip=st.sampled_from([None, 0.05]),
        target_kl=st.sampled_from([None, 1e-6, 0.02]),
        recompute_advantages=st.booleans(),
        objective=st.sampled_from(["clipped", "decoupled"]),
        **OPTIONS,
        **PASSES,
    ),
    st.builds(A2C, **OPTIONS),
    st.builds(Impala, **OPTIONS, **PASSES),
    st.builds(Impact, **OPTIONS, **PASSES),
)


def learned_by(descent, algorithm, state, batch, network):
    """One whole update, whichever descent would have been chosen for it."""

    def chosen(state, network, algorithm, learning_rate, anchor):
        others = () if descent is ClosedForm else (anchor,)
        return descent(state, network, algorithm, learning_rate, *others)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(optimisation, "descent_of", chosen)
        return algorithm.learn(state, batch, network, 0.25, 3)


def assert_near(one, other, what):
    """Within 1e-5 of the larger of 1 and the numbers' own size."""
    scale = max(1.0, float(np.abs(other).max()))
    assert np.abs(np.asarray(one) - np.asarray(other)).max() <= 1e-5 * scale, what


@settings(max_examples=80, deadline=None)
@given(
    network=NETWORKS,
    spaces=st.sampled_from(list(SPACES.values())),
    algorithm=ALGORITHMS,
    seed=st.integers(0, 10_000),
)
def test_a_whole_update_is_the_one_of_autograd(network, spaces, algorithm, seed):
    state = state_away_from_zero(algorithm, network, spaces, seed)
    batch = batch_of(state, network, seed)
    one, other = (learned_by(descent, algorithm, state, batch, network) for descent in (ClosedForm, Autograd))
    for group in ("parameters", "first_moments", "second_moments"):
        found, expected = getattr(one.state, group), getattr(other.state, group)
        assert list(found) == list(expected)
        for name in found:
            assert found[name].dtype == np.float32
            assert_near(found[name], expected[name], (group, name))
    assert one.state.optimiser_steps == other.state.optimiser_steps
    assert (one.minibatches, one.samples) == (other.minibatches, other.samples)
    for name, value in one.report.model_dump(exclude={"device"}).items():
        assert_near(value, getattr(other.report, name), name)


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
    seen = normalised(batch.observations, *state.normaliser()).reshape(batch.size, -1)

    def values_of(parameters, observations):
        shape = observations.shape[:-1]
        return own_forward(parameters, network, observations.reshape(-1, observations.shape[-1]))[1].reshape(
            shape
        )

    before = values_of(state.parameters, normalised(batch.observations, *state.normaliser()))
    following = np.concatenate(
        [
            before[1:],
            values_of(state.parameters, normalised(batch.last_observations, *state.normaliser()))[None],
        ]
    )
    finals = values_of(state.parameters, normalised(batch.final_observations, *state.normaliser()))
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
def test_the_gradient_is_the_slope_of_the_loss(spaces, activation, shared, log_std):
    """In float64. Adam's first moment after the first step is a tenth of the gradient."""
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
    moments = learned_by(ClosedForm, algorithm, state, batch, network).state.first_moments
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
    "decoupled": lambda arrays, chosen: partial(PPO(objective="decoupled").slopes, arrays, chosen, 0.2),
    "impact": lambda arrays, chosen: partial(Impact().slopes, arrays, chosen),
    "actor-critic": lambda arrays, chosen: partial(
        losses.actor_critic, chosen["advantages"], chosen["targets"], 0.5
    ),
}


@pytest.mark.parametrize("objective_of", OBJECTIVES.values(), ids=OBJECTIVES)
def test_slopes_are_those_of_the_loss_that_is_told(objective_of):
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


@pytest.fixture
def hopper():
    """What the preset trains, without its environment."""
    document = tomllib.loads((PRESETS / "hopper.toml").read_text())["training"]
    spec = TrainingSpec.model_validate(document)
    spaces = Spaces((11,), (), (-1.0,) * 3, (1.0,) * 3)
    state = state_away_from_zero(spec.algorithm, spec.network, spaces, 0)
    return spec, state, batch_of(state, spec.network, 0)


def test_the_hopper_preset_learns_without_autograd(hopper, monkeypatch):
    spec, state, batch = hopper
    monkeypatch.setattr(torch.autograd, "grad", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    learned = spec.algorithm.learn(state, batch, spec.network, 0.0, 1)
    assert learned.report.device == "cpu"
    assert any((learned.state.parameters[n] != state.parameters[n]).any() for n in state.parameters)


def test_pictures_penalties_and_gpus_take_autograd(monkeypatch):
    pictures = PPO().initial_state(CNN(), Spaces((4, 84, 84), (3,)), 0)
    assert isinstance(descent_of(pictures, CNN(), PPO(), 1e-3, None), Autograd)
    plain = PPO().initial_state(MLP(), SPACES["discrete"], 0)
    anchor = optimisation.Anchor(plain.parameters, 0.2)
    assert isinstance(descent_of(plain, MLP(), PPO(), 1e-3, anchor), Autograd)
    assert isinstance(descent_of(plain, MLP(), PPO(), 1e-3, None), ClosedForm)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("training.algorithms.autograd.Autograd", lambda *_: "autograd")
    assert descent_of(plain, MLP(), PPO(), 1e-3, None) == "autograd"


def test_an_update_twice_gives_the_same_bytes_and_leaves_its_state_alone(hopper):
    spec, state, batch = hopper
    before = state.encode()
    first, second = (
        spec.algorithm.learn(state, batch, spec.network, 0.0, 1).state.encode() for _ in range(2)
    )
    assert first == second
    assert state.encode() == before


def test_learning_leaves_blas_one_thread(hopper):
    from threadpoolctl import threadpool_info

    spec, state, batch = hopper
    spec.algorithm.learn(state, batch, spec.network, 0.0, 1)
    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert threads
    assert set(threads) == {1}


@pytest.mark.parametrize("descent", [ClosedForm, Autograd])
def test_a_loss_that_is_not_finite_is_refused_and_nothing_kept(hopper, descent):
    spec, state, batch = hopper
    before = state.encode()
    impossible = replace(batch, log_probs=np.full_like(batch.log_probs, -1e30))
    with pytest.raises(BadLoss, match="is not a finite number; the update was thrown away"):
        learned_by(descent, spec.algorithm, state, impossible, spec.network)
    assert state.encode() == before
