"""Tables in any form are read as csv and numpy read them, piece by piece, whatever the size of a piece."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from training.data.dataset import Table, write_dataset
from training.data.hashing import place_of, words_and_pairs
from training.data.readers import csv_table
from training.data.readers.choice import Choice
from training.data.readers.opening import open_table
from training.data.readers.preparing import prepare
from training.data.readers.survey import TableSurvey, format_number, survey
from training.data.readers.tables import LARGEST, TableFile, TableRefused, parse_numbers
from training.data.rows import DenseFeatures, SparseFeatures
from training.data.store import MemoryStore, read_rows
from training.supervised.models.logistic import LogisticRegression

SETTINGS = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
LETTERS = st.characters(codec="utf-8", exclude_characters="\0\ufeff", exclude_categories=("Cs",))
CELL = st.one_of(
    st.text(LETTERS, max_size=6),
    st.sampled_from(
        ["", "NA", "1", "-2.5e3", "1_0", "٣", "nan", "inf", '"', "a\nb", "a\r\nb", " 7 ", ",", ";"]
    ),
)
NUMBER = st.floats(allow_nan=False, allow_infinity=False, width=32)


def written(folder: Path, content: bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def cells_of(table: TableFile) -> list[list[str]]:
    """All rows, as text."""
    rows: list[list[str]] = []
    for piece in table.pieces(table.names, as_cells=True):
        assert piece.first_row == len(rows)
        rows += [list(row) for row in zip(*piece.columns, strict=True)]
    return rows


@SETTINGS
@given(
    st.integers(2, 4).flatmap(
        lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), max_size=12)
    ),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.booleans(),
    st.sampled_from([1, 7, 1000]),
)
def test_any_csv_reads_back_as_it_was_written(
    tmp_path: Path,
    rows: list[list[str]],
    delimiter: str,
    newline: str,
    quoting: Any,
    packed: bool,
    letters: int,
) -> None:
    if quoting == csv.QUOTE_MINIMAL:  # the writer does not quote every end of a line
        rows = [[cell.replace("\r", "").replace("\n", "") for cell in row] for row in rows]
    width = len(rows[0]) if rows else 2
    names = [f"name {at}" for at in range(width)]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=quoting).writerows([names, *rows])
    content = text.getvalue().encode()
    path = written(tmp_path, gzip.compress(content) if packed else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "_PIECE_LETTERS", letters)
        table = open_table(path)
        assert table.names == tuple(names)
        assert cells_of(table) == rows


@SETTINGS
@given(
    st.integers(2, 5).flatmap(
        lambda width: st.lists(st.lists(NUMBER, min_size=width, max_size=width), min_size=1, max_size=30)
    ),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([5, 60, 10_000]),
)
def test_numbers_read_at_once_are_those_read_cell_by_cell(
    tmp_path: Path, rows: list[list[float]], delimiter: str, newline: str, letters: int
) -> None:
    names = delimiter.join(f"x{at}" for at in range(len(rows[0])))
    lines = [names, *(delimiter.join(map(repr, row)) for row in rows)]
    path = written(tmp_path, newline.join(lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "_PIECE_LETTERS", letters)
        table = open_table(path)
        at_once = [piece.columns for piece in table.pieces(table.names)]
        whole = np.concatenate(
            [np.array([_floats(column) for column in columns]) for columns in at_once], axis=1
        )
        assert (np.array(rows) == whole.T).all()
        assert [[float(cell) for cell in row] for row in cells_of(table)] == rows


def _floats(column: Any) -> Any:
    return column if isinstance(column, np.ndarray) else np.array(list(map(float, column)))


@SETTINGS
@given(st.lists(CELL, min_size=1, max_size=20))
@example(["1", "1E100"])
def test_cells_are_numbers_missing_or_named_as_the_first_fault(cells: list[str]) -> None:
    parsed = parse_numbers(cells)
    assert parsed.missing == sum(cell.strip() in ("", "NA") for cell in cells)
    plain = [_as_number(cell) for cell in cells]
    wrong = [at for at, (cell, number) in enumerate(zip(cells, plain, strict=True))
             if number is None and cell.strip() not in ("", "NA")]  # fmt: skip
    assert (parsed.fault is None) == (not wrong)
    if wrong:
        assert parsed.fault_row == wrong[0]
    for value, number in zip(parsed.values.tolist(), plain, strict=True):
        assert np.isnan(value) if number is None else value == number


def _as_number(cell: str) -> float | None:
    try:
        number = float(cell) if cell.isascii() and "_" not in cell else float(cell.strip().encode("ascii"))
    except ValueError:
        return None
    return number if abs(number) <= LARGEST and "_" not in cell else None


@SETTINGS
@given(
    st.sampled_from(["u1", "i4", ">i8", "f4", "<f8", "?"]),
    st.lists(st.integers(1, 5), min_size=0, max_size=3),
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from([1, 64, 10**6]),
)
def test_any_archive_reads_back_as_numpy_wrote_it(
    tmp_path: Path, dtype: str, row: list[int], count: int, packed: bool, piece_bytes: int
) -> None:
    numbers = np.arange(count * int(np.prod(row)), dtype="i4").reshape(count, *row).astype(dtype)
    names = np.array([f"n{at}" for at in range(count)])
    path = tmp_path / "table.npz"
    (np.savez_compressed if packed else np.savez)(
        path, numbers=numbers, names=names, encoded=names.astype("S")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.data.readers.npz_table._PIECE_BYTES", piece_bytes)
        table = open_table(path)
        pieces = list(table.pieces(("numbers", "names", "encoded")))
    flat = numbers.reshape(count, -1) if numbers.ndim > 2 else numbers
    assert (np.concatenate([piece.columns[0] for piece in pieces]) == flat).all()
    for at in (1, 2):
        assert [cell for piece in pieces for cell in piece.columns[at]] == names.tolist()


def test_a_survey_counts_what_is_in_each_column(tmp_path: Path) -> None:
    lines = ["size,colour,note,y"]
    lines += [
        f"{at if at % 5 else ''},{'red' if at % 3 else 'blue'},note {at} {at} words {at} {at} long,{at % 2}"
        for at in range(60)
    ]
    found = survey(open_table(written(tmp_path, "\n".join(lines).encode())))
    size, colour, note, y = found.columns
    given_sizes = [at for at in range(60) if at % 5]
    assert (size.type, size.missing, size.first_missing) == ("number", 12, 2)
    assert (size.low, size.high, size.mean) == (1, 59, np.mean(given_sizes))
    assert (colour.type, colour.values) == ("text", (("red", 40), ("blue", 20)))
    assert (note.type, note.distinct) == ("words", 60)
    assert (y.values, y.whole) == ((("0", 30), ("1", 30)), True)
    assert (found.rows, found.first_rows[0]) == (60, ("", "blue", "note 0 0 words 0 0 long", "0"))


def test_a_first_row_with_a_number_is_data_unless_it_counts_the_columns(tmp_path: Path) -> None:
    bare = survey(open_table(written(tmp_path, b"5.1,cat,0\n4.9,dog,1\n")))
    assert (bare.named, bare.rows, bare.columns[2].name) == (False, 2, "column 3")
    counted = survey(open_table(written(tmp_path, b"0,1,2\n5.1,cat,0\n4.9,dog,1\n")))
    assert (counted.named, counted.rows, counted.columns[2].name) == (True, 2, "2")
    unnamed = survey(open_table(written(tmp_path, b",x,y\n0,5.1,0\n1,4.9,1\n")))
    assert [one.name for one in unnamed.columns] == ["column 1", "x", "y"]


def data_set(path: Path, choice: Choice) -> tuple[TableSurvey, Any, Any, MemoryStore]:
    """The survey, the manifest, all rows in order of the shards, and their store."""
    store = MemoryStore()
    found = survey(open_table(path))
    made = prepare(open_table(path), found, choice, store, name="t", source="s", scratch_folder=path.parent)
    return found, made, read_rows(store, made.ranges(0, made.rows)), store


def test_numbers_become_the_data_set_that_a_table_in_memory_becomes(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    numbers, y = rng.normal(3, 7, (500, 4)).astype(np.float32), rng.integers(0, 3, 500).astype(np.int32)
    lines = [
        "a,b,c,d,y",
        *(",".join([*map(repr, row.tolist()), str(kind)]) for row, kind in zip(numbers, y, strict=True)),
    ]
    _, made, rows, _ = data_set(written(tmp_path, "\n".join(lines).encode()), Choice(target="y", seed=7))
    columns = tuple(one.model_copy(update={"mean": 0.0, "scale": 1.0}) for one in made.columns)
    whole = Table("t", "s", DenseFeatures(numbers), y, "y", ("0", "1", "2"), columns, standardise=True)
    assert write_dataset(whole, MemoryStore(), seed=7) == made
    assert abs(rows.features.values.mean(axis=0)).max() < 1e-6
    assert abs(rows.features.values.std(axis=0) - 1).max() < 1e-5


@pytest.mark.parametrize("beside", ["", "carrier"])
def test_times_in_seconds_keep_their_last_digits(beside: str, tmp_path: Path) -> None:
    """Float32 has steps of 128 s there."""
    rng = np.random.default_rng(22)
    at, y = 1_700_000_000 + rng.integers(0, 600, 200), rng.integers(0, 2, 200)
    rows = [f"{a},{b}" + (f",{'xy'[b]}" if beside else "") for a, b in zip(at, y, strict=True)]
    table = open_table(
        written(tmp_path, "\n".join(["at,y" + (f",{beside}" if beside else ""), *rows]).encode())
    )
    found = survey(table)
    store = MemoryStore()
    manifest = prepare(table, found, Choice(target="y"), store, name="t", source="s", scratch_folder=tmp_path)
    learned = read_rows(store, manifest.ranges(0, manifest.rows)).features
    if isinstance(learned, DenseFeatures):
        values = learned.values[:, 0]
    else:
        values = learned.values[learned.places == place_of("at", "", Choice(target="y").place_bits)]
    column = next(one for one in manifest.columns if one.name == "at")
    back = values.astype(np.float64) / column.scale + column.mean
    assert np.abs(back - np.rint(back)).max() < 0.001
    assert {int(one) for one in np.rint(back)} <= set(at.tolist())
    assert np.std(values) == pytest.approx(1.0, abs=0.01)


def test_texts_are_hashed_and_numbers_beside_them_are_standardised(tmp_path: Path) -> None:
    lines = ["size,colour,code,note,y"]
    lines += [
        f"{at},{'' if at == 4 else 'red'},{at % 3}.0,to be or not to be,{'no' if at % 4 else 'yes'}"
        for at in range(40)
    ]
    choice = Choice(target="y", as_text=("code",), place_bits=12)
    _, made, rows, _ = data_set(written(tmp_path, "\n".join(lines).encode()), choice)
    assert (made.kind, made.width, made.classes) == ("sparse", 4096, ("no", "yes"))
    assert (made.class_counts, made.held_out_class_counts) == ((24, 8), (6, 2))
    assert isinstance(rows.features, SparseFeatures)
    size = next(one for one in made.columns if one.name == "size")
    found = [
        dict(zip(one.places.tolist(), one.values.tolist(), strict=True))
        for one in (rows.features.between(at, at + 1) for at in range(len(rows)))
    ]
    sizes = [round(one.get(place_of("size", "", 12), 0.0) / size.scale + size.mean) for one in found]
    assert np.mean(sizes) == pytest.approx(size.mean)
    for number, one, kind in zip(sizes, found, rows.targets.tolist(), strict=True):
        assert kind == (number % 4 == 0)
        assert (place_of("colour", "red", 12) in one) == (number != 4)
        assert one[place_of("code", str(number % 3), 12)] == 1
        share = len({place_of("note", text, 12) for text in words_and_pairs("to be or not to be")}) ** -0.5
        assert one[place_of("note", "not", 12)] == pytest.approx(share)


def test_columns_of_few_categories_get_a_place_for_each_so_that_logistic_regression_learns_them(
    tmp_path: Path,
) -> None:
    lines = ["size,colour,code,y"]
    lines += [
        f"{at},{'' if at == 4 else ('red', 'blue')[at % 2]},{10 * (at % 3)}.0,{at % 4 // 2}"
        for at in range(80)
    ]
    choice = Choice(target="y", as_text=("code",))
    _, made, rows, _ = data_set(written(tmp_path, "\n".join(lines).encode()), choice)
    assert (made.kind, made.width) == ("dense", 6)
    assert [(one.name, one.category) for one in made.columns] == [
        *(("size", ""), ("colour", "blue"), ("colour", "red")),
        *(("code", "0"), ("code", "10"), ("code", "20")),
    ]
    mean, scale = (np.array([getattr(one, name) for one in made.columns]) for name in ("mean", "scale"))
    for row, kind in zip(
        rows.features.values.astype(float) / scale + mean, rows.targets.tolist(), strict=True
    ):
        at = round(row[0])
        colours = [0, 0] if at == 4 else [at % 2, 1 - at % 2]
        assert row[1:] == pytest.approx([*colours, *(float(at % 3 == code) for code in range(3))], abs=1e-5)
        assert kind == at % 4 // 2
    assert LogisticRegression().other_data(made.shape) == ""


@pytest.mark.parametrize(("categories", "kind"), [(49, "dense"), (50, "sparse")])
def test_from_fifty_categories_on_texts_are_hashed(tmp_path: Path, categories: int, kind: str) -> None:
    lines = ["size,code,y", *(f"{at},c{at % categories},{at % 2}" for at in range(200))]
    _, made, _, _ = data_set(written(tmp_path, "\n".join(lines).encode()), Choice(target="y"))
    assert made.kind == kind


def test_a_missing_number_counts_as_the_mean(tmp_path: Path) -> None:
    lines = ["x,y", *(f"{'' if at % 5 == 0 else at},{at % 2}" for at in range(100))]
    _, made, rows, _ = data_set(written(tmp_path, "\n".join(lines).encode()), Choice(target="y"))
    assert made.columns[0].missing == 20
    assert int((rows.features.values == 0).sum()) == pytest.approx(16, abs=4)


@pytest.mark.parametrize("form", ["archive", "columns"])
def test_pictures_stay_bytes(tmp_path: Path, form: str) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (40, 8, 8), dtype=np.uint8)
    y = np.arange(40) % 4
    if form == "archive":
        path = tmp_path / "t.npz"
        np.savez_compressed(path, x=pixels, y=y, of_the_test=y[:10])
        choice = Choice(target="y", leave_out=("of_the_test",))
    else:
        lines = [",".join(["label", *(f"{at}x" for at in range(64))])]
        lines += [
            ",".join(map(str, [kind, *row])) for kind, row in zip(y, pixels.reshape(40, -1), strict=True)
        ]
        path, choice = written(tmp_path, "\n".join(lines).encode()), Choice(target="label")
    _, made, rows, _ = data_set(path, choice)
    assert (made.picture, made.classes, made.columns) == ((8, 8), ("0", "1", "2", "3"), ())
    known = {row.tobytes(): kind for row, kind in zip(pixels.reshape(40, -1), y.tolist(), strict=True)}
    assert rows.features.values.dtype == np.uint8
    assert [known[row.tobytes()] for row in rows.features.values] == rows.targets.tolist()


@pytest.mark.parametrize(
    "write", [lambda text: text, lambda text: text.replace(",", ";").replace("\n", "\r\n")]
)
def test_the_same_table_and_choice_have_the_same_hash(tmp_path: Path, write: Callable[[str], str]) -> None:
    text = "a,b,y\n" + "".join(f"{at},x{at % 7},{at % 2}\n" for at in range(50))
    hashes = {
        data_set(written(tmp_path, one.encode()), Choice(target="y"))[1].hash for one in (text, write(text))
    }
    assert len(hashes) == 1
    other = data_set(written(tmp_path, text.encode()), Choice(target="y", seed=1))[1].hash
    assert other not in hashes


@SETTINGS
@given(
    st.binary(max_size=300) | st.text(max_size=200).map(str.encode),
    st.sampled_from(["", "PK\x03\x04", "\x1f\x8b\x08\x00", "a,b\n1,2\n"]),
)
def test_any_bytes_are_read_or_refused_in_words(tmp_path: Path, content: bytes, prefix: str) -> None:
    path = written(tmp_path, prefix.encode("latin-1") + content)
    _read_or_refused(path)


@SETTINGS
@given(st.data(), st.sampled_from(["npz", "gz", "csv"]))
def test_a_damaged_file_is_read_or_refused_in_words(tmp_path: Path, data: Any, form: str) -> None:
    path = tmp_path / f"t.{form}"
    if form == "npz":
        np.savez_compressed(path, x=np.arange(40.0).reshape(20, 2), y=np.arange(20) % 2)
    else:
        text = b"a,b,y\n" + b"".join(b"%d,red,%d\n" % (at, at % 2) for at in range(20))
        path.write_bytes(gzip.compress(text, mtime=0) if form == "gz" else text)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    _read_or_refused(path)


def _read_or_refused(path: Path) -> None:
    try:
        found = survey(open_table(path))
        target = next((one for one in found.columns if one.name == "y"), found.columns[-1])
        prepare(
            open_table(path),
            found,
            Choice(target=target.name),
            MemoryStore(),
            name="t",
            source="",
            scratch_folder=path.parent,
        )
    except TableRefused as refusal:
        words = str(refusal)
    else:
        return
    assert words.endswith(".")
    assert len(words) < 500


def test_numbers_are_named_as_people_write_them() -> None:
    names: Sequence[tuple[float, str]] = ((3.0, "3"), (-0.5, "-0.5"), (1e20, "1e+20"))
    assert [format_number(value) for value, _ in names] == [name for _, name in names]
