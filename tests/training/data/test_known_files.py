"""Files in known formats are told by their contents, alone or packed into one, and become data sets as they are."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.training.data.test_formats import idx, pax_header, pictures_and_labels
from training.data.manifest import Manifest
from training.data.readers import known
from training.data.readers.__main__ import answer
from training.data.readers.known import known_format
from training.data.readers.tables import TableRefused
from training.data.store import FolderStore

CLICKS = "".join(
    "\t".join([str(row % 2), *(str(row + at) for at in range(13)), *(f"c{row % 3}{at}" for at in range(26))])
    + "\n"
    for row in range(20)
)
REVIEWS = "".join(f"__label__{row % 2 + 1} it was {'good' if row % 2 else 'bad'}\n" for row in range(20))


def zipped(files: Mapping[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def mnist() -> dict[str, bytes]:
    pictures, labels = pictures_and_labels(30)
    return {"mnist/train-images-idx3-ubyte": idx(pictures), "mnist/train-labels-idx1-ubyte": idx(labels)}


def one_a_review() -> dict[str, bytes]:
    return {
        f"aclImdb/{side}/{at}.txt": f"a {side} film".encode() for at in range(12) for side in ("pos", "neg")
    }


def stored(folder: Path, content: bytes, file_name: str) -> Manifest:
    """What the limited process makes of an upload, whose name in our folder says nothing."""
    path = folder / "7.table"
    path.write_bytes(content)
    key = answer(["survey", str(path)])["format"]
    given = json.dumps({"name": "Mine", "file_name": file_name})
    made = answer(["known", key, str(path), str(folder / "store")], given)
    return Manifest.decode(FolderStore(folder / "store").get(made["manifest"]))


@pytest.mark.parametrize(
    ("content", "file_name", "classes", "rows"),
    [
        (zipped(mnist()), "mnist.zip", ("0", "1", "2"), 30),
        (tarred({name: gzip.compress(data) for name, data in mnist().items()}), "m.tar", ("0", "1", "2"), 30),
        (tarred(mnist(), "w:gz"), "mnist.tgz", ("0", "1", "2"), 30),
        (CLICKS.encode(), "day_0", ("no", "yes"), 20),
        (gzip.compress(CLICKS.encode()), "day_0.gz", ("no", "yes"), 20),
        (REVIEWS.encode(), "test.ft.txt", ("1", "2"), 20),
        (zipped({"reviews.neg": b"bad\n" * 10, "reviews.pos": b"good\n" * 10}), "mr.zip", ("neg", "pos"), 20),
        (tarred(one_a_review(), "w:gz"), "aclImdb_v1.tar.gz", ("neg", "pos"), 24),
    ],
)
def test_each_format_is_known_and_read(
    tmp_path: Path, content: bytes, file_name: str, classes: tuple[str, ...], rows: int
) -> None:
    manifest = stored(tmp_path, content, file_name)
    assert (manifest.name, manifest.classes) == ("Mine", classes)
    assert manifest.rows + manifest.held_out_rows == rows


def test_a_table_is_no_known_format(tmp_path: Path) -> None:
    numbers = io.BytesIO()
    np.savez(numbers, x=np.zeros((20, 2)), y=np.arange(20) % 2)
    for content in (
        b"a,b\n1,2\n",
        numbers.getvalue(),
        zipped({"notes.doc": b"x"}),
        b"\x1f\x8b damaged",
        b"PK\x03\x04",
    ):
        path = tmp_path / "table"
        path.write_bytes(content)
        assert known_format(path) is None


def test_what_is_wrong_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, pictures = tmp_path / "7.table", idx(pictures_and_labels(30)[0])

    def refused(content: bytes, key: str) -> Any:
        path.write_bytes(content)
        given = json.dumps({"name": "Mine", "file_name": "../../x"})
        return answer(["known", key, str(path), str(tmp_path / "store")], given)["refused"]

    assert "file of labels" in refused(pictures, "mnist")
    assert "damaged" in refused(zipped(mnist())[:-60], "mnist")
    assert "more than 8 " in refused(zipped({f"{at}": b"x" for at in range(9)}), "mnist")
    monkeypatch.setattr(known, "MOST_UNPACKED_BYTES", 1000)
    assert "unpacks to more" in refused(zipped({"zeros": bytes(5000)}), "mnist")
    assert not (tmp_path.parent / "x").exists()


def test_names_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    renamed = {f"../../{name}": data for name, data in mnist().items()}
    path = tmp_path / "inner" / "7.table"
    path.parent.mkdir()
    path.write_bytes(tarred(renamed))
    made = known.store_known(
        path, "mnist", FolderStore(tmp_path / "s"), name="m", file_name="m.tar", folder=path.parent
    )
    assert made.rows == 24
    assert sorted(one.name for one in tmp_path.iterdir()) == ["inner", "s"]
    with pytest.raises(TableRefused):
        path.write_bytes(tarred({"a": b"x"}))
        known.store_known(
            path, "mnist", FolderStore(tmp_path / "s"), name="m", file_name="m.tar", folder=path.parent
        )


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    packing=st.sampled_from(
        [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, None]
    ),
    damage=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
)
def test_a_damaged_archive_is_read_or_refused_in_words(
    tmp_path: Path, packing: int | None, damage: list[tuple[float, int]]
) -> None:
    texts = {"reviews.neg": b"bad words\n" * 10, "reviews.pos": b"good words\n" * 10}
    content = bytearray(tarred(texts, "w:gz") if packing is None else zipped(texts, packing))
    for place, value in damage:
        content[int(place * len(content))] = value
    path = tmp_path / "7.table"
    path.write_bytes(bytes(content))
    found = answer(["survey", str(path)])
    if "format" in found:
        given_names = json.dumps({"name": "Mine", "file_name": "a.zip"})
        with TemporaryDirectory(dir=tmp_path) as store:
            found = answer(["known", found["format"], str(path), store], given_names)
    assert set(found) & {"manifest", "refused"}
    assert damage or "manifest" in found


def test_an_archive_of_hostile_headers_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "7.table"
    path.write_bytes(pax_header(b"6 a=b\n") * 3000 + tarred({"pos/1.txt": b"good"}))
    assert "refused" in answer(["survey", str(path)])
