"""A table becomes shards: nothing is lost, each class gives its share, and the same table gives the same bytes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.data import dataset
from training.data.dataset import BadTable, Table, write_dataset
from training.data.manifest import Column, Manifest, RowRange
from training.data.rows import DenseFeatures, Rows, SparseFeatures
from training.data.shard import SHARD_BYTES, SHARDS, BadShard
from training.data.split import held_out_rows, shuffled
from training.data.store import FolderStore, MemoryStore, MissingData, read_rows

TARGETS = st.lists(st.integers(0, 4), min_size=1, max_size=200).map(lambda one: np.array(one, np.int32))
SHARES = st.floats(0.01, 0.9)


def table(rows: int = 500, width: int = 3, **changes) -> Table:
    """Rows whose first feature is their number, so that a row can be found again."""
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((rows, width)) * 7 + 100
    numbers[:, 0] = np.arange(rows)
    facts = {
        "name": "Mine",
        "source": "a test",
        "features": DenseFeatures(numbers),
        "targets": rng.integers(0, 3, rows).astype(np.int32),
        "target": "kind",
        "classes": ("a", "b", "c"),
        "columns": tuple(Column(name=f"x{i}") for i in range(width)),
    }
    return Table(**(facts | changes))


def all_rows(store: MemoryStore, manifest: Manifest, *, held_out: bool = False) -> Rows:
    count = manifest.held_out_rows if held_out else manifest.rows
    return read_rows(store, manifest.ranges(0, count, held_out=held_out))


@given(TARGETS, SHARES, st.integers(0, 2**40))
def test_each_class_gives_its_share_and_keeps_a_row_on_each_side(targets, share, seed):
    held_out = held_out_rows(targets, share, seed)
    for value in np.unique(targets):
        count, out = (targets == value).sum(), held_out[targets == value].sum()
        if count == 1:
            assert out == 0
        else:
            assert 1 <= out <= count - 1
            assert abs(out - share * count) <= 1.0
    np.testing.assert_array_equal(held_out, held_out_rows(targets, share, seed))


@given(st.integers(0, 300), st.integers(0, 2**40))
def test_an_order_has_each_row_once(count, seed):
    np.testing.assert_array_equal(np.sort(shuffled(count, seed)), np.arange(count))


def test_another_seed_holds_out_other_rows():
    targets = np.zeros(1000, np.int32)
    both = held_out_rows(targets, 0.2, 1) & held_out_rows(targets, 0.2, 2)
    assert 15 <= both.sum() <= 70  # 40 are expected; fixed seeds, so this cannot fail by luck


@settings(max_examples=25, deadline=None)
@given(st.integers(20, 400), SHARES, st.integers(0, 100), st.booleans())
def test_every_row_is_stored_once_with_its_class(rows, share, seed, sparse):
    given_table = table(rows)
    if sparse:
        offsets = np.arange(rows + 1, dtype=np.int64)
        places = np.arange(rows, dtype=np.int32)
        features = SparseFeatures(offsets, places, np.ones(rows, np.float32), rows)
        given_table = table(rows, features=features, columns=())
    store = MemoryStore()
    manifest = write_dataset(given_table, store, held_out_share=share, seed=seed)
    assert manifest.rows + manifest.held_out_rows == rows
    seen = np.zeros(rows, dtype=int)
    for held_out, counts in ((False, manifest.class_counts), (True, manifest.held_out_class_counts)):
        found = all_rows(store, manifest, held_out=held_out)
        features = found.features
        numbers = (features.values[:, 0] if isinstance(features, DenseFeatures) else features.places).astype(
            int
        )
        seen[numbers] += 1
        np.testing.assert_array_equal(found.targets, given_table.targets[numbers])
        np.testing.assert_array_equal(np.bincount(found.targets, minlength=3), counts)
    assert (seen == 1).all()


def test_the_same_table_gives_the_same_bytes_and_another_seed_gives_others():
    first, second = MemoryStore(), MemoryStore()
    manifest = write_dataset(table(), first)
    assert write_dataset(table(), second).encode() == manifest.encode()
    assert first.get(manifest.hash) == manifest.encode()
    assert Manifest.decode(manifest.encode()) == manifest
    assert write_dataset(table(), second, seed=1).hash != manifest.hash


def test_columns_are_standardised_by_the_rows_that_are_learned_from():
    store = MemoryStore()
    numbers = np.random.default_rng(1).standard_normal((4000, 3)) * [1.0, 50.0, 0.0] + [0.0, 1e6, 5.0]
    numbers[::7, 0] = np.nan
    given_table = table(4000, features=DenseFeatures(numbers), standardise=True)
    manifest = write_dataset(given_table, store)
    learned = all_rows(store, manifest).features.values
    np.testing.assert_allclose(learned.mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(learned[:, 1].std(), 1.0, atol=1e-3)
    assert not learned[:, 2].any(), "a constant column is 0"
    held_out = held_out_rows(given_table.targets, 0.2, 0)
    mean, scale = manifest.columns[0].mean, manifest.columns[0].scale
    assert mean == pytest.approx(np.nanmean(numbers[~held_out, 0]), rel=1e-9)
    assert scale == pytest.approx(1 / np.nanstd(numbers[~held_out, 0]), rel=1e-9)
    # Missing numbers count as the mean.
    assert (learned[:, 0] == 0.0).sum() == np.isnan(numbers[~held_out, 0]).sum()


def test_shards_are_of_one_size_and_ranges_lead_to_their_rows():
    store = MemoryStore()
    manifest = write_dataset(table(20_000, width=8), store)
    sizes = [shard.byte_count for shard in manifest.shards]
    assert len(sizes) > 20
    assert max(sizes) <= SHARD_BYTES[0] * 1.1
    assert manifest.byte_count == sum(sizes)
    large = write_dataset(
        table(30_000, features=DenseFeatures(np.zeros((30_000, 784), np.uint8)), columns=()), store
    )
    assert SHARDS <= len(large.shards) <= SHARDS * 1.1
    assert max(shard.byte_count for shard in large.shards) > 2 * SHARD_BYTES[0]
    everything = all_rows(store, manifest)
    first = manifest.shards[0].rows
    for begin, end in (
        (0, 1),
        (first - 1, first + 1),
        (3, manifest.rows),
        (manifest.rows - 1, manifest.rows),
    ):
        found = read_rows(store, manifest.ranges(begin, end))
        np.testing.assert_array_equal(found.features.values, everything.features.values[begin:end])
    assert manifest.ranges(first - 1, first + 2) == (
        RowRange(shard=manifest.shards[0].hash, begin=first - 1, end=first),
        RowRange(shard=manifest.shards[1].hash, begin=0, end=2),
    )
    for begin, end in ((-1, 2), (3, 3), (0, manifest.rows + 1)):
        with pytest.raises(ValueError, match="rows"):
            manifest.ranges(begin, end)


def test_rows_and_classes_too_many_to_be_judged_are_refused(monkeypatch):
    monkeypatch.setattr(dataset, "SCORES_LIMIT", 300)
    store, rows = MemoryStore(), table(targets=np.arange(500, dtype=np.int32) % 3, classes=("a", "b", "c"))
    with pytest.raises(BadTable, match="at most 100 rows"):
        write_dataset(rows, store, held_out_share=0.5)
    assert not store._contents
    write_dataset(rows, store)


def test_a_number_that_is_infinite_is_refused():
    numbers = np.ones((500, 3))
    numbers[7, 1] = np.inf
    with pytest.raises(BadShard, match="finite"):
        write_dataset(table(features=DenseFeatures(numbers)), MemoryStore())


@pytest.mark.parametrize("folder", [True, False])
def test_a_store_returns_what_was_put_and_tells_what_was_changed(folder, tmp_path: Path):
    store = FolderStore(tmp_path / "shards") if folder else MemoryStore()
    name = store.put(b"some bytes")
    assert store.put(b"some bytes") == name
    assert store.get(name) == b"some bytes"
    for missing in ("0" * 64, "../" + name, "", "A" * 64):
        with pytest.raises(MissingData):
            store.get(missing)
    if folder:
        assert [file.name for file in (tmp_path / "shards").iterdir()] == [name]
        (tmp_path / "shards" / name).write_bytes(b"other bytes")
    else:
        store = MemoryStore({name: b"other bytes"})
    with pytest.raises(BadShard, match="changed"):
        store.get(name)


def test_a_manifest_that_contradicts_itself_is_refused():
    manifest = write_dataset(table(), MemoryStore())
    stored = manifest.model_dump()
    for change in (
        {"class_counts": (1, 2, 3)},
        {"held_out_class_counts": (1, 2)},
        {"picture": (2, 2)},
        {"shards": ()},
        {"classes": ("a",)},
        {"width": 0},
        {"more": 1},
    ):
        with pytest.raises(ValueError, match="Manifest"):
            Manifest.model_validate(stored | change)
    for junk in (b"", b"[]", b"{}", b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match="cannot be read"):
            Manifest.decode(junk)
