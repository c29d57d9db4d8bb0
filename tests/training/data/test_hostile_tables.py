"""What is wrong with a table is said in one sentence with its row and column, before anything is made of it."""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.memory import memory_peak
from tests.servers import ROOT
from training.data.readers import preparing
from training.data.readers.choice import Choice, check
from training.data.readers.preparing import prepare
from training.data.readers.survey import survey
from training.data.readers.tables import MOST_UNPACKED_BYTES, TableRefused, open_table
from training.data.store import MemoryStore

BODY = "a,b,colour,y\n" + "".join(
    f"{at},{at % 7 / 2},{'red' if at % 3 else 'blue'},{at % 2}\n" for at in range(100)
)


def refusal(path: Path, content: str | bytes, name: str = "t.csv") -> str:
    file = path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(TableRefused) as refused:
        survey(open_table(file))
    return str(refused.value)


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
        prepare(
            open_table(path),
            found,
            Choice.model_validate(choice),
            store,
            name="t",
            source="",
            scratch_folder=tmp_path,
        )
    assert not store._contents


def test_a_column_with_a_fault_may_be_left_out_or_taken_as_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(BODY + "x,2,red,1\n")
    found = survey(open_table(path))
    assert found.columns[0].problem == "Row 102, column “a”: “x” is not a number."
    for choice in (Choice(target="y", leave_out=("a",)), Choice(target="y", as_text=("a",))):
        made = prepare(
            open_table(path), found, choice, MemoryStore(), name="t", source="", scratch_folder=tmp_path
        )
        assert made.rows + made.held_out_rows == 101


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


def test_a_table_of_few_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,0\n2,1\n")
    (problem,) = check(survey(open_table(path)), Choice(target="y"))
    assert problem.sentence == "The table has 2 rows; at least 10 are needed."


def archive(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return out.getvalue()


def npy(array: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def header(shape: str, descr: str = "'<f8'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


GOOD = npy(np.arange(20.0))


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
    told = struct.pack("<I", len(npy(np.arange(1000.0))))
    content = content.replace(told, struct.pack("<I", 8 * 10 + 128))
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
    made = prepare(
        open_table(path), found, choice, MemoryStore(), name="t", source="", scratch_folder=tmp_path
    )
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


@pytest.mark.parametrize("number", ["1e300", "-1.7e308", "3.5e38"])
@pytest.mark.parametrize("other", ["1", "red"])
def test_a_number_that_no_feature_can_hold_is_named(tmp_path: Path, number: str, other: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + f"3e38,{other},1\n" * 20 + f"{number},{other},0\n" * 20)
    found = survey(open_table(path))
    (problem,) = check(found, Choice(target="y"))
    assert problem.sentence.startswith(f"Row 22, column “a”: “{number}” is too large a number.")
    np.savez(tmp_path / "t.npz", a=[float(number)] * 20, y=np.arange(20) % 2)
    (problem,) = check(survey(open_table(tmp_path / "t.npz")), Choice(target="y"))
    assert "is too large a number." in problem.sentence


def test_numbers_that_are_not_finite_may_be_taken_as_text(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, a=[np.inf, np.nan] * 10, y=np.arange(20) % 2)
    choice = Choice(target="y", as_text=("a",))
    made = prepare(
        open_table(path),
        survey(open_table(path)),
        choice,
        MemoryStore(),
        name="t",
        source="",
        scratch_folder=tmp_path,
    )
    assert made.columns[0].type == "category"


def test_a_class_whose_name_is_a_book_is_refused(tmp_path: Path) -> None:
    """Names of classes are in the manifest, on pages and in every list of data sets."""
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{at},{'q' * 201}{at % 2}\n" for at in range(20)))
    with pytest.raises(
        TableRefused, match="“y” has a class whose name has 202 letters; at most 200 are allowed"
    ):
        prepare(
            open_table(path),
            survey(open_table(path)),
            Choice(target="y"),
            MemoryStore(),
            name="t",
            source="",
            scratch_folder=tmp_path,
        )


def test_a_wide_table_of_long_texts_has_a_small_survey(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [",".join([str(row % 2), *(["é" * 190 + str(row)] * 400)]) + "\n" for row in range(20)]
    path.write_text(",".join(["y", *(f"x{at}" for at in range(400))]) + "\n" + "".join(rows))
    found = survey(open_table(path))
    assert found.columns[1].values
    assert not found.columns[-1].values
    assert len(found.model_dump_json()) < 1_500_000


def test_names_that_fill_a_manifest_are_refused(tmp_path: Path) -> None:
    """A manifest is read in a limited size, so none is written that could not be read."""
    path = tmp_path / "t.npz"
    wide = {f"{'🦜' * 90}{at:>03}": np.zeros((10, 500), np.float32) for at in range(40)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, array in {**wide, "y": np.arange(10) % 2}.items():
            packed.writestr(f"{name}.npy", npy(array))
    store = MemoryStore()
    with pytest.raises(TableRefused, match=r"names of its columns, classes and texts have 2. MB together"):
        prepare(
            open_table(path),
            survey(open_table(path)),
            Choice(target="y"),
            store,
            name="t",
            source="",
            scratch_folder=tmp_path,
        )


@pytest.mark.parametrize("other", ["3", "red"])
def test_features_that_would_fill_the_disk_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(preparing, "MOST_SCRATCH_BYTES", 20_000)
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{at},{other},{at % 2}\n" for at in range(4000)))
    store = MemoryStore()
    with pytest.raises(TableRefused, match="GB of the disk"):
        prepare(
            open_table(path),
            survey(open_table(path)),
            Choice(target="y"),
            store,
            name="t",
            source="",
            scratch_folder=tmp_path,
        )
    assert not store._contents
    assert [one.name for one in tmp_path.iterdir()] == ["t.csv"]


def test_a_small_packed_file_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as packed:
        packed.write(b"a,b\n")
        for _ in range(60):
            packed.write(b"1" * 999_997 + b",0\n")
    with memory_peak() as peak:
        words = refusal(tmp_path, out.getvalue())
    assert words == "The file unpacks to more than 200 times its size, which no table does."
    assert MOST_UNPACKED_BYTES >= 10**9
    assert peak.grown_bytes < 100 * 2**20


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    with memory_peak() as peak:
        words = refusal(tmp_path, gzip.compress(BODY.encode() + b"1" * 30_000_000))
    assert words == "A row has more than 4,000,000 letters. See whether a quote is not closed."
    assert peak.grown_bytes < 100 * 2**20


def run_reader(*arguments: str, given: Any = None) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, "-m", "training.data.readers", *arguments],
        input="" if given is None else json.dumps(given),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_the_process_that_reads_prints_a_survey_a_hash_or_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(BODY)
    found = run_reader("survey", str(path))["survey"]
    assert [one["name"] for one in found["columns"]] == ["a", "b", "colour", "y"]
    asked = {"survey": found, "choice": {"target": "y"}, "name": "t", "source": "s"}
    name = run_reader("prepare", str(path), str(tmp_path / "store"), given=asked)["manifest"]
    assert (tmp_path / "store" / name).is_file()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["store", "t.csv"], (
        "scratch files are left behind"
    )
    path.write_text("a,b\n1\n")
    assert run_reader("survey", str(path)) == {
        "refused": "Row 2 has 1 cell, and the first row has 2. Column 2 is where they differ; correct the row."
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is the kernel's")
def test_the_process_that_reads_gets_no_more_memory_than_its_limit() -> None:
    program = (
        "from training.data.readers.__main__ import MEMORY_LIMIT_BYTES, limit_memory\n"
        "limit_memory(MEMORY_LIMIT_BYTES)\n"
        "import numpy\n"
        "try:\n    numpy.ones(600 * 2**20, numpy.uint8)\nexcept MemoryError:\n    print('refused')"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert answer.stdout.strip() == "refused", answer.stderr
