"""Optimisers take torch's steps, and local steps are nothing but steps."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.training.models.descent import BadLoss, descend
from training.data.rows import DenseFeatures, Rows
from training.supervised.models.logistic import LogisticRegression
from training.supervised.models.optimisers import SGD, Adam, AnyOptimiser, Momentum

OPTIMISERS = [
    (SGD(learning_rate=0.3), lambda leaves: torch.optim.SGD(leaves, lr=0.3)),
    (
        Momentum(learning_rate=0.05, momentum=0.8),
        lambda leaves: torch.optim.SGD(leaves, lr=0.05, momentum=0.8),
    ),
    (Adam(learning_rate=0.02), lambda leaves: torch.optim.Adam(leaves, lr=0.02)),
]


@pytest.mark.parametrize(("ours", "theirs"), OPTIMISERS, ids=["sgd", "momentum", "adam"])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_steps_are_those_of_torch(ours, theirs, seed):
    rng = np.random.default_rng(seed)
    parameters = {"weight": rng.standard_normal((3, 2)), "bias": rng.standard_normal(2)}
    leaves = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in parameters.items()}
    optimiser, state = theirs(list(leaves.values())), ours.begin(parameters)
    for _ in range(12):
        gradient = {name: rng.standard_normal(array.shape) for name, array in parameters.items()}
        for name, leaf in leaves.items():
            leaf.grad = torch.from_numpy(gradient[name].copy())
        optimiser.step()
        before = {name: array.copy() for name, array in parameters.items()}
        moved, state = ours.step(parameters, gradient, state)
        for name in before:
            np.testing.assert_array_equal(parameters[name], before[name])
        parameters = moved
    assert state.steps == 12
    for name, leaf in leaves.items():
        np.testing.assert_allclose(parameters[name], leaf.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("optimiser", [one for one, _ in OPTIMISERS], ids=["sgd", "momentum", "adam"])
def test_a_step_keeps_single_precision(optimiser):
    parameters = {"weight": np.ones((2, 2), np.float32)}
    gradient = {"weight": np.full((2, 2), 0.5, np.float32)}
    moved, state = optimiser.step(parameters, gradient, optimiser.begin(parameters))
    moved, state = optimiser.step(moved, gradient, state)
    assert moved["weight"].dtype == np.float32
    assert all(array.dtype == np.float32 for array in state.arrays.values())
    assert TypeAdapter(AnyOptimiser).validate_python(optimiser.model_dump()) == optimiser


def some_rows(count: int = 50) -> Rows:
    rng = np.random.default_rng(0)
    features = DenseFeatures(rng.standard_normal((count, 4)).astype(np.float32))
    return Rows(features, rng.integers(0, 2, count).astype(np.int32))


def test_descending_takes_a_step_a_minibatch_in_order():
    model, optimiser, rows = LogisticRegression(), Momentum(), some_rows()
    parameters = {"weight": np.ones((4, 1), np.float32), "bias": np.zeros(1, np.float32)}
    state = optimiser.begin(parameters)
    found = descend(model, optimiser, parameters, state, rows, minibatch=20)
    losses = []
    for begin, end in ((0, 20), (20, 40), (40, 50)):
        loss, gradient = model.loss_and_gradient(parameters, rows.between(begin, end))
        losses.append(loss * (end - begin))
        parameters, state = optimiser.step(parameters, gradient, state)
    for name in parameters:
        np.testing.assert_array_equal(found.parameters[name], parameters[name])
    assert found.state.steps == 3
    assert found.loss == pytest.approx(sum(losses) / 50)
    # In two calls that hand the state over, the same.
    first = descend(
        model,
        optimiser,
        {"weight": np.ones((4, 1), np.float32), "bias": np.zeros(1, np.float32)},
        optimiser.begin(parameters),
        rows.between(0, 20),
        minibatch=20,
    )
    second = descend(model, optimiser, first.parameters, first.state, rows.between(20, 50), minibatch=20)
    np.testing.assert_array_equal(second.parameters["weight"], parameters["weight"])


def test_a_loss_that_is_no_number_ends_the_descent():
    parameters = {"weight": np.full((4, 1), np.inf, np.float32), "bias": np.zeros(1, np.float32)}
    optimiser = SGD()
    with np.errstate(all="ignore"), pytest.raises(BadLoss, match="smaller learning rate"):
        descend(
            LogisticRegression(),
            optimiser,
            parameters,
            optimiser.begin(parameters),
            some_rows(),
            minibatch=10,
        )
