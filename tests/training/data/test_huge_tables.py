"""A table may not fill the memory, the disk, a manifest or a page, and is read by a process with a memory limit."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rig.servers import ROOT, printed_by
from tests.memory import memory_peak
from tests.training.data.refused_tables import BODY, npy, prepared, refusal
from training.data.readers import scratch
from training.data.readers.choice import Choice
from training.data.readers.opening import open_table
from training.data.readers.survey import survey
from training.data.readers.tables import MOST_UNPACKED_BYTES, TableRefused
from training.data.store import MemoryStore


def test_a_class_whose_name_is_a_book_is_refused(tmp_path: Path) -> None:
    """Names of classes are in the manifest, on pages and in every list of data sets."""
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{at},{'q' * 201}{at % 2}\n" for at in range(20)))
    with pytest.raises(TableRefused, match=r"“y” .*202 letters"):
        prepared(path, Choice(target="y"))


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
    with pytest.raises(TableRefused, match=r" 2\d MB "):
        prepared(path, Choice(target="y"), store)


@pytest.mark.parametrize("other", ["3", "red"])
def test_features_that_would_fill_the_disk_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(scratch, "MOST_SCRATCH_BYTES", 20_000)
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{at},{other},{at % 2}\n" for at in range(4000)))
    store = MemoryStore()
    with pytest.raises(TableRefused, match="GB of the disk"):
        prepared(path, Choice(target="y"), store)
    assert not store._contents
    assert [one.name for one in tmp_path.iterdir()] == ["t.csv"]


def test_a_small_packed_file_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as packed:
        packed.write(b"a,b\n")
        for _ in range(60):
            packed.write(b"1" * 999_997 + b",0\n")
    with memory_peak() as peak:
        assert "200 times" in refusal(tmp_path, out.getvalue())
    assert MOST_UNPACKED_BYTES >= 10**9
    assert peak.grown_bytes < 100 * 2**20


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    with memory_peak() as peak:
        assert "4,000,000 letters" in refusal(tmp_path, gzip.compress(BODY.encode() + b"1" * 30_000_000))
    assert peak.grown_bytes < 100 * 2**20


def run_reader(*arguments: str, given: Any = None) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, "-m", "training.data.readers", *arguments],
        input="" if given is None else json.dumps(given),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_the_process_that_reads_prints_a_survey_a_hash_or_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(BODY)
    found = run_reader("survey", str(path))["survey"]
    assert [one["name"] for one in found["columns"]] == ["a", "b", "colour", "y"]
    request = {"survey": found, "choice": {"target": "y"}, "name": "t", "source": "s"}
    name = run_reader("prepare", str(path), str(tmp_path / "store"), given=request)["manifest"]
    assert (tmp_path / "store" / name).is_file()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["store", "t.csv"], (
        "scratch files are left behind"
    )
    path.write_text("a,b\n1\n")
    answer = run_reader("survey", str(path))
    assert list(answer) == ["refused"]
    assert answer["refused"].startswith("Row 2 ")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is the kernel's")
def test_the_process_that_reads_gets_no_more_memory_than_its_limit() -> None:
    program = (
        "from training.data.readers.__main__ import MEMORY_LIMIT_BYTES, limit_memory\n"
        "limit_memory(MEMORY_LIMIT_BYTES)\n"
        "import numpy\n"
        "try:\n    numpy.ones(600 * 2**20, numpy.uint8)\nexcept MemoryError:\n    print('refused')"
    )
    assert printed_by(program) == "refused"
