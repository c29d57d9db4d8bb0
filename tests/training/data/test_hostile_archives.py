"""What is wrong with an archive of arrays is said in one sentence, before its data is read."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.training.data.refused_tables import GOOD, archive, npy, prepared, refusal
from training.data.readers.choice import Choice, check
from training.data.readers.opening import open_table
from training.data.readers.survey import survey


def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("x.npy", GOOD)
        with pytest.warns(UserWarning, match="Duplicate name"):
            packed.writestr("x.npy", GOOD)
    assert "“x.npy”" in refusal(tmp_path, out.getvalue(), "t.npz")


def test_an_archive_that_lies_about_its_size_is_not_read_further(tmp_path: Path) -> None:
    """Its directory says fewer bytes than there are, so its sum is wrong."""
    content = archive(**{"x.npy": npy(np.arange(1000.0))})
    size = struct.pack("<I", len(npy(np.arange(1000.0))))
    content = content.replace(size, struct.pack("<I", 8 * 10 + 128))
    assert "Entry “x”" in refusal(tmp_path, content, "t.npz")


def test_entries_that_are_no_column_are_named_and_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    bad = x.copy()
    bad[16, 1] = np.inf
    np.savez(
        path,
        x=x,
        y=y,
        bad=bad,
        by_column=np.asfortranarray(x),
        scalar=3.0,
        when=np.zeros(20, "M8[s]"),
        few=y[:5],
    )
    found = survey(open_table(path))
    problems = [one.sentence for one in check(found, Choice(target="y"))]
    assert [re.findall("“(.+?)”", sentence)[0] for sentence in problems] == [
        "bad",
        "by_column",
        "scalar",
        "when",
        "few",
    ]
    assert problems[0].startswith("Row 17, ")
    choice = Choice(target="y", leave_out=("bad", "by_column", "scalar", "when", "few"))
    made = prepared(path, choice)
    assert (made.width, made.rows + made.held_out_rows) == (2, 20)
