"""Truncated ratios: how much a sample counts while several learners learn, in numpy and in torch."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.training.batches import SPACES, batch_of, by_autograd, state_away_from_zero
from tests.training.test_slopes import chosen_samples, own_forward, own_policy
from training.engine import torch_loading
from training.rl.algorithms import losses
from training.rl.algorithms.a2c import A2C
from training.rl.algorithms.autograd import Autograd
from training.rl.algorithms.closed_form import ClosedForm
from training.rl.algorithms.impact import Impact
from training.rl.algorithms.impala import Impala
from training.rl.algorithms.optimisation import Optimisation
from training.rl.algorithms.ppo import PPO
from training.rl.algorithms.slice_gradient import Pass, gradient_of
from training.rl.learner import PublishedPolicy
from training.rl.networks import MLP
from training.rl.networks.inference import normalise
from training.rl.returns import vtrace
from training.rl.truncation import Truncation, importance_figures, least_ratios, truncated_ratios

CLIP = 0.2
LOGS = st.floats(-6, 6, allow_subnormal=False)
SAMPLES = st.lists(
    st.tuples(st.floats(-5, 5, allow_subnormal=False), LOGS, st.lists(LOGS, min_size=7, max_size=7)),
    min_size=1,
    max_size=6,
)
LIMITS = st.one_of(st.floats(1, 8), st.just(np.inf))


def columns(samples, learners):
    """Advantages, own ratios, and the least ratio of the other learners; None if one learns alone."""
    advantages, own, others = (np.array(part) for part in zip(*samples, strict=True))
    least = least_ratios(list(others.T[: learners - 1]), np.zeros(len(own)))
    return advantages, np.exp(own), least


def slopes_of(rule, advantages, own, others, limit, arrays=np):
    """What pushes each sample's log-probability up: PPO's, truncated."""
    truncation = Truncation.model_construct(rule=rule, limit=limit)
    return losses.truncated_gains(arrays, truncation, own, others, own, advantages, CLIP)[1]


@settings(max_examples=100, deadline=None)
@given(SAMPLES, st.integers(1, 8), LIMITS)
def test_a_truncated_slope_has_the_sign_of_its_advantage_wherever_ppo_lets_it(samples, learners, limit):
    advantages, own, others = columns(samples, learners)
    slopes = slopes_of("constant", advantages, own, others, limit)
    plain = losses.clipped_gains(np, own, advantages, CLIP)[1]
    free = own * advantages <= own.clip(1 - CLIP, 1 + CLIP) * advantages
    assert (np.sign(slopes[free]) == np.sign(advantages[free])).all()
    assert (slopes[~free] == 0).all()
    pushed = advantages != 0
    assert (abs(slopes[pushed]) <= limit * abs(advantages[pushed])).all()
    assert (slopes[~pushed] == 0).all()
    assert (abs(slopes) <= abs(plain)).all()
    in_torch = slopes_of(
        "constant",
        torch.from_numpy(advantages),
        torch.from_numpy(own),
        None if others is None else torch.from_numpy(others),
        limit,
        torch,
    )
    np.testing.assert_allclose(in_torch.numpy(), slopes, rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(SAMPLES, LIMITS)
def test_one_learner_without_a_limit_has_plain_importance_weights_and_more_never_raise_them(samples, limit):
    advantages, own, _ = columns(samples, 1)
    plain = losses.clipped_gains(np, own, advantages, CLIP)[1]
    assert (slopes_of("constant", advantages, own, None, np.inf) == plain).all()
    before = truncated_ratios(np, own, None, limit)
    for learners in range(2, 9):
        others = columns(samples, learners)[2]
        now = truncated_ratios(np, own, others, limit)
        assert (now <= before).all()
        assert (now <= limit).all()
        before = now


def test_a_bad_action_that_grew_likelier_keeps_its_push_and_the_released_code_takes_it():
    own, others, bad = np.array([3.0]), np.array([0.9]), np.array([-1.0])
    assert slopes_of("constant", bad, own, others, 1.0) == pytest.approx(-0.9)
    assert slopes_of("released", bad, own, others, 1.0) == 0.0
    assert slopes_of("differentiated", bad, own, others, 1.0) == 0.0
    # PPO itself would push it down by its whole ratio.
    assert losses.clipped_gains(np, own, bad, CLIP)[1] == pytest.approx(-3.0)


def test_the_released_cap_is_at_least_its_limit_and_needs_another_learner():
    own, good = np.array([0.5, 1.1, 1.15]), np.ones(3)
    # The others' least ratio is 0.3, but the cap is 1: only ratios above 1 are capped, and lose their slope.
    assert slopes_of("released", good, own, np.full(3, 0.3), 1.0) == pytest.approx([0.5, 0.0, 0.0])
    assert slopes_of("released", good, own, np.full(3, 1.12), 1.0) == pytest.approx([0.5, 1.1, 0.0])
    assert slopes_of("released", good, own, None, 1.0) == pytest.approx([0.5, 1.1, 1.15])


def test_a_limit_below_1_is_refused():
    with pytest.raises(ValidationError, match="greater than or"):
        Truncation(limit=0.99)


def test_figures_of_ratios_by_hand():
    found = importance_figures(np.array([0.5, 2.0, 1.0]), np.array([1.0, 1.0, 0.25]), 1.5)
    assert found == {
        "weight": pytest.approx((0.5 + 1.0 + 0.25) / 3),
        "effective": pytest.approx(3.5**2 / (3 * 5.25)),
        "truncated": pytest.approx(2 / 3),
    }


def test_vtrace_with_truncated_ratios_limits_rho_alone():
    """Each step by hand: two steps of one copy that goes on, λ = 1."""
    ratios, truncated = np.array([[0.8], [1.6]]), np.array([[0.4], [1.2]])
    rewards, values, following = (
        np.array([[1.0], [2.0]]),
        np.array([[0.5], [0.25]]),
        np.array([[0.25], [3.0]]),
    )
    never = np.zeros((2, 1), dtype=bool)
    targets, advantages = vtrace(
        ratios, rewards, values, following, never, never, 0.9, 1.0, 2.0, 1.0, truncated
    )
    last = 1.2 * (2.0 + 0.9 * 3.0 - 0.25)
    first = 0.4 * (1.0 + 0.9 * 0.25 - 0.5) + 0.9 * 0.8 * last
    np.testing.assert_allclose(targets, [[0.5 + first], [0.25 + last]])
    np.testing.assert_allclose(advantages[1], last)
    np.testing.assert_allclose(advantages[0], 0.4 * (1.0 + 0.9 * (0.25 + last) - 0.5))
    plain = vtrace(ratios, rewards, values, following, never, never, 0.9, 1.0, 2.0, 1.0)
    loose = vtrace(ratios, rewards, values, following, never, never, 0.9, 1.0, 2.0, 1.0, ratios)
    assert all((one == other).all() for one, other in zip(plain, loose, strict=True))


@pytest.mark.parametrize(
    ("rule", "objective"),
    [
        ("constant", "clipped"),
        ("constant", "decoupled"),
        ("released", "clipped"),
        ("differentiated", "clipped"),
    ],
)
def test_slopes_are_those_of_the_truncated_surrogate(rule, objective):
    """Moved by a little, one sample at a time, in float64; and alike in torch. The constant weight does not move."""
    rng = np.random.default_rng(1)
    n, ppo = 60, PPO(objective=objective, normalise_advantages=False)
    chosen = {**chosen_samples(rng, n), "others": np.exp(0.5 * rng.standard_normal(n))}
    log_probs = chosen["log_probs"] + 0.4 * rng.standard_normal(n)
    values = chosen["values"] + 0.4 * rng.standard_normal(n)
    truncation = Truncation(rule=rule, limit=1.3)
    slopes = ppo.slopes(np, chosen, CLIP, log_probs, values, truncation=truncation)
    reference = chosen["start_log_probs"] if objective == "decoupled" else chosen["log_probs"]

    def surrogate(moved):
        """Each sample's gain, −n times the policy loss, as the rule defines it."""
        advantages = chosen["advantages"]
        own = np.exp(moved - chosen["log_probs"])
        if rule == "constant":
            ratio = np.exp(log_probs - reference)
            kept = ratio * advantages <= np.clip(ratio, 1 - CLIP, 1 + CLIP) * advantages
            frozen = np.minimum(np.minimum(np.exp(log_probs - chosen["log_probs"]), chosen["others"]), 1.3)
            return np.where(kept, frozen * advantages * moved, 0.0)
        cap = (
            np.minimum(chosen["others"], 1.3)
            if rule == "differentiated"
            else np.maximum(chosen["others"], 1.3)
        )
        ratio = np.minimum(own, cap)
        return np.minimum(ratio * advantages, np.clip(ratio, 1 - CLIP, 1 + CLIP) * advantages)

    measured = (surrogate(log_probs + 1e-6) - surrogate(log_probs - 1e-6)) / 2e-6
    np.testing.assert_allclose(slopes.log_probs, -measured / n, atol=1e-8)
    assert (slopes.log_probs != 0).sum() > n / 4
    in_torch = ppo.slopes(
        torch,
        {name: torch.from_numpy(array) for name, array in chosen.items()},
        CLIP,
        torch.from_numpy(log_probs),
        torch.from_numpy(values),
        truncation=truncation,
    )
    np.testing.assert_allclose(in_torch.log_probs.numpy(), slopes.log_probs, atol=1e-14)


def other_learners(state, network, count):
    """Policies of learners in flight: the state's own, moved away a little."""
    found = []
    for n in range(count):
        moved = state_away_from_zero(PPO(), network, state.spaces, 100 + n)
        near = {
            name: (array + 0.1 * moved.parameters[name]).astype(np.float32)
            for name, array in state.parameters.items()
        }
        weights = replace(state, parameters=near, version=state.version + n + 1).actor_weights(network)
        found.append(PublishedPolicy.decode(weights))
    return found


def gradient_by(descent, algorithm, state, batch, network, truncation, learners=3, **options):
    others = other_learners(state, network, learners - 1)
    network = by_autograd(network) if descent is Autograd else network
    return gradient_of(algorithm, state, batch, network, 0.25, Pass(1, 3, 5), truncation, others, **options)


ALGORITHMS = {
    "ppo": PPO(epochs=3, kl_coefficient=0.2, normalise_observations=True),
    "ppo, decoupled": PPO(epochs=3, objective="decoupled"),
    "a2c": A2C(),
    "impala": Impala(epochs=3),
    "impact": Impact(epochs=3, kl_coefficient=0.1),
}


@pytest.mark.parametrize(
    ("rule", "name", "spaces"),
    [
        *(("constant", name, SPACES["continuous"]) for name in ALGORITHMS),
        *(("constant", "ppo", SPACES[name]) for name in ("discrete", "several discrete")),
        *((rule, "ppo", SPACES["discrete"]) for rule in ("off", "mean_step", "released", "differentiated")),
    ],
)
def test_the_closed_form_and_autograd_give_the_same_truncated_gradient(rule, name, spaces):
    algorithm, network = ALGORITHMS[name], MLP(hidden=(16, 8))
    state = state_away_from_zero(algorithm, network, spaces, 2)
    batch = batch_of(state, network, 2, stray=0.5)
    truncation = Truncation(rule=rule, limit=1.1)
    one, other = (
        gradient_by(descent, algorithm, state, batch, network, truncation)
        for descent in (ClosedForm, Autograd)
    )
    assert list(one.gradient) == list(other.gradient) == list(state.parameters)
    for part in one.gradient:
        scale = np.abs(other.gradient[part]).max()
        assert np.abs(one.gradient[part] - other.gradient[part]).max() <= 1e-5 * max(scale, 0.1), part
    assert one.importance == pytest.approx(other.importance, rel=1e-5)
    assert one.report == pytest.approx(other.report, rel=1e-4, abs=1e-6)
    if rule == "constant":
        plain = gradient_by(ClosedForm, algorithm, state, batch, network, Truncation(rule="off"))
        assert any((plain.gradient[n] != one.gradient[n]).any() for n in one.gradient)
        assert 0 < one.importance["truncated"] < 1


@pytest.mark.parametrize("spaces", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("log_std", ["free", "state"])
def test_a_truncated_gradient_is_the_slope_of_its_loss(spaces, activation, log_std, monkeypatch):
    """In float64, against the whole loss with R' held still, moved along random directions."""
    monkeypatch.setattr(torch_loading, "_GPU_FILES", ())
    network = MLP(hidden=(9, 8), activation=activation, log_std=log_std)
    algorithm = PPO(epochs=1, entropy_coefficient=0.05, normalise_advantages=False)
    state = state_away_from_zero(algorithm, network, spaces, 5)
    parameters = {name: array.astype(np.float64) for name, array in state.parameters.items()}
    batch = batch_of(state, network, 5, stray=0.5)
    precise = replace(state, parameters=parameters)
    truncation, others = Truncation(limit=1.1), other_learners(state, network, 2)
    found = gradient_of(algorithm, precise, batch, network, 0.0, Pass(1, 1, 5), truncation, others)

    seen = normalise(batch.observations, *state.normaliser()).reshape(batch.size, -1)
    actions = batch.actions.reshape(batch.size, *batch.actions.shape[2:])
    behaviour = batch.log_probs.ravel()
    policy = partial(own_policy, spaces=state.spaces, actions=actions)
    with_critic = partial(own_forward, network=network, observations=seen)
    prepared = algorithm.prepare(
        Optimisation(precise, network, algorithm, 0.0, batch.size), batch, precise, None, None
    )
    advantages, targets = prepared.advantages.ravel(), prepared.targets.ravel()
    now = np.exp(policy(with_critic(parameters)[0], parameters)[0] - behaviour)
    theirs = [policy(with_critic(one.parameters)[0], one.parameters)[0] for one in others]
    weights = np.minimum(np.minimum(now, np.exp(np.minimum(*theirs) - behaviour)), 1.1)
    kept = now * advantages <= np.clip(now, 1 - algorithm.clip, 1 + algorithm.clip) * advantages

    def loss(moved):
        outputs, values = with_critic(moved)
        log_probs, entropy = policy(outputs, moved)
        policy_loss = -np.where(kept, weights * advantages * log_probs, 0.0).mean()
        return policy_loss + 0.25 * ((values - targets) ** 2).mean() - 0.05 * entropy

    rng = np.random.default_rng(0)
    for name, array in parameters.items():
        direction = rng.standard_normal(array.shape)
        there, back = (loss({**parameters, name: array + step * direction}) for step in (1e-5, -1e-5))
        assert (found.gradient[name] * direction).sum() == pytest.approx(
            (there - back) / 2e-5, rel=1e-6, abs=1e-6
        ), name
