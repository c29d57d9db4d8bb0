"""Running moments against numpy over everything at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from training.rl.normalisers import Moments


@given(st.integers(0, 2**31), st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_merging_chunks_equals_seeing_all_at_once(seed, sizes):
    rng = np.random.default_rng(seed)
    chunks = [rng.standard_normal((size, 3)) * 5 + 100 for size in sizes]
    moments = Moments.empty(3)
    for chunk in chunks:
        moments = moments.merge(chunk)
    seen = np.concatenate(chunks)
    assert moments.count == len(seen)
    if len(seen):
        np.testing.assert_allclose(moments.mean, seen.mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(moments.variance, seen.var(axis=0), rtol=1e-8, atol=1e-10)


def test_merging_changes_no_older_version():
    before = Moments.empty(1).merge(np.array([[1.0], [3.0]]))
    before.merge(np.array([[100.0]]))
    assert before.mean[0] == 2.0
