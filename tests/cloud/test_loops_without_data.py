"""A loop decides the same with data and without: the engine on a platform of chance, and the forecast's run of the same
answers. The oracle is the record of the engine's calls: what was sent, in which order, and with which version.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from cloud.money.billing.work import CallRecord
from cloud.timing.forecasting.concurrency import AllCallsFail
from cloud.timing.forecasting.rounds import Rounds
from cloud.timing.forecasting.workload import Workload
from tests.training.chance_platform import ChancePlatform
from tests.training.runs import events_of
from tests.training.specs import descent, tiny
from training.calls import KINDS
from training.engine.messages import Call, Outcome
from training.engine.ports import Control
from training.tasks.training import Training

_PLENTY = {"env_steps": 100_000, "rounds": None}
_IMPALA = {"kind": "impala"}


def _stellaris(**changes: Any) -> dict[str, Any]:
    return {"kind": "staleness_aware", "learners": 3, "trajectories_per_gradient": 1, **changes}


LOOPS: dict[str, dict[str, Any]] = {
    "synchronous": {},
    "pipelined": {"loop": {"kind": "pipelined"}},
    "asynchronous": {"loop": {"kind": "asynchronous", "staleness_limit": 2}},
    "asynchronous, replayed": {"loop": {"kind": "asynchronous"}, "algorithm": {"kind": "impact"}},
    "staleness-aware": {"loop": _stellaris()},
    "staleness-aware, launch order": {"loop": _stellaris(order="launch")},
    "staleness-aware without waits": {
        "loop": _stellaris(actors_wait=False, learners_wait=False),
        "algorithm": _IMPALA,
    },
    "staleness-aware by samples": {"loop": _stellaris(samples_per_round=64)},
    "hybrid": {"loop": {"kind": "hybrid"}},
    "bulk synchronous": {"loop": {"kind": "bulk_synchronous"}},
    "fully asynchronous": {"loop": {"kind": "fully_asynchronous"}},
}


class _Recorded(ChancePlatform):
    """Keeps what was sent and what landed, in order, until the run cancels what is in flight."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, failures=random.Random(seed).choice((0.0, 0.1, 0.3)))
        self.sent: list[Call] = []
        self.landed: list[tuple[str, bool]] = []
        self._stopped = False

    def submit(self, call: Call) -> None:
        super().submit(call)
        if self._stopped or KINDS[call.kind].role == "judging":
            return
        if call.attempt == 1:
            self.sent.append(call)
        else:
            # The task had not landed: its last call failed, and this is the next one.
            self.landed.remove((call.name, False))

    def next(self, timeout_s: float) -> Outcome | None:
        outcome = super().next(timeout_s)
        if outcome is not None and not self._stopped:
            self.landed.append((self.flown[outcome.call_id].call.name, outcome.status == "done"))
        return outcome

    def cancel(self, call_id: str) -> None:
        self._stopped = True
        super().cancel(call_id)


class _Scripted:
    """A flight in which tasks land as they did in the engine. `sent` are the works in order."""

    now_ns = 0

    def __init__(self, engine: _Recorded) -> None:
        order = {call.name: place for place, call in enumerate(engine.sent)}
        self._landings = deque((order[name], done) for name, done in engine.landed)
        self.sent: list[CallRecord] = []
        self.learned: list[int] = []
        self.simulation = self

    def send(self, works: Sequence[CallRecord]) -> None:
        self.sent += works

    def next(self) -> tuple[CallRecord, bool] | None:
        if not self._landings:
            return None
        place, done = self._landings.popleft()
        return self.sent[place], done

    def count_learned(self, steps: int) -> None:
        self.learned.append(steps)


def _compare(training: Training, seed: int) -> None:
    engine, ends_s = _Recorded(seed), random.Random(seed).uniform(2.0, 40.0)

    def control() -> Control:
        return Control(desired="paused" if engine.now_s() >= ends_s else "run")

    reports = [
        event.report for event in events_of(training, engine, control=control) if event.kind == "round"
    ]
    flight: Any = _Scripted(engine)
    rounds, found = Rounds(training.loop, Workload(training), flight), []
    with pytest.raises(AllCallsFail):
        while True:
            rounds.next(3)
            found.append((len(flight.learned), sum(flight.learned)))
            flight.learned.clear()
    assert [call.kind for call in engine.sent] == [work.kind for work in flight.sent[: len(engine.sent)]]
    versions = [0, *(report.version for report in reports)]
    # A run that stops reports the versions of a round that was not over; the forecast's round goes on.
    assert len(reports) - len(found) in (0, 1)
    for report, before, (made, learned) in zip(reports, versions, found, strict=False):
        assert report.version - before == made
        # The last slice of an epoch may be smaller, which a forecast does not count.
        assert 0 <= learned - report.progress <= (training.kind == "supervised") * training.progress_a_call


def _of_a_loop(loop: str) -> Training:
    if "hybrid" in loop or "bulk" in loop or "fully" in loop:
        return descent(evaluation={"every_rounds": 1000}, stop={"rounds": 1000}, **LOOPS[loop])
    return tiny(evaluation={"every_rounds": 1000}, stop=_PLENTY, **LOOPS[loop])


@pytest.mark.parametrize("loop", LOOPS)
def test_engine_and_forecast_decide_alike(loop: str) -> None:
    for seed in range(6):
        _compare(_of_a_loop(loop), seed)


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_engine_and_forecast_decide_alike_in_500_histories(loop: str) -> None:
    for seed in range(500):
        _compare(_of_a_loop(loop), seed)
