"""GAE against its definition, term by term."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.rl.returns import generalised_advantages, vtrace


def by_definition(rewards, values, next_values, terminated, ended, discount, decay):
    """A_t = Σ_k (γλ)^k δ_{t+k}, summed until the episode's end; O(T²) and without any recursion."""
    steps = len(rewards)
    advantages = np.zeros(steps)
    for t in range(steps):
        factor = 1.0
        for k in range(t, steps):
            future = 0.0 if terminated[k] else discount * next_values[k]
            advantages[t] += factor * (rewards[k] + future - values[k])
            if ended[k]:
                break
            factor *= discount * decay
    return advantages


@given(st.integers(0, 2**31), st.sampled_from([0.0, 0.5, 0.99, 1.0]), st.sampled_from([0.0, 0.8, 0.95, 1.0]))
def test_equals_the_definition(seed, discount, decay):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 20)), 3)
    rewards, values, following = (rng.standard_normal(shape) for _ in range(3))
    terminated, truncated = rng.random(shape) < 0.15, rng.random(shape) < 0.15
    ended = terminated | truncated
    found = generalised_advantages(rewards, values, following, terminated, ended, discount, decay)
    for n in range(3):
        columns = (array[:, n] for array in (rewards, values, following, terminated, ended))
        np.testing.assert_allclose(
            found[:, n], by_definition(*columns, discount, decay), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize(("kind", "expected"), [("terminated", 1.0), ("truncated", 1.0 + 0.9 * 10.0)])
def test_a_time_limit_has_a_future_and_a_termination_has_none(kind, expected):
    """One step of reward 1 from a state worth 0 into one worth 10, whose episode ends there."""
    one = np.ones((1, 1))
    advantage = generalised_advantages(
        one, 0 * one, 10 * one, np.array([[kind == "terminated"]]), np.array([[True]]), 0.9, 0.95
    )
    assert advantage[0, 0] == pytest.approx(expected)


def test_nothing_leaks_over_the_end_of_an_episode():
    rewards = np.array([[0.0], [1000.0]])
    flags = np.array([[True], [False]])
    zeros = np.zeros((2, 1))
    found = generalised_advantages(rewards, zeros, zeros, flags, flags, 0.99, 0.95)
    assert found[0, 0] == 0.0


def vtrace_by_definition(ratios, rewards, values, following, terminated, ended, discount, decay):
    """v_s = V(s) + Σ_t γ^{t−s} (Π_{i<t} c_i) δ_t until the episode's end; O(T²), Espeholt et al. 2018 eq. 1."""
    steps = len(rewards)
    targets = np.array(values, dtype=float)
    for s in range(steps):
        factor = 1.0
        for t in range(s, steps):
            future = 0.0 if terminated[t] else discount * following[t]
            targets[s] += factor * min(1.0, ratios[t]) * (rewards[t] + future - values[t])
            if ended[t]:
                break
            factor *= discount * decay * min(1.0, ratios[t])
    return targets


@given(st.integers(0, 2**31), st.sampled_from([0.9, 1.0]), st.sampled_from([0.5, 0.95, 1.0]))
def test_vtrace_equals_its_definition(seed, discount, decay):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 15)), 2)
    ratios = np.exp(rng.standard_normal(shape) * 2)
    rewards, values, following = (rng.standard_normal(shape) for _ in range(3))
    terminated, truncated = rng.random(shape) < 0.15, rng.random(shape) < 0.15
    ended = terminated | truncated
    targets, advantages = vtrace(ratios, rewards, values, following, terminated, ended, discount, decay)
    for n in range(2):
        columns = [a[:, n] for a in (ratios, rewards, values, following, terminated, ended)]
        np.testing.assert_allclose(targets[:, n], vtrace_by_definition(*columns, discount, decay), atol=1e-9)
    assert advantages.shape == shape


@given(st.integers(0, 2**31), st.sampled_from([0.9, 1.0]), st.sampled_from([0.5, 0.95, 1.0]))
def test_vtrace_advantages_with_lambda_are_what_the_targets_add_to_the_values(seed, discount, decay):
    """While c̄ = ρ̄: A_t = Σ_i (γλ)^i (Π c) δ_{t+i}, which is v_t − V(s_t). Also over ends of episodes."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 15)), 2)
    ratios = np.exp(rng.standard_normal(shape) * 2)
    rewards, values = rng.standard_normal(shape), rng.standard_normal(shape)
    following = np.concatenate([values[1:], rng.standard_normal((1, 2))])
    terminated, truncated = rng.random(shape) < 0.15, rng.random(shape) < 0.15
    following[truncated] = rng.standard_normal(int(truncated.sum()))
    given = (ratios, rewards, values, following, terminated, terminated | truncated, discount, decay)
    targets, advantages = vtrace(*given, advantage_decay=decay)
    np.testing.assert_allclose(advantages, targets - values, atol=1e-9)


@given(st.integers(0, 2**31), st.sampled_from([0.5, 0.95, 1.0]))
def test_vtrace_on_policy_is_gae(seed, decay):
    """With ratios of 1 and critic values that follow each other, targets and advantages are those of GAE."""
    rng = np.random.default_rng(seed)
    shape = (9, 2)
    rewards, values = rng.standard_normal(shape), rng.standard_normal(shape)
    following = np.concatenate([values[1:], rng.standard_normal((1, 2))])
    no = np.zeros(shape, dtype=bool)
    targets, advantages = vtrace(
        np.ones(shape), rewards, values, following, no, no, 0.97, decay, advantage_decay=decay
    )
    gae = generalised_advantages(rewards, values, following, no, no, 0.97, decay)
    np.testing.assert_allclose(targets, gae + values, atol=1e-9)
    np.testing.assert_allclose(advantages, gae, atol=1e-9)


def test_vtrace_with_lambda_one_is_the_n_step_return():
    rewards = np.array([[1.0], [2.0], [4.0]])
    values, following = np.zeros((3, 1)), np.array([[0.0], [0.0], [8.0]])
    no = np.zeros((3, 1), dtype=bool)
    targets, advantages = vtrace(np.ones((3, 1)), rewards, values, following, no, no, 0.5)
    assert targets[:, 0].tolist() == [1 + 1 + 1 + 1, 2 + 2 + 2, 4 + 4]
    assert advantages[:, 0].tolist() == [4.0, 6.0, 8.0]


def test_ratios_of_almost_nothing_learn_almost_nothing():
    rewards, values = np.full((4, 1), 100.0), np.ones((4, 1))
    no = np.zeros((4, 1), dtype=bool)
    targets, advantages = vtrace(np.full((4, 1), 1e-9), rewards, values, values, no, no, 0.99)
    np.testing.assert_allclose(targets, values, atol=1e-6)
    np.testing.assert_allclose(advantages, 0.0, atol=1e-6)
