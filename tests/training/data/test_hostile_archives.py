"""What is wrong with an archive of arrays is said in one sentence, before its data is read."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.memory import memory_peak
from tests.training.data.refused_tables import GOOD, archive, header, npy, prepared, refusal
from training.data.readers.choice import Choice, check
from training.data.readers.survey import survey
from training.data.readers.tables import open_table


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"x.npy": npy(np.array([{1}]))}, "Entry “x” holds Python objects (pickle)"),
        (
            {"x.npy": b"\x80\x04cos\nsystem\n(S'true'\ntR."},
            "Entry “x” is no array of numbers or text; it may hold Python",
        ),
        ({"../x.npy": GOOD}, "Entry “../x.npy” has a path in its name."),
        ({"/etc/x.npy": GOOD}, "Entry “/etc/x.npy” has a path in its name."),
        ({"c:\\x.npy": GOOD}, "Entry “c:"),
        ({"notes.txt": b"hello"}, "Entry “notes.txt” is no NumPy array."),
        ({}, "The archive is empty."),
        ({f"x{at}.npy": GOOD for at in range(201)}, "The archive has 201 entries; at most 200 are allowed."),
        ({"x.npy": header("(1000000000000,)")}, "Entry “x” says that it is an array of 1000000000000 values"),
        (
            {"x.npy": header("(2, 3)") + b"\0" * 47},
            "Entry “x” says that it is an array of 2 × 3 values, but it has",
        ),
        ({"x.npy": header("(-2, -3)") + b"\0" * 48}, "Entry “x” says that it is an array of -2 × -3 values"),
        ({"x.npy": header("(2,", "__import__('os')")}, "Entry “x” is no array of numbers or text"),
        ({"x.npy": GOOD, "y.npy": npy(np.zeros(60_000_000, np.uint8))}, "The archive would unpack from"),
    ],
)
def test_a_hostile_archive_is_refused_before_its_data_is_read(
    tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    with memory_peak() as peak:
        path = tmp_path / "t.npz"
        content = archive(**files)
        assert refusal(tmp_path, content, path.name).startswith(words)
    assert peak.grown_bytes < 200 * 2**20


def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("x.npy", GOOD)
        with pytest.warns(UserWarning, match="Duplicate name"):
            packed.writestr("x.npy", GOOD)
    assert refusal(tmp_path, out.getvalue(), "t.npz").startswith("Two entries are named “x.npy”.")


def test_an_archive_that_lies_about_its_size_is_not_read_further(tmp_path: Path) -> None:
    """Its directory says fewer bytes than there are, so its sum is wrong."""
    content = archive(**{"x.npy": npy(np.arange(1000.0))})
    size = struct.pack("<I", len(npy(np.arange(1000.0))))
    content = content.replace(size, struct.pack("<I", 8 * 10 + 128))
    assert refusal(tmp_path, content, "t.npz").startswith("Entry “x” is no array")


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
    assert problems == [
        "Row 17, column “bad”: inf is not a finite number. Correct it, leave the column out, or take it as text.",
        "“by_column” cannot be learned from: it is saved column by column; save numpy.ascontiguousarray of it. Leave it"
        " out.",
        "“scalar” cannot be learned from: it has no rows. Leave it out.",
        "“when” cannot be learned from: its type datetime64[s] is neither numbers nor text. Leave it out.",
        "“few” has 5 rows and the target “y” has 20. Leave it out, or choose another target.",
    ]
    choice = Choice(target="y", leave_out=("bad", "by_column", "scalar", "when", "few"))
    made = prepared(path, choice)
    assert (made.width, made.rows + made.held_out_rows) == (2, 20)


SURROGATES = struct.pack("<I", 0xD800) + struct.pack("<I", ord("a")) * 19


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (header("(20,)", "'<U1'") + SURROGATES, "Row 1, column “x” is not UTF-8 text."),
        (
            header("(10,)", "'>U2'") + struct.pack(">I", ord("a")) * 9 + struct.pack(">I", 0x110000) * 11,
            "Row 5, column “x” is not UTF-8 text.",
        ),
        (npy(np.array(["ab", "a\0b"] * 10)), "Row 2, column “x” is not UTF-8 text."),
        (npy(np.array([b"ab", b"a\0b"] * 10)), "Row 2, column “x” is not UTF-8 text."),
        (npy(np.array([b"ab", b"\xff"] * 10)), "Row 2, column “x” is not UTF-8 text."),
    ],
)
def test_letters_that_no_page_can_show_are_refused(tmp_path: Path, entry: bytes, words: str) -> None:
    assert refusal(tmp_path, archive(**{"x.npy": entry}), "t.npz") == words


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (header("(20,)", "'|S0'"), "“x” cannot be learned from: its texts have no letters. Leave it out."),
        (
            header(f"(20,{'1,' * 70})") + b"\0" * 160,
            "“x” cannot be learned from: it has 71 dimensions; at most 8 are allowed. Leave it out.",
        ),
        (
            npy(np.zeros((20, 200, 200))),
            "A row would have 40,000 numbers; at most 20,000 are allowed, except in one picture.",
        ),
    ],
)
def test_arrays_that_are_no_column_are_named_before_they_are_read(
    tmp_path: Path, entry: bytes, words: str
) -> None:
    path = tmp_path / "t.npz"
    path.write_bytes(archive(**{"x.npy": entry, "y.npy": npy(np.arange(20) % 2)}))
    (problem,) = check(survey(open_table(path)), Choice(target="y"))
    assert problem.sentence == words
