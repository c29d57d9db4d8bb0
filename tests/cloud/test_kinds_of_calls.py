"""A kind of call is one file and one row: one for tests alone, in everything that knows kinds of calls."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cloud.actor import wire
from cloud.actor.answers import answer_to
from cloud.actor.body import ActorMemory
from cloud.actor.wire import ActorRequest, MalformedMessage
from cloud.money.billing.bill_context import bill_context
from cloud.money.billing.full_bill import full_bill
from cloud.money.billing.parts import bill_parts
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.money.billing.round_times import round_times
from cloud.money.billing.work import CallRecord, WorkWriter, works_from
from cloud.timing.forecasting.bill import ForecastBill, forecast_parts
from cloud.timing.forecasting.concurrency import SimulatedFlight
from cloud.timing.forecasting.rounds import next_attempt
from cloud.timing.forecasting.workload import Workload
from cloud.timing.simulation.core import SimulatedSetting, Simulation
from cloud.timing.simulation.draws import Draws
from cloud.timing.simulation.speed import Speeds
from tests.cloud import calls, clouds
from tests.cloud.recorded import CHANCE, record
from tests.training.adding import MACS, Add, AddRequest, add, numbers
from tests.training.specs import tiny
from training.calls import KINDS
from training.engine.codec import decode, encode
from training.engine.deadlines import Deadlines
from training.engine.messages import Call, CallFailed, Event, RoundFinished
from training.engine.replay import Contribution
from training.engine.train import DRIVERS
from training.functions.bodies import BODIES
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from training.loops.driver import Driver
from training.loops.state import SendUpdate, Step
from training.loops.synchronous import Synchronous, SynchronousState

ROOT = Path(__file__).resolve().parents[2]
_LUCK = Draws(start_normal=0.0, straggler_normal=0.0, failure=1.0, failure_at=1.0, late=1.0)


@pytest.fixture
def adding(monkeypatch: pytest.MonkeyPatch) -> Add:
    kind = Add()
    monkeypatch.setitem(KINDS, kind.name, kind)
    monkeypatch.setitem(BODIES, kind.name, add)
    return kind


def _add(name: str, *given: float, **changes: Any) -> Call:
    values: dict[str, Any] = {
        "where": "actor",
        "round_no": 1,
        "seed": 0,
        "deadline_s": 30.0,
        "memory_mb": 1769,
    }
    return Call(id=name, request=AddRequest(passes=2), inputs=numbers(*given), **{**values, **changes})


@dataclass(frozen=True)
class _Sum:
    """Send a call that adds up the numbers of one actor."""

    name: str
    after: tuple[str, ...]
    number: int


class _AddingState(SynchronousState):
    """The synchronous loop, in which each actor's numbers are added up beside the sampling."""

    def _wave(self, number: int) -> Iterator[Any]:
        after = self.after
        yield from super()._wave(number)
        for actor in range(self.plan.actors):
            name = self.name(f"add{actor}")
            self._sampling[name] = self.plan.actors + actor
            self._names.append(name)
            yield _Sum(name, after, actor)

    def _wave_is_over(self) -> tuple[Contribution, ...]:
        super()._wave_is_over()
        return tuple(self._landed[slot] for slot in sorted(self._landed) if slot < self.plan.actors)


class _Adding(Synchronous):
    decides = _AddingState


class _AddingDriver(Driver):
    def _do(self, step: Step | _Sum) -> Iterator[Event]:
        if isinstance(step, _Sum):
            self._slots[step.name] = -1
            call = _add(f"{step.name}-a1", 1.0, step.number, round_no=self.run.progress.round_no + 1)
            self.run.flight.launch(call, 4, step.after)
        else:
            yield from super()._do(step)


class _LearningOnActors(Driver):
    def _do(self, step: Step) -> Iterator[Event]:
        if isinstance(step, SendUpdate):
            self._learned_from_s = self.run.now_s()
            call = self.run.update_call(step.name, [trajectory.payload for trajectory in step.batch])
            on_actor = call.model_copy(update={"where": "actor"})
            self.run.flight.launch(on_actor, self.run.attempts(call), step.after)
        else:
            yield from super()._do(step)


def test_a_request_travels_as_the_model_of_its_kind(adding: Add) -> None:
    call = _add("add1-a1", 1.0, 2.5)
    request = ActorRequest(run="run", call=call, not_after_unix_s=2e10)
    assert wire.read_request(wire.pack_request(request)).call == call
    document = call.model_dump()
    document["request"]["kind"] = "multiply"
    with pytest.raises(ValueError, match="'multiply'"):
        Call.model_validate(document)


def test_its_answer_is_checked_to_the_byte(adding: Add) -> None:
    call = _add("add1-a1", 1.0, 2.5)
    packed = ActorMemory().answer(
        wire.pack_request(ActorRequest(run="run", call=call, not_after_unix_s=2e10))
    )
    _, result = answer_to(call, "run", packed)
    assert result is not None
    assert decode(result.payload)["sum"].tolist() == [3.5]
    answer = wire.read_answer(packed)
    other = answer.model_copy(update={"payload": encode({"sum": decode(answer.payload)["sum"] * 2})})
    with pytest.raises(MalformedMessage, match="not the sum") as refused:
        answer_to(call, "run", wire.pack_answer(other))
    assert refused.value.code == "sum"


def test_an_answer_that_a_check_did_not_foresee_is_refused(
    adding: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Careless(Add):
        def check(self, call: Call, request: AddRequest, result: Result) -> None:
            raise TypeError("unhashable type: 'list'")

    monkeypatch.setitem(KINDS, "add", Careless())
    call = _add("add1-a1", 1.0, 2.5)
    packed = ActorMemory().answer(
        wire.pack_request(ActorRequest(run="run", call=call, not_after_unix_s=2e10))
    )
    with pytest.raises(MalformedMessage, match=r"\(TypeError\)"):
        answer_to(call, "run", packed)


def test_its_deadline_and_attempts_are_its_own(adding: Add) -> None:
    assert Deadlines(60.0).for_kind("add") == 30.0
    assert Deadlines(60.0).for_kind("rollout") == 60.0


@pytest.mark.parametrize("chance", [{}, CHANCE], ids=["without chance", "with chance"])
def test_a_run_with_it_is_reserved_billed_and_timed_again(
    adding: Add, chance: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DRIVERS, "synchronous", _AddingDriver)
    spec = tiny(stop={"rounds": 3}, rollout={"steps_per_call": 4, "attempts": 4})
    run = record(spec.model_copy(update={"loop": _Adding()}), **chance)
    works = [work for work in run.segment.works if work.kind == "add"]
    assert len({work.name for work in works}) == 9
    assert all(work.samples == 4 and work.macs == MACS for work in works if not work.broken)
    again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
    assert again.time_s == run.end_s
    assert again.bill.picodollars == run.spent_picodollars
    assert {line.category for line in again.bill.lines} >= {"add", "rollout", "update"} - {"update"}
    parts = full_bill([run.segment], bill_context(run.place.profile, run.place.stack, 1))
    assert parts.total == run.spent_picodollars
    assert parts.parts["sums"] > 0
    assert "sums" in {part.key for part in bill_parts()}
    assert len(round_times(run.segment)) == len(again.rounds) == 3
    rounds = [event.report for event in run.events if isinstance(event, RoundFinished)]
    for report in rounds:
        learned = {work.name: work.samples for work in run.segment.works if work.round_no == report.round_no}
        assert report.learner_usage.samples == sum(learned.values())
    assert [report.failed_calls > 0 for report in rounds] == [
        any(isinstance(event, CallFailed) and event.round_no == report.round_no for event in run.events)
        for report in rounds
    ]


def test_its_record_is_stored_and_read(adding: Add) -> None:
    work = CallRecord(id="add1-a2", name="add1", kind="add", where="actor", attempt=2, samples=3)
    assert works_from([WorkWriter().record(work)]) == [work]


def test_what_learns_takes_time_on_an_actors_share_and_on_the_learner(adding: Add) -> None:
    stack = clouds.stack(minibatch_us_per_million_macs=1000.0)
    speeds = Speeds(clouds.profile(), stack)
    work = CallRecord(
        id="a", name="a", kind="add", where="actor", minibatches=2, samples=10, macs=MACS, memory_mb=500
    )
    alone_ns = speeds.update_ns(work)
    assert alone_ns > 0
    assert speeds.update_ns(replace(work, samples=20)) > alone_ns
    # Half a core takes twice as long; the codec of a stack of round numbers takes no time.
    assert speeds.run_ns(work, _LUCK) == 2 * alone_ns
    assert speeds.shares_of_run(work) == (0.0, 0.0)
    with_gpu = Speeds(clouds.profile(), stack, gpu=True)
    assert with_gpu.run_ns(work, _LUCK) == speeds.run_ns(work, _LUCK)


def test_a_forecast_counts_and_prices_it(adding: Add) -> None:
    training = tiny()
    workload = Workload(training)
    place = record(tiny(stop={"rounds": 1})).place
    simulation = Simulation(place.profile, place.stack, SimulatedSetting())
    flight = SimulatedFlight(simulation, dict.fromkeys(KINDS, 3), next_attempt, None)
    before = flight.snapshot()
    flight.gather([workload.call("add", f"add{n}", contributions=2) for n in range(3)])
    parts = ForecastBill(place.tariff(training.rollout.memory_mb), training).parts(flight.snapshot() - before)
    assert parts["sums"] > 0
    assert parts["requests"] > 0
    assert parts["actors"] == parts["evaluation"] == 0
    assert [part.key for part in forecast_parts()] == [
        "actors",
        "learner",
        "gradients",
        "aggregation",
        "descent",
        "sums",
        "evaluation",
        "standing",
        "requests",
    ]


@pytest.mark.parametrize("kind", ["rollout", "update", "evaluate"])
def test_any_kind_may_compute_on_either_place(kind: str) -> None:
    """A learner's machine plays episodes, an actor learns: bodies, times and records go by the kind alone."""
    ref_call = {
        "rollout": calls.rollout("c-a1", None),
        "evaluate": calls.evaluation("c-a1", None),
        "update": calls.update("c-a1", _update_inputs()),
    }[kind]
    found = {}
    for where in ("actor", "learner"):
        call = ref_call.model_copy(update={"where": where})
        result = execute(call, calls.weights(), WarmCache())
        found[where] = result.payload
    assert found["actor"] == found["learner"]


def _update_inputs() -> tuple[bytes, ...]:
    state = calls.learner_state()
    sampled = execute(calls.rollout("r-a1", None), calls.weights(), WarmCache())
    return state.encode(), sampled.payload


_PROGRAM = """
import json, sys
from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.platforms.local import LocalOptions, LocalPlatform
from cloud.money.metering import MeteredPlatform
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.workers.executor import LocalExecutor
from tests.cloud.aws import lambdas
from training.calls.adding import AddRequest, numbers
from training.engine.codec import decode
from training.engine.messages import Call
import training

def added(platform, where="actor"):
    call = Call(id="add-a1", request=AddRequest(passes=2), inputs=numbers(1.0, 2.5), where=where,
                round_no=1, seed=0, deadline_s=30.0, memory_mb=1769)
    platform.submit(call)
    outcome = None
    while outcome is None:
        outcome = platform.next(30.0)
    assert outcome.status == "done", outcome
    return decode(outcome.payload)["sum"].tolist(), outcome.usage.samples

def metered(inner, options):
    ledger = MemoryLedger(10**12)
    platform = MeteredPlatform(inner, ledger, options.tariff(PriceBook.load(), 1769))
    found = added(platform)
    platform.close()
    return [*found, ledger.spend().spent_picodollars > 0]

print(training.__file__, file=sys.stderr)
simulated = SimulatedOptions()
with lambdas.opened(at_once=1) as (platform, aws):
    on_lambda = metered(platform, platform_options := lambdas.LambdaOptions())
executor = LocalExecutor(1)
local = LocalPlatform(LocalOptions(), executor=executor)
found = {"local": [added(local), added(local, "learner")][0], "lambda": on_lambda}
local.close()
found["simulated"] = metered(SimulatedPlatform(simulated, executor=LocalExecutor(1)), simulated)
print(json.dumps(found))
"""


def test_a_kind_and_its_body_run_on_workers_on_the_simulated_cloud_and_on_lambda(
    tmp_path: Path,
) -> None:
    """In a copy of the code, whose workers and functions know it as they know any other."""
    for room in ("training", "cloud"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("*.pyc.*"))
    shutil.copy(ROOT / "tests/training/adding.py", tmp_path / "training/calls/adding.py")
    for name, row in (("calls/__init__", "        Update(),\n"), ("functions/bodies", '    "rollout": ')):
        added, imported = (
            ("        Add(),\n", "Add") if name == "calls/__init__" else ('    "add": add,\n', "add")
        )
        table = tmp_path / f"training/{name}.py"
        text = table.read_text()
        assert row in text
        text = text.replace(
            "\nfrom training.", f"\nfrom training.calls.adding import {imported}\nfrom training.", 1
        )
        table.write_text(text.replace(row, f"{added}{row}"))
    answer = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    assert str(tmp_path) in answer.stderr
    assert json.loads(answer.stdout) == {
        "local": [[3.5], 4],
        "lambda": [[3.5], 4, True],
        "simulated": [[3.5], 4, True],
    }


_NAMES_A_KIND = {
    # A task asks for calls of certain kinds, and each kind and its body are about one.
    "training/calls",
    "training/functions",
    "training/tasks",
    # These measure or keep what one kind gives.
    "training/rl/surfaces/reward_surface.py",
    "cloud/timing/calibration",
    "cloud/accounts/profiling_runs.py",
    "cloud/platforms/trajectory_cache.py",
    "webapp/management/commands/export.py",
}


def test_only_what_sends_calls_of_a_kind_names_it() -> None:
    """All else reads the table. A module that names a kind's request or row knows one kind more than it must."""
    found = set()
    for room in ("training", "cloud", "webapp"):
        for path in (ROOT / room).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            text = path.read_text()
            if re.search(r"\b(Rollout|Evaluate|Update|Gradient|Apply)Request\b|KINDS\[\"", text):
                found.add(name)
    odd = {
        name for name in found if not any(name == one or name.startswith(f"{one}/") for one in _NAMES_A_KIND)
    }
    assert not odd


@pytest.mark.parametrize("chance", [{}, CHANCE], ids=["without chance", "with chance"])
def test_updates_on_actors_learn_the_same_are_paid_there_and_timed_again(
    chance: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tiny(stop={"rounds": 2}, rollout={"steps_per_call": 4, "attempts": 4})
    beside = record(spec, **chance)
    monkeypatch.setitem(DRIVERS, "synchronous", _LearningOnActors)
    run = record(spec, **chance)
    updates = [work for work in run.segment.works if work.kind == "update"]
    assert {work.where for work in updates} == {"actor"}
    paid = [one for one in run.segment.settlements if "-update-" in one.id]
    assert len(paid) == len(updates)
    assert all(line.sku.startswith("lambda.") for one in paid for line in one.lines)
    again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
    assert (again.time_s, again.bill.picodollars) == (run.end_s, run.spent_picodollars)
    reports, others = (
        [event.report for event in one.events if isinstance(event, RoundFinished)] for one in (run, beside)
    )
    assert [report.figures for report in reports] == [report.figures for report in others]
    # What actors did in a round is what they sampled, wherever the learning was.
    assert [report.usage.minibatches for report in reports] == [0, 0]
    assert all(report.usage.steps >= report.progress for report in reports)


def test_kinds_that_share_a_part_of_the_bill_say_the_same_of_it() -> None:
    parts = {kind.part for kind in KINDS.values()}
    assert len(parts) == len({part.key for part in parts})
