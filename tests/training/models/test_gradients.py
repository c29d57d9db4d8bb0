"""Every model's loss and gradient are torch's, in double precision."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from tests.memory import memory_peak
from tests.training.data.test_shard import sparse
from training.data.manifest import DataShape
from training.data.rows import DenseFeatures, Rows, SparseFeatures
from training.supervised.models.click_through import ClickThrough
from training.supervised.models.lenet import LeNet
from training.supervised.models.logistic import LogisticRegression
from training.supervised.models.losses import cross_entropy, probabilities_of
from training.supervised.models.model import Model


def torch_outputs(model: Model, parameters: dict[str, torch.Tensor], features) -> torch.Tensor:
    if isinstance(features, SparseFeatures):
        numbers = torch.zeros(len(features), features.width, dtype=torch.float64)
        lines = np.repeat(np.arange(len(features)), np.diff(features.offsets))
        places = (torch.from_numpy(lines), torch.from_numpy(features.places).long())
        numbers.index_put_(places, torch.from_numpy(features.values).double(), accumulate=True)
    else:
        numbers = torch.from_numpy(features.numbers(np.float64))
    if not isinstance(model, LeNet):
        return numbers @ parameters["weight"] + parameters["bias"]
    activate = torch.tanh if model.activation == "tanh" else torch.relu
    side = round(features.width**0.5)
    x = numbers.reshape(-1, 1, side, side)
    for i, pad in ((0, 2), (1, 0)):
        weight, bias = (parameters[f"convolution.{i}.{part}"] for part in ("weight", "bias"))
        x = functional.avg_pool2d(activate(functional.conv2d(x, weight, bias, padding=pad)), 2)
    x = x.flatten(1)
    for i in range(len(model.hidden) + 1):
        x = x @ parameters[f"dense.{i}.weight"] + parameters[f"dense.{i}.bias"]
        x = x if i == len(model.hidden) else activate(x)
    return x


def torch_loss(model: Model, parameters: dict[str, torch.Tensor], rows: Rows) -> torch.Tensor:
    outputs = torch_outputs(model, parameters, rows.features)
    targets = torch.from_numpy(rows.targets).long()
    if outputs.shape[1] == 1:
        loss = functional.binary_cross_entropy_with_logits(outputs[:, 0], targets.double())
    else:
        loss = functional.cross_entropy(outputs, targets)
    weights = [one for name, one in parameters.items() if not name.endswith("bias")]
    return loss + model.l2 / 2 * sum((one * one).sum() for one in weights)


@st.composite
def models_with_rows(draw) -> tuple[Model, DataShape, Rows]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, classes = draw(st.integers(1, 40)), draw(st.integers(2, 5))
    kind = draw(st.sampled_from(["logistic", "click_through", "lenet", "pictures"]))
    l2 = draw(st.sampled_from([0.0, 1e-3, 0.5]))
    targets = rng.integers(0, classes, count).astype(np.int32)
    if kind == "click_through":
        features = sparse(rng, count, 50)
        return ClickThrough(l2=l2), DataShape("sparse", 50, classes, 3.0), Rows(features, targets)
    if kind == "logistic":
        features = DenseFeatures(rng.standard_normal((count, 7)).astype(np.float32))
        return LogisticRegression(l2=l2), DataShape("dense", 7, classes, 7.0), Rows(features, targets)
    side = draw(st.sampled_from([12, 16]))
    pictures = rng.integers(0, 256, (count, side * side)).astype(np.uint8)
    hidden = draw(st.sampled_from([(), (9,), (8, 6)]))
    model = LeNet(l2=l2, filters=(3, 4), hidden=hidden, activation=draw(st.sampled_from(["tanh", "relu"])))
    shape = DataShape("dense", side * side, classes, side * side, (side, side))
    return model, shape, Rows(DenseFeatures(pictures), targets)


@settings(max_examples=60, deadline=None)
@given(models_with_rows(), st.integers(0, 2**31))
def test_the_gradient_is_that_of_torch(case, seed):
    model, shape, rows = case
    rng = np.random.default_rng(seed)
    parameters = {
        name: array + 0.3 * rng.standard_normal(array.shape)
        for name, array in model.initial_parameters(shape, seed).items()
    }
    leaves = {name: torch.from_numpy(array).requires_grad_() for name, array in parameters.items()}
    expected = torch_loss(model, leaves, rows)
    expected.backward()
    loss, gradient = model.loss_and_gradient(parameters, rows)
    assert loss == pytest.approx(expected.item(), rel=1e-9)
    assert list(gradient) == list(parameters)
    for name, leaf in leaves.items():
        found, right = gradient[name], leaf.grad.numpy()
        assert found.dtype == np.float64
        assert np.linalg.norm(found - right) <= 1e-6 * np.linalg.norm(right) + 1e-12, name


@settings(max_examples=20, deadline=None)
@given(models_with_rows())
def test_single_precision_follows_double_precision(case):
    model, shape, rows = case
    single = model.initial_parameters(shape, 3)
    double = {name: array.astype(np.float64) for name, array in single.items()}
    loss, gradient = model.loss_and_gradient(single, rows)
    exact_loss, exact = model.loss_and_gradient(double, rows)
    assert loss == pytest.approx(exact_loss, rel=1e-4)
    for name in single:
        assert gradient[name].dtype == np.float32
        np.testing.assert_allclose(gradient[name], exact[name], rtol=1e-3, atol=1e-4)
    assert model.predict(single, rows.features).dtype == np.float32


def test_lenet_adds_its_chunks_of_pictures_up():
    rng = np.random.default_rng(0)
    model, shape = LeNet(filters=(2, 3), hidden=(5,)), DataShape("dense", 144, 3, 144, (12, 12))
    parameters = model.initial_parameters(shape, 0)
    rows = Rows(
        DenseFeatures(rng.integers(0, 256, (37, 144)).astype(np.uint8)), rng.integers(0, 3, 37).astype("i4")
    )
    one_by_one = [model.cross_entropy_and_gradient(parameters, rows.between(i, i + 1)) for i in range(37)]
    loss, gradient = model.cross_entropy_and_gradient(parameters, rows)
    assert loss == pytest.approx(np.mean([one for one, _ in one_by_one]), rel=1e-5)
    for name in parameters:
        mean = np.mean([one[name] for _, one in one_by_one], axis=0)
        np.testing.assert_allclose(gradient[name], mean, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(
        model.outputs(parameters, rows.features),
        np.concatenate([model.outputs(parameters, rows.features.between(i, i + 1)) for i in range(37)]),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("columns", [1, 3])
def test_a_loss_of_huge_outputs_is_finite_and_right(columns):
    outputs = np.zeros((2, columns), dtype=np.float32)
    outputs[0, 0], outputs[1, 0] = 1e4, -1e4
    wrong = np.array([0, 1], np.int32) if columns == 1 else np.array([1, 0], np.int32)
    loss, slopes = cross_entropy(outputs, wrong)
    assert loss == pytest.approx(1e4, rel=1e-3)
    assert np.isfinite(slopes).all()
    right, _ = cross_entropy(outputs, 1 - wrong)
    assert right == pytest.approx(0.0 if columns == 1 else np.log(2) / 2, abs=1e-6)
    assert probabilities_of(outputs).sum(axis=1) == pytest.approx(np.ones(2))


MISFITS = [
    (LogisticRegression(), DataShape("sparse", 9, 2, 1.0), "choose click-through"),
    (ClickThrough(), DataShape("dense", 9, 2, 9.0), "choose logistic"),
    (LeNet(), DataShape("dense", 9, 2, 9.0), "no picture"),
    (LeNet(), DataShape("dense", 64, 10, 64.0, (8, 8)), "8 × 8"),
    (LeNet(), DataShape("dense", 12 * 16, 10, 192.0, (12, 16)), "square"),
    (LeNet(), DataShape("dense", 260 * 260, 10, 67_600.0, (260, 260)), "256 × 256"),
    (LeNet(filters=(4096, 4096)), DataShape("dense", 784, 10, 784.0, (28, 28)), "at most 20,000,000"),
    (LeNet(hidden=(4096,) * 4), DataShape("dense", 256**2, 2, 65_536.0, (256, 256)), "at most 20,000,000"),
    (LogisticRegression(), DataShape("dense", 2_000_000, 1000, 2e6), "2,000,001,000 parameters"),
    (ClickThrough(), DataShape("sparse", 2**22, 100, 9.0), "at most 20,000,000"),
]


@pytest.mark.parametrize(("model", "shape", "word"), MISFITS)
def test_a_model_says_why_it_does_not_fit_the_data(model, shape, word):
    with memory_peak() as peak:
        assert word in model.misfit(shape)
        with pytest.raises(ValueError, match=re.escape(word)):
            model.initial_parameters(shape, 0)
    assert peak.grown_bytes < 10 * 2**20


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (LogisticRegression(), DataShape("dense", 64, 10, 64.0)),
        (ClickThrough(), DataShape("sparse", 2**18, 2, 9.0)),
        (LeNet(hidden=(7,)), DataShape("dense", 400, 3, 400.0, (20, 20))),
    ],
)
def test_the_shapes_that_are_reported_are_those_of_the_parameters(model, shape):
    parameters = model.initial_parameters(shape, 0)
    assert {name: array.shape for name, array in parameters.items()} == model.shapes(shape)


def test_the_work_of_a_row_is_counted_by_hand():
    assert LogisticRegression().macs(DataShape("dense", 30, 2, 30.0)) == 30
    assert LogisticRegression().macs(DataShape("dense", 64, 10, 64.0)) == 640
    assert ClickThrough().macs(DataShape("sparse", 2**18, 2, 8.6)) == 9
    lenet = 28 * 28 * 6 * 25 + 10 * 10 * 16 * 6 * 25 + 400 * 120 + 120 * 84 + 84 * 10
    assert LeNet().macs(DataShape("dense", 784, 10, 784.0, (28, 28))) == lenet
