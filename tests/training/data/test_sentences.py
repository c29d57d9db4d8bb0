"""What refuses data says where it is wrong, why, and what to do."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.memory import memory_peak
from tests.training.data.refused_tables import BODY, GOOD, archive, header, npy, prepared, refusal
from tests.training.data.test_dataset import table
from tests.training.data.test_decimal_commas import decimal_commas
from tests.training.data.test_formats import click_line, idx, pictures_and_labels, saved
from training.data.dataset import BadTable, write_dataset
from training.data.formats import opening
from training.data.formats.click_logs import read_click_log
from training.data.formats.mnist import read_mnist
from training.data.formats.reviews import read_reviews
from training.data.readers.choice import Choice, check
from training.data.readers.opening import open_table
from training.data.readers.survey import survey
from training.data.readers.tables import TableRefused
from training.data.store import MemoryStore


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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "The file is empty."),
        ("\n\n\n", "The first row has one column."),
        ("a b c\n1 2 3\n", "The first row has one column."),
        ("a,b\n", "The table has no rows below its names."),
        ("a,b,a\n1,2,3\n", "Row 1: columns 1 and 3 are both named “a”."),
        (BODY + "1,2\n", "Row 102 has 2 cells, and the first row has 4. Column 3 is where they differ"),
        (
            BODY + "1,2,red,1,5\n",
            "Row 102 has 5 cells, and the first row has 4. Column 5 is where they differ",
        ),
        (BODY + '1,2,"red,1\n', "Row 102 cannot be read (unexpected end of data)."),
        (BODY.encode() + b"1,2,r\xe9d,1\n", "Line 102 is not UTF-8 text (byte 0xE9 at letter 6)."),
        (BODY.encode("utf-16"), "The file is UTF-16 text."),
        (BODY.encode("utf-16-le"), "This is no text: it holds NUL characters."),
        (
            ",".join(f"x{at}" for at in range(2001)) + "\n",
            "The table has 2,001 columns; at most 2,000 are allowed.",
        ),
        (gzip.compress(BODY.encode())[:-100], "The packed file is damaged or incomplete"),
        (b"PK\x03\x04 and no more", "The archive cannot be read"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: str | bytes, words: str) -> None:
    assert refusal(tmp_path, content).startswith(words)


@pytest.mark.parametrize(
    ("row", "choice", "words"),
    [
        ("", {"target": "z"}, "The table has no column “z”."),
        ("", {"target": ""}, "Choose the target."),
        ("", {"target": "b"}, "“b” holds fractions."),
        ("", {"target": "y", "leave_out": ["a", "b", "colour"]}, "No column is left to learn from."),
        ("", {"target": "y", "leave_out": ["other"]}, "The table has no column “other”."),
        ("1,2,red,\n", {"target": "y"}, "Row 102, column “y” has no value (1 row without one)."),
        ("x,2,red,1\n", {"target": "y"}, "Row 102, column “a”: “x” is not a number."),
        ("nan,2,red,1\n", {"target": "y"}, "Row 102, column “a”: “nan” is not a finite number."),
        ("1,-Infinity,red,1\n", {"target": "y"}, "Row 102, column “b”: “-Infinity” is not a finite number."),
        (
            "1,2,red,maybe\n",
            {"target": "y"},
            "Row 102, column “y”: “maybe” is not a number. Every row needs its class",
        ),
    ],
)
def test_a_choice_that_cannot_be_learned_is_refused(
    tmp_path: Path, row: str, choice: dict[str, Any], words: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(BODY + row)
    found = survey(open_table(path))
    problems = check(found, Choice.model_validate(choice))
    assert problems[0].sentence.startswith(words)
    store = MemoryStore()
    with pytest.raises(TableRefused, match=problems[0].sentence[:20].replace("(", r"\(")):
        prepared(path, Choice.model_validate(choice), store)
    assert not store._contents


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("constant", "“constant” has the same value (3) in every row."),
        ("name", "“name” is text with 200 different values."),
        ("id", "“id” has more than 1,000 different values."),
    ],
)
def test_a_target_needs_two_classes_or_more_and_not_too_many(tmp_path: Path, target: str, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "x,constant,name,id\n" + "".join(f"{at},3,person {at % 200},{at}\n" for at in range(1200))
    )
    (problem,) = check(survey(open_table(path)), Choice(target=target))
    assert problem.field == "target"
    assert problem.sentence.startswith(words)


def test_a_comma_that_may_divide_thousands_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(TableRefused) as refusal:
        decimal_commas(tmp_path, ["999", "1,234", "12,500"])
    assert str(refusal.value) == (
        "Row 3, column “price”: “1,234” may be 1.234 or 1234. Write decimals with a point, and thousands without a"
        " comma."
    )


PICTURES, LABELS = pictures_and_labels(20)


BAD_MNIST = {
    "only pictures": ([idx(PICTURES)], "needs a file of labels"),
    "other counts": ([idx(PICTURES), idx(LABELS[:-1])], "no file has as many labels"),
    "another magic": ([b"\x89PNG\r\n\x1a\n" + bytes(50), idx(LABELS)], "0x89504e47"),
    "real numbers": ([struct.pack(">II", 0xD01, 1) + bytes(4), idx(LABELS)], "no IDX file of bytes"),
    "cut off": (
        [idx(PICTURES)[:-3], idx(LABELS)],
        "ends after 397 bytes of its contents; it says it has 400",
    ),
    "too long": ([idx(PICTURES) + b"x", idx(LABELS)], "more bytes than it says"),
    "no rows": ([idx(PICTURES[:0]), idx(LABELS[:0])], "is empty"),
    "nothing": ([b"", idx(LABELS)], "ends after 0 bytes"),
    "a lie of gigabytes": ([struct.pack(">4I", 0x803, 2**31, 28, 28), idx(LABELS)], "at most"),
    "wide pictures": ([struct.pack(">4I", 0x803, 1, 2, 10**6), idx(LABELS)], "at most 256 × 256"),
    "damaged gzip": ([gzip.compress(idx(PICTURES))[:-9] + b"123456789", idx(LABELS)], "damaged"),
    "cut gzip": ([gzip.compress(idx(PICTURES))[:60], idx(LABELS)], "damaged"),
    "two sizes": ([idx(PICTURES), idx(LABELS), idx(PICTURES[:6, :3]), idx(LABELS[:6])], "another size"),
}


@pytest.mark.parametrize("fault", BAD_MNIST)
def test_files_that_are_no_mnist_are_refused(tmp_path: Path, fault: str):
    contents, sentence = BAD_MNIST[fault]
    paths = [saved(tmp_path, f"file{i}", data) for i, data in enumerate(contents)]
    with pytest.raises(BadTable, match=sentence):
        read_mnist(paths)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        (click_line() + "\n" + click_line("2"), "Line 2 of log is no row"),
        (click_line() + "\n\n" + click_line() + "\tmore", "Line 3 of log is no row .* has 41 cells"),
        (click_line(counts="many"), "Line 1 of log: I1 is 'many', not a count"),
        ("x" * (opening.LINE_LIMIT_BYTES + 1), "longer than"),
    ],
    ids=["empty", "clicked twice", "too many cells", "no count", "a long line"],
)
def test_a_file_that_is_no_click_log_is_refused(tmp_path: Path, text: str, sentence: str):
    with pytest.raises(BadTable, match=sentence):
        read_click_log([saved(tmp_path, "log", text.encode())])


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"some.txt": b"no label here"}, "Line 1 of some.txt does not begin with __label__"),
        ({"some.txt": b""}, "has no reviews"),
        ({"a.txt": b"x", "b.txt": b"y"}, "negative and which positive"),
        ({"a.pos": b"x", "b.neg": b"y", "c": b""}, "there are 3"),
        ({"bad.tar.gz": b"no archive"}, "no archive that can be read"),
        ({"bad.tgz": gzip.compress(b"no archive")}, "no archive that can be read"),
        ({"labels": b"".join(b"__label__%d x\n" % i for i in range(200))}, "more than 100 labels"),
    ],
)
def test_files_that_are_no_reviews_are_refused(tmp_path: Path, files: dict[str, bytes], sentence: str):
    with pytest.raises(BadTable, match=sentence):
        read_reviews([saved(tmp_path, name, data) for name, data in files.items()])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"targets": np.zeros(500, np.int32)}, "Every row has the same value in 'kind'"),
        ({"targets": np.zeros(1, np.int32)}, "at least 2 rows"),
        ({"targets": np.array([0, 1], np.int32)}, "one row only"),
    ],
)
def test_a_table_that_cannot_be_learned_from_says_why(changes, sentence):
    store = MemoryStore()
    with pytest.raises(BadTable, match=sentence):
        write_dataset(table(**changes), store)


def test_columns_of_an_archive_that_cannot_be_learned_from(tmp_path: Path) -> None:
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    bad = x.copy()
    bad[16, 1] = np.inf
    others = {"by_column": np.asfortranarray(x), "scalar": 3.0, "when": np.zeros(20, "M8[s]"), "few": y[:5]}
    np.savez(tmp_path / "t.npz", y=y, bad=bad, **others)  # type: ignore[arg-type]
    assert [one.sentence for one in check(survey(open_table(tmp_path / "t.npz")), Choice(target="y"))] == [
        "Row 17, column “bad”: inf is not a finite number. Correct it, leave the column out, or take it as text.",
        "“by_column” cannot be learned from: it is saved column by column; save numpy.ascontiguousarray of it. Leave it"
        " out.",
        "“scalar” cannot be learned from: it has no rows. Leave it out.",
        "“when” cannot be learned from: its type datetime64[s] is neither numbers nor text. Leave it out.",
        "“few” has 5 rows and the target “y” has 20. Leave it out, or choose another target.",
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("x,y\n1,0\n2,1\n", "The table has 2 rows; at least 10 are needed."),
        (
            "x,y\n" + "1,0\n" * 20 + "1e300,1\n" * 20,
            "Row 22, column “x”: “1e300” is too large a number. Correct it, leave the column out, or take it as text.",
        ),
    ],
)
def test_values_that_cannot_be_learned_from(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    assert [one.sentence for one in check(survey(open_table(path)), Choice(target="y"))] == [sentence]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "a,b\n1\n",
            "Row 2 has 1 cell, and the first row has 2. Column 2 is where they differ; correct the row.",
        ),
        (
            gzip.compress(BODY.encode() + b"1" * 30_000_000),
            "A row has more than 4,000,000 letters. See whether a quote is not closed.",
        ),
    ],
)
def test_a_row_that_cannot_be_read(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    assert refusal(tmp_path, content) == sentence
