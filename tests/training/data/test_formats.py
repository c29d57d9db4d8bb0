"""Users' own files in known formats: read as they are meant, and refused in one sentence when they are not."""

import gzip
import io
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory import memory_peak
from training.data.dataset import BadTable, write_dataset
from training.data.formats import FORMATS, click_logs, reviews
from training.data.formats.click_logs import read_click_log
from training.data.formats.mnist import read_mnist
from training.data.formats.reviews import read_reviews
from training.data.hashing import place_of, words_and_pairs
from training.data.rows import SparseFeatures
from training.data.store import MemoryStore

MEGABYTE = 2**20


def saved(folder: Path, name: str, data: bytes, *, packed: bool = False) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


# MNIST


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">I{array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()


def pictures_and_labels(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, 4, 5)).astype(np.uint8), (np.arange(count) % 3).astype(np.uint8)


@pytest.mark.parametrize("packed", [True, False])
def test_pairs_of_mnist_are_distinguished_by_their_contents(tmp_path: Path, packed: bool):
    first, second = pictures_and_labels(20), pictures_and_labels(6, 1)
    files = [
        saved(tmp_path, f"{i}", idx(array), packed=packed)
        for i, array in enumerate((second[1], first[0], first[1], second[0]))
    ]
    table = read_mnist(files)
    assert table.picture == (4, 5)
    assert table.classes == ("0", "1", "2")
    np.testing.assert_array_equal(
        table.features.values.reshape(-1, 4, 5), np.concatenate([first[0], second[0]])
    )
    np.testing.assert_array_equal(table.targets, np.concatenate([first[1], second[1]]))
    manifest = write_dataset(table, MemoryStore())
    assert manifest.of_bytes
    assert manifest.rows + manifest.held_out_rows == 26


def test_a_header_that_lies_costs_no_memory(tmp_path: Path):
    """It says 300 MB, within the limit, and holds none of them; and a gzip that unpacks to a gigabyte."""
    lie = struct.pack(">4I", 0x803, 300_000_000 // 784, 28, 28)
    bomb = gzip.compress(struct.pack(">2I", 0x801, 100) + bytes(64 * MEGABYTE), 1)
    for data in (lie, bomb):
        path = saved(tmp_path, "lie", data)
        with memory_peak() as peak, pytest.raises(BadTable):
            read_mnist([path])
        assert peak.grown_bytes < 24 * MEGABYTE


# Click logs


def click_line(clicked: str = "1", counts: str = "5", texts: str = "ab") -> str:
    return "\t".join([clicked, counts, *[""] * 12, texts, *[""] * 24, "zz"])


def test_a_click_log_is_hashed_column_by_column(tmp_path: Path):
    lines = [click_line(), click_line("0", "", ""), click_line("0", "-1", "cd")]
    table = read_click_log([saved(tmp_path, "day.gz", "\n".join(lines).encode(), packed=True)])
    features = table.features
    assert isinstance(features, SparseFeatures)
    assert list(table.targets) == [1, 0, 0]
    expected = [
        {("I1", "log² 2"), ("C1", "ab"), ("C26", "zz")},
        {("C26", "zz")},
        {("I1", "-1"), ("C1", "cd"), ("C26", "zz")},
    ]
    for i, cells in enumerate(expected):
        assert set(features.between(i, i + 1).places) == {place_of(*cell, click_logs.BITS) for cell in cells}
    assert len(table.columns) == 39
    assert [column.type for column in table.columns[12:14]] == ["count", "text"]


def test_a_click_log_is_read_in_chunks_up_to_its_limit(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(click_logs, "_CHUNK", 7)
    monkeypatch.setattr(click_logs, "ROWS_LIMIT", 21)
    path = saved(tmp_path, "log.tsv", "\n".join(click_line(str(i % 2)) for i in range(40)).encode())
    table = read_click_log([path])
    assert list(table.targets) == [i % 2 for i in range(21)]
    assert table.source.startswith("The first 21 rows")
    whole = read_click_log([saved(tmp_path, "less.tsv", "\n".join([click_line()] * 20).encode())])
    assert whole.source.startswith("20 rows")


def test_a_click_log_is_one_file(tmp_path: Path):
    path = saved(tmp_path, "log", click_line().encode())
    with pytest.raises(BadTable, match="there are 2"):
        read_click_log([path, path])


# Reviews

TEXTS = [("neg", "Bad, really bad."), ("pos", "It was good"), ("neg", "not good"), ("pos", "gut, schön")]


def holds(table, expected: list[tuple[str, str]]) -> None:
    assert isinstance(table.features, SparseFeatures)
    assert [table.classes[target] for target in table.targets] == [label for label, _ in expected]
    for i, (_, text) in enumerate(expected):
        places = {place_of("text", word, reviews.BITS) for word in words_and_pairs(text)}
        assert set(table.features.between(i, i + 1).places) == places


def test_labelled_lines_are_reviews(tmp_path: Path):
    lines = "".join(f"__label__{label} {text}\r\n" for label, text in TEXTS)
    table = read_reviews([saved(tmp_path, "reviews.txt", lines.encode())])
    assert table.classes == ("neg", "pos")
    holds(table, TEXTS)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_two_files_of_texts_are_read_in_turns(tmp_path: Path, encoding: str):
    paths = [
        saved(
            tmp_path,
            f"rt-polarity.{side}",
            "".join(f"{text}\n" for label, text in TEXTS if label == side).encode(encoding),
        )
        for side in ("neg", "pos")
    ]
    holds(read_reviews(paths), TEXTS)


def archive(folder: Path, members: list[tuple[str, bytes]]) -> Path:
    path = folder / "aclImdb.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("aclImdb/train/pos/link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(link)
    return path


def test_an_archive_of_reviews_is_read_without_unpacking_it(tmp_path: Path):
    members = [(f"aclImdb/train/{label}/{i}_1.txt", text.encode()) for i, (label, text) in enumerate(TEXTS)]
    others = [
        ("aclImdb/README", b"words"),
        ("aclImdb/train/unsup/1.txt", b"no label"),
        ("../../pos/x.txt", b"It was good"),
    ]
    path = archive(tmp_path, members + others)
    holds(read_reviews([path]), [*TEXTS, ("pos", "It was good")])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def pax_header(record: bytes) -> bytes:
    """A header of an archive with one record of extended facts."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(record)
    return info.tobuf(tarfile.USTAR_FORMAT) + record.ljust(512, b"\0")


@pytest.mark.parametrize(
    "headers",
    [
        pax_header(b"6 a=b\n") * 3000,
        pax_header(b"27 GNU.sparse.map=a,b,c,d\n" + b"20 GNU.sparse.size=x\n"),
        pax_header(b"99999999999999999999 a=b\n"),
    ],
    ids=["chained without end", "a map that is none", "longer than anything"],
)
def test_an_archive_of_hostile_headers_is_refused(tmp_path: Path, headers: bytes):
    whole = headers + gzip.decompress(archive(tmp_path, [("pos/1.txt", b"good")]).read_bytes())
    with pytest.raises(BadTable, match=r"^bad\.tar "):
        read_reviews([saved(tmp_path, "bad.tar", whole)])


def test_a_label_that_is_a_text_is_refused(tmp_path: Path):
    table = read_reviews([saved(tmp_path, "r", f"__label__{'x' * 201} a\n__label__y b\n".encode() * 5)])
    with pytest.raises(BadTable, match="201 letters"):
        write_dataset(table, MemoryStore())


def test_reviews_stop_at_their_limit(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(reviews, "_CHUNK", 5)
    monkeypatch.setattr(reviews, "ROWS_LIMIT", 10)
    lines = "".join(f"__label__{i % 2} word{i}\n" for i in range(30))
    assert len(read_reviews([saved(tmp_path, "many", lines.encode())]).targets) == 10


def test_reviews_of_one_label_become_no_data_set(tmp_path: Path):
    table = read_reviews([saved(tmp_path, "one", b"__label__1 a\n__label__1 b\n")])
    with pytest.raises(BadTable, match="same value"):
        write_dataset(table, MemoryStore())


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(FORMATS)), st.lists(st.binary(max_size=60), min_size=1, max_size=2), st.booleans()
)
def test_any_bytes_are_a_table_or_refused(tmp_path_factory, key, contents, packed):
    folder = tmp_path_factory.mktemp("files")
    paths = [
        saved(folder, name, data, packed=packed)
        for name, data in zip(("first.pos", "second.neg"), contents, strict=False)
    ]
    try:
        table = FORMATS[key].read(paths)
    except BadTable:
        return
    assert len(table.targets) == len(table.features)


def test_each_format_says_what_it_needs():
    for key, one in FORMATS.items():
        assert key == one.key
        assert one.title
        assert one.words.endswith(".")
