"""Records of work: what is written can be read again, and what is wrong is refused with its line."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.money.billing.work import CallRecord, WorkError, WorkWriter, work_of, works_from
from cloud.money.billing.work_file import WorkFile, read_work_file
from cloud.money.ledger import MemoryLedger
from tests.cloud import calls
from training.engine.ports import PriceLine, Reservation, Settlement
from training.engine.reports import Usage

COUNT = st.integers(0, 2**53)
NAMES = st.sampled_from(["r1-s0-n1", "r1-s0-n1-a1", "r1-update-n2-a2", "", "ä"])
WORKS = st.builds(
    CallRecord,
    id=st.integers().map("r1-s0-n{}-a1".format),
    name=NAMES,
    kind=st.sampled_from(["rollout", "evaluate", "update"]),
    where=st.sampled_from(["actor", "learner"]),
    attempt=st.integers(1, 4),
    stepped=NAMES,
    steps=COUNT,
    bytes_in=COUNT,
    pictures=st.booleans(),
    deadline_s=st.floats(0, 1e6),
    after=st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(tuple),
    cancelled=st.booleans(),
)


@given(st.lists(WORKS, max_size=8, unique_by=lambda work: work.id))
def test_records_come_back_as_they_were(some: list[CallRecord]) -> None:
    writer = WorkWriter()
    text = json.dumps([writer.record(work) for work in some])
    assert works_from(json.loads(text)) == some


def test_a_record_leaves_out_what_is_as_usual() -> None:
    usage = Usage(steps=16, inferences=16, macs=48, bytes_in=100)
    work = work_of(calls.rollout("r1-s0-n1-a1", None).model_copy(update={"after": ("r0-update-n0",)}), usage)
    assert WorkWriter().record(work) == {
        "id": "r1-s0-n1-a1",
        "kind": "rollout",
        "where": "actor",
        "round_no": 1,
        "environment": "CartPole-v1",
        "env_steps": 16,
        "inferences": 16,
        "macs": 48,
        "bytes_in": 100,
        "memory_mb": 1769,
        "deadline_s": 60.0,
        "after": ["r0-update-n0"],
    }


def test_calls_that_wait_for_the_same_hold_it_once() -> None:
    writer = WorkWriter()
    usual = work_of(calls.rollout("r-a1", None), Usage())
    some = [replace(usual, id=f"{n}-a1", name=f"{n}", after=("a", "b")) for n in range(3)]
    records = [writer.record(work) for work in some]
    assert [record.get("after") for record in records] == [["a", "b"], None, None]
    # The order in which they are read does not matter.
    assert works_from(records[::-1]) == some[::-1]
    with pytest.raises(WorkError, match=r"record 1: .* 0-a1"):
        works_from(records[1:])


def test_a_record_knows_how_many_copies_step_together() -> None:
    call = calls.rollout("r-a1", None)
    several = call.request.model_copy(update={"environments": 4})
    assert work_of(call, Usage()).copies == 1
    assert work_of(call.model_copy(update={"request": several}), Usage()).copies == 4
    assert work_of(calls.evaluation("e", None), Usage()).copies == 1


def test_an_evaluation_that_failed_still_knows_its_episodes() -> None:
    assert work_of(calls.evaluation("e", None), Usage(), broken=True).trials == 2


SPEC = {"name": "a job"}


def settlement(name: str, work: dict[str, Any] | None) -> Settlement:
    usage: dict[str, object] = {"billed_s": 1.0} | ({"work": work} if work else {})
    return Settlement(name, 7, "metered", (PriceLine("sku", "1.5", "GB-s", 7),), usage)


def written(path: Path, *names: str) -> None:
    file = WorkFile(path)
    file.begin(SPEC, {"cpu": "some"})
    for name in names:
        file.add(settlement(name, {"id": name, "kind": "rollout", "where": "actor"}))
    file.add(settlement("rent-1", None))
    file.close()


def test_a_file_holds_the_segments_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    written(path, "a-a1", "b-a1")
    (first,) = read_work_file(path)
    assert (first.spec, first.spent_picodollars) == (SPEC, 21)
    assert [work.id for work in first.works] == ["a-a1", "b-a1"]
    assert first.settlements[2] == settlement("rent-1", None)
    # A run that died in the middle of a line, and was gone on with.
    path.write_text(path.read_text() + '{"id": "half a li')
    assert read_work_file(path) == [first]
    written(path, "c-a1")
    assert [[work.name for work in segment.works] for segment in read_work_file(path)] == [["a", "b"], ["c"]]


def test_a_wrong_record_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    written(path, "a-a1", "b-a1")
    path.write_text(path.read_text().replace('"id":"b-a1","kind":"rollout"', '"id":"b-a1","kind":"rest"'))
    with pytest.raises(WorkError, match=r'^work\.jsonl:3: kind cannot be "rest"$'):
        read_work_file(path)
    with pytest.raises(WorkError, match="No such file"):
        read_work_file(tmp_path / "nothing")


def test_a_ledger_tells_each_booking_once() -> None:
    heard: list[Settlement] = []
    ledger = MemoryLedger(100, on_settled=heard.append)
    ledger.reserve([Reservation("a", "rollout", 1, 10)])
    booked = Settlement("a", 7, "metered", (), {})
    ledger.settle([booked, booked, Settlement("unknown", 7, "metered", (), {})])
    assert heard == [booked]
    assert asdict(booked)["usage"] == {}
