"""How long it takes to time and price a stored run again: 50 rounds of 64 actors."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.money.billing.work import CallRecord, WorkWriter
from cloud.money.billing.work_file import WorkFile, read_work_file
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers.ranges import draw_outcomes
from cloud.timing.place import TimingPlace
from rig.figures import Figure
from training.engine.ports import Settlement
from training.engine.reports import Usage
from training.spec import TrainingSpec

ROUNDS, ACTORS = 50, 64
_REPEATS = 9
_DRAWS = 50


def measure() -> Iterator[Figure]:
    """Processor time of the best of some repeats, so that whatever else runs here matters little."""
    with tempfile.TemporaryDirectory(prefix="starling-bench-") as folder:
        path = Path(folder) / "work.jsonl"
        _write(path)
        yield Figure("reading 50 rounds of 64 actors", _best_ms(lambda: read_work_file(path)), "ms")
        (segment,) = read_work_file(path)
    yield Figure("preparing them", _best_ms(lambda: ReplaySchedule.of(segment)), "ms")
    schedule = ReplaySchedule.of(segment)
    for name in ("lambda", "aci-today", "one-machine"):
        place = TimingPlace.of(SimulatedOptions(profile=name), PriceBook.load())
        took_ms = _best_ms(lambda place=place: retime(schedule, place, seed=0))
        yield Figure(f"re-timing on {name}", took_ms, "ms", at_most=100)
    place = TimingPlace.of(SimulatedOptions(), PriceBook.load())
    took_ms = _best_ms(lambda: draw_outcomes([schedule], [place], _DRAWS, seed=0), repeats=3)
    yield Figure("one draw of all numbers", took_ms / _DRAWS, "ms")


def _best_ms(act: Callable[[], Any], repeats: int = _REPEATS) -> float:
    best_s = float("inf")
    for _ in range(repeats):
        began_s = time.process_time()
        act()
        best_s = min(best_s, time.process_time() - began_s)
    return 1000 * best_s


def _write(path: Path) -> None:
    """A run as the command line would have written it down."""
    file, writer = WorkFile(path), WorkWriter()
    platform = SimulatedOptions().model_dump(mode="json")
    file.begin({"training": TrainingSpec().model_dump(mode="json"), "platform": platform}, {})
    for work in _works():
        usage = Usage().model_dump() | {"sent_s": 0.0, "landed_s": 1.0, "work": writer.record(work)}
        file.add(Settlement(work.id, 0, "metered", (), usage))
    file.close()


def _works() -> Iterator[CallRecord]:
    serial, before = 0, ()
    for round_no in range(1, ROUNDS + 1):
        names = [f"r{round_no}-s{slot}-{round_no}-n{serial + slot}" for slot in range(ACTORS)]
        for name in names:
            serial += 1
            yield CallRecord(
                id=f"{name}-a1",
                name=name,
                kind="rollout",
                where="actor",
                serial=serial,
                round_no=round_no,
                stepped="Hopper-v5",
                steps=256,
                inferences=256,
                macs=4_992,
                bytes_in=40_000,
                bytes_out=20_000,
                memory_mb=1769,
                deadline_s=60.0,
                after=before,
            )
        serial += 1
        name = f"r{round_no}-update-n{serial}"
        yield CallRecord(
            id=f"{name}-a1",
            name=name,
            kind="update",
            where="learner",
            serial=serial,
            round_no=round_no,
            minibatches=640,
            samples=163_840,
            macs=9_856,
            bytes_in=1_300_000,
            bytes_out=100_000,
            memory_mb=1769,
            deadline_s=900.0,
            after=tuple(names),
        )
        before = (name,)
