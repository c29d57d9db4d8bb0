"""Stored runs: columns give back every value, an archive only grows, and damage is found."""

from __future__ import annotations

import json
import tracemalloc
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.experiment import Cell
from research.runs import archive
from research.runs.archive import ArchivedRun, ArchiveError, add_run, cells_in, find_run, join_archives
from research.runs.columns import from_columns, to_columns

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.decimals(0, 100, places=9).map(float)
    | st.text(max_size=5)
    | st.from_regex(r"r[0-9]{1,3}-s0?[0-9]{1,17}", fullmatch=True)
)
_OBJECTS = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
        max_leaves=6,
    ),
    max_size=3,
)


@given(st.lists(_OBJECTS, max_size=12))
def test_columns_give_back_every_key_value_and_type(rows: list[dict[str, Any]]) -> None:
    packed = msgpack.packb(to_columns(rows))
    assert json.dumps(from_columns(msgpack.unpackb(packed))) == json.dumps(rows)


@pytest.mark.parametrize("value", [-0.0, 0.0, 5e-324, 1.7e308, float("inf"), -0.3, 0.1 + 0.2, 2.0**53 + 2])
def test_floats_keep_every_bit(value: float) -> None:
    (row,) = from_columns(to_columns([{"value": value}]))
    assert row["value"].hex() == value.hex()


def _rows(seed: int) -> list[dict[str, Any]]:
    spec = {"weights": "".join(chr(97 + place * place % 26) for place in range(3000)), "seed": seed}
    rounds = [{"kind": "round", "round": number, "cost_usd": seed + number / 7} for number in range(40)]
    return [{"kind": "begin", "spec": spec}, *rounds, {"kind": "end", "round": 40}]


def _work(seed: int) -> list[dict[str, Any]]:
    return [{"id": f"r{number}-s{seed}", "usage": {"work": {"serial": number}}} for number in range(40)]


def _cell(seed: int, environment: str = "Hopper-v5", arm: str = "nitro") -> Cell:
    return Cell(arm, environment, seed)


def test_an_archive_gives_back_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "some" / "nitro.runs"
    assert find_run(path, _cell(0)) is None
    cells = [_cell(0), _cell(1), _cell(0, "ALE/Qbert-v5"), _cell(0, arm="nitro_again")]
    for number, cell in enumerate(cells):
        add_run(path, cell, ArchivedRun.of(_rows(number), _work(number) if number else None, bytes([number])))
    assert cells_in(path) == cells
    for number, cell in enumerate(cells):
        found = find_run(path, cell)
        assert found is not None
        assert found.rows == _rows(number)
        assert (found.work, found.has_work) == (_work(number) if number else None, bool(number))
        assert found.scheduler == bytes([number])
    assert find_run(path, _cell(2)) is None


def test_another_seed_is_a_small_part_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "nitro.runs"
    add_run(path, _cell(0), ArchivedRun.of(_rows(0), _work(0)))
    before = path.read_bytes()
    add_run(path, _cell(1), ArchivedRun.of(_rows(1), _work(1)))
    after = path.read_bytes()
    assert after.startswith(before)
    assert len(after) - len(before) < len(before) / 2, "what both seeds have is in the first part alone"


def test_a_run_is_appended_again_only_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "nitro.runs"
    for seed in (0, 1):
        add_run(path, _cell(seed), ArchivedRun.of(_rows(seed), _work(seed), b"scheduler"))
    before = path.read_bytes()
    add_run(path, _cell(0), ArchivedRun.of(_rows(0), _work(0), b"scheduler"))
    assert path.read_bytes() == before
    add_run(path, _cell(0), ArchivedRun.of(_rows(9)))
    assert path.read_bytes().startswith(before)
    changed, other = find_run(path, _cell(0)), find_run(path, _cell(1))
    assert changed is not None
    assert (changed.rows, changed.work, changed.scheduler) == (_rows(9), None, None)
    assert other is not None
    assert other.rows == _rows(1)


def test_an_interrupted_append_damages_nothing_and_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "nitro.runs"
    add_run(path, _cell(0), ArchivedRun.of(_rows(0)))
    one = path.read_bytes()
    add_run(path, _cell(1), ArchivedRun.of(_rows(1)))
    both = path.read_bytes()
    for length in (len(one) + 1, len(one) + 43, len(one) + 60, len(both) - 1):
        path.write_bytes(both[:length])
        assert cells_in(path) == [_cell(0)]
        add_run(path, _cell(1), ArchivedRun.of(_rows(1)))
        assert path.read_bytes() == both


def test_a_changed_byte_is_found_wherever_it_is(tmp_path: Path) -> None:
    """Also in a length, which must not pass for an interrupted append: the next one would remove what follows."""
    path = tmp_path / "nitro.runs"
    for seed in (0, 1):
        add_run(path, _cell(seed), ArchivedRun.of(_rows(seed)))
    whole = path.read_bytes()
    for place in (0, 5, 7, 20, 41, 60, len(whole) - 1):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ArchiveError, match=r"^nitro\.runs is damaged"):
            find_run(path, _cell(1))
        with pytest.raises(ArchiveError):
            add_run(path, _cell(2), ArchivedRun.of(_rows(2)))
        assert path.read_bytes() == damaged


def _without_groups(path: Path) -> None:
    """Rewrite the archive as archives of single arms were written: their parts name no group."""
    data, end, parts = path.read_bytes(), 0, []
    while (found := archive._body_at(data, end, path.name)) is not None:
        body, end = found
        short = msgpack.packb(msgpack.unpackb(body)[:-1])
        prefix = archive._PREFIX.pack(b"RUN1", len(short), sha256(short).digest())
        parts.append(prefix + archive._CHECK.pack(crc32(prefix)) + short)
    path.write_bytes(b"".join(parts))


def test_an_archive_that_grows_is_in_memory_once(tmp_path: Path) -> None:
    path = tmp_path / "some.runs"
    tracemalloc.start()
    try:
        for seed in range(20):
            add_run(path, _cell(seed), ArchivedRun.of([], None, Random(seed).randbytes(50_000)))
        kept_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept_bytes < 2 * path.stat().st_size


def test_archives_of_single_arms_join_the_archive_of_their_experiment(tmp_path: Path) -> None:
    arms = {"nitro": [_cell(0), _cell(1)], "fixed": [_cell(0, arm="fixed"), _cell(0, arm="fixed_again")]}
    for arm, cells in arms.items():
        for number, cell in enumerate(cells):
            path, run = tmp_path / "some" / f"{arm}.runs", ArchivedRun.of(_rows(number), _work(number))
            add_run(path, cell, run, group=arm)
        _without_groups(path)
    add_run(tmp_path / "some.runs", _cell(0), ArchivedRun.of(_rows(0), _work(0)))
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "rows.jsonl").touch()
    join_archives(tmp_path)
    join_archives(tmp_path)
    assert cells_in(tmp_path / "some.runs") == [_cell(0), *arms["fixed"], _cell(1)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["others", "some.runs"]
    for cells in arms.values():
        for number, cell in enumerate(cells):
            assert find_run(tmp_path / "some.runs", cell) == ArchivedRun.of(_rows(number), _work(number))


def test_a_damaged_archive_of_an_arm_stays(tmp_path: Path) -> None:
    path = tmp_path / "some" / "nitro.runs"
    add_run(path, _cell(0), ArchivedRun.of(_rows(0)))
    path.write_bytes(b"?" + path.read_bytes()[1:])
    with pytest.raises(ArchiveError):
        join_archives(tmp_path)
    assert path.exists()
    assert not (tmp_path / "some.runs").exists()
