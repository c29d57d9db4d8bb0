"""GAE against its definition, term by term."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.returns import generalised_advantages


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
