"""Trained to the end, our models are as good as others': logistic regression as scikit-learn's, by its own loss."""

import numpy as np
import pytest

from tests.training.models.descent import descend
from training.data.dataset import Table, write_dataset
from training.data.generated import sparse_table
from training.data.glyphs import draw_glyphs
from training.data.manifest import Manifest
from training.data.rows import DenseFeatures, Rows
from training.data.shipped import SHIPPED
from training.data.store import MemoryStore, read_rows
from training.supervised.models.click_through import ClickThrough
from training.supervised.models.lenet import LeNet
from training.supervised.models.logistic import LogisticRegression
from training.supervised.models.metrics import judge, majority_loss, summary
from training.supervised.models.model import Model, Parameters
from training.supervised.models.optimisers import SGD, Adam, Momentum, Optimiser


def stored(table: Table) -> tuple[Manifest, Rows, Rows]:
    """The manifest, the rows to learn from, and those held out."""
    store = MemoryStore()
    manifest = write_dataset(table, store)
    return (
        manifest,
        read_rows(store, manifest.ranges(0, manifest.rows)),
        read_rows(store, manifest.ranges(0, manifest.held_out_rows, held_out=True)),
    )


def trained(
    model: Model, optimiser: Optimiser, manifest: Manifest, rows: Rows, *, epochs: int, minibatch: int
) -> Parameters:
    parameters = model.initial_parameters(manifest.shape, 0)
    state = optimiser.begin(parameters)
    for _ in range(epochs):
        parameters, state, _ = descend(model, optimiser, parameters, state, rows, minibatch=minibatch)
    return parameters


@pytest.mark.parametrize("key", ["digits", pytest.param("breast_cancer", marks=pytest.mark.slow)])
def test_logistic_regression_ends_where_that_of_scikit_learn_ends(key):
    from sklearn.linear_model import LogisticRegression as Theirs

    manifest, rows, held_out = stored(SHIPPED[key].make())
    numbers = rows.features.values.astype(np.float64)
    model = LogisticRegression(l2=1e-3)
    parameters = trained(model, Momentum(learning_rate=0.5), manifest, rows, epochs=1500, minibatch=len(rows))
    theirs = Theirs(C=1 / (model.l2 * len(rows)), tol=1e-8, max_iter=5000).fit(numbers, rows.targets)
    # Its weights in our loss, which is its objective over the number of rows.
    as_ours = {"weight": theirs.coef_.T, "bias": theirs.intercept_}
    ours, best = model.loss_and_gradient(parameters, rows)[0], model.loss_and_gradient(as_ours, rows)[0]
    assert ours == pytest.approx(best, rel=1e-3)
    accuracy = summary(judge(model, parameters, held_out)).accuracy
    assert accuracy.low <= theirs.score(held_out.features.values, held_out.targets) <= accuracy.high
    assert accuracy.value > 0.9


def test_the_click_through_classifier_ends_where_logistic_regression_of_the_same_rows_ends():
    """Sparse rows written out as dense ones, so that scikit-learn's loss is an independent oracle."""
    from sklearn.linear_model import LogisticRegression as Theirs

    manifest, rows, held_out = stored(sparse_table(2000, 6, bits=8, values=20))
    model = ClickThrough(l2=1e-3)
    parameters = trained(model, Momentum(learning_rate=1.0), manifest, rows, epochs=600, minibatch=len(rows))
    numbers = np.stack(
        [rows.features.transposed_times(np.eye(1, len(rows), i).T)[:, 0] for i in range(len(rows))]
    )
    theirs = Theirs(C=1 / (model.l2 * len(rows)), tol=1e-8, max_iter=5000).fit(numbers, rows.targets)
    as_ours = {"weight": theirs.coef_.T, "bias": theirs.intercept_}
    ours, best = model.loss_and_gradient(parameters, rows)[0], model.loss_and_gradient(as_ours, rows)[0]
    assert ours == pytest.approx(best, rel=1e-3)
    assert model.loss(parameters, held_out) < majority_loss(manifest) - 0.05


def test_minibatches_lead_to_the_same_place():
    manifest, rows, held_out = stored(SHIPPED["digits"].make())
    model = LogisticRegression()
    parameters = trained(model, SGD(learning_rate=0.5), manifest, rows, epochs=30, minibatch=32)
    assert summary(judge(model, parameters, held_out)).accuracy.value > 0.93
    assert model.loss(parameters, held_out) < 0.25


def test_lenet_learns_glyphs_that_a_linear_model_does_not():
    manifest, rows, held_out = stored(draw_glyphs(1500))
    model = LeNet()
    parameters = trained(model, Adam(learning_rate=3e-3), manifest, rows, epochs=5, minibatch=32)
    linear = LogisticRegression()
    flat = trained(linear, Adam(learning_rate=3e-3), manifest, rows, epochs=5, minibatch=32)
    ours, theirs = summary(judge(model, parameters, held_out)), summary(judge(linear, flat, held_out))
    assert ours.accuracy.low > theirs.accuracy.high
    assert ours.accuracy.value > 0.8


def test_planes_are_found_where_there_are_some():
    manifest, rows, _ = stored(SHIPPED["generated_separable"].make())
    model = LogisticRegression(l2=0.0)
    parameters = trained(model, SGD(learning_rate=5.0), manifest, rows, epochs=20, minibatch=100)
    assert isinstance(rows.features, DenseFeatures)
    assert summary(judge(model, parameters, rows)).accuracy.value > 0.999
