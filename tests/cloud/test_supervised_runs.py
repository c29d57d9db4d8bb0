"""Supervised learning on clouds: timed again, paid within its budget, checked to the byte, the same anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloud.actor import wire
from cloud.actor.answers import answer_to
from cloud.actor.body import ActorMemory
from cloud.actor.wire import ActorRequest, MalformedMessage
from cloud.money.billing.bill_context import bill_context
from cloud.money.billing.full_bill import full_bill
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.money.billing.round_times import round_times
from cloud.platforms.local import LocalOptions
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import forecast
from tests.cloud.aws import lambdas
from tests.cloud.recorded import CHANCE, record
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import final_learner
from tests.training.specs import descent
from training.calls import KINDS
from training.engine.checkpoints import Progress
from training.engine.codec import decode, encode
from training.engine.messages import BlobRef, Call
from training.functions.body import WarmCache
from training.functions.run import execute
from training.supervised.models.metrics import losses_of
from training.tasks.kinds import task_of
from training.tasks.training import Training

LOOPS = ["hybrid", "bulk_synchronous", "fully_asynchronous"]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("chance", [{}, CHANCE], ids=["without chance", "with chance"])
def test_on_the_simulated_cloud_it_is_reserved_billed_and_timed_again(
    loop: str, chance: dict[str, float]
) -> None:
    run = record(descent(loop={"kind": loop}, calls={"attempts": 6}), **chance)
    assert {work.kind for work in run.segment.works} == {"sgd", "merge", "score"}
    again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
    assert again.time_s == run.end_s
    assert again.bill.picodollars == run.spent_picodollars
    parts = full_bill([run.segment], bill_context(run.place.profile, run.place.stack, 1))
    assert parts.total == run.spent_picodollars
    assert parts.parts["descent"] > parts.parts["evaluation"] > 0
    assert len(round_times(run.segment)) == 2


@pytest.mark.parametrize("loop", LOOPS)
def test_the_same_seed_gives_the_same_weights_with_many_functions_and_chance(loop: str) -> None:
    spec = descent(loop={"kind": loop}, calls={"attempts": 6}, scaling={"kind": "fixed", "actors": 7})
    first, second = (record(spec, **CHANCE) for _ in range(2))
    hashes = [[event.sha256 for event in run.events if event.kind == "checkpoint"] for run in (first, second)]
    scores = [[event.score for event in run.events if event.kind == "evaluation"] for run in (first, second)]
    assert scores[0] == scores[1]
    assert hashes[0] == hashes[1]
    assert first.end_s == second.end_s
    reports = [[event.report for event in run.events if event.kind == "round"] for run in (first, second)]
    assert reports[0] == reports[1]
    usage = reports[0][0].usage
    assert usage.compute_s <= usage.run_s
    assert 0 < usage.fetch_s < usage.transfer_s
    assert usage.fetch_s + usage.push_s <= usage.transfer_s * 1.000001


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    budget_usd=st.floats(0.0001, 0.03),
    loop=st.sampled_from(LOOPS),
    actors=st.integers(1, 9),
    seed=st.integers(0, 1000),
    local_steps=st.sampled_from([4, 10]),
)
def test_spend_is_never_above_the_budget(
    budget_usd: float, loop: str, actors: int, seed: int, local_steps: int
) -> None:
    spec = descent(
        loop={"kind": loop},
        scaling={"kind": "fixed", "actors": actors},
        local_steps=local_steps,
        seed=seed,
        stop={"rounds": 1},
    )
    run = record(spec, budget_usd=budget_usd, options=SimulatedOptions(seed=seed), **CHANCE)
    assert run.spent_picodollars <= budget_usd * 10**12
    settled = sum(settlement.picodollars for settlement in run.segment.settlements)
    assert settled == run.spent_picodollars


def test_a_budget_ends_a_run_within_an_epoch_and_what_was_paid_for_is_kept() -> None:
    # Two minutes' rent of the learner, the first of which it takes to start.
    run = record(descent(minibatch=4, calls={"deadline_s": 5.0}), budget_usd=0.026)
    last = run.events[-1]
    assert (last.reason_code, last.rounds) == ("budget", 0)
    assert 0 < last.progress < 1438
    assert [event.round_no for event in run.events if event.kind == "checkpoint"] == [0]


@pytest.fixture(params=["local", pytest.param("lambda", marks=pytest.mark.slow)])
def platform(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "local":
        opened = LocalOptions(workers=2).open()
        yield opened
        opened.close()
        return
    with lambdas.metered() as opened:
        yield opened


def test_it_learns_the_same_on_workers_and_on_lambda(platform: Any, tmp_path: Path) -> None:
    spec = descent(
        loop={"kind": "bulk_synchronous"},
        local_steps=4,
        significance=0.1,
        calls={"memory_mb": lambdas.MEMORY_MB},
    )
    assert final_learner(spec, platform, tmp_path / "there") == final_learner(
        spec, InlinePlatform(), tmp_path / "here"
    )


def test_a_forecast_counts_its_epochs() -> None:
    spec = descent(stop={"rounds": 20}, scaling={"kind": "fixed", "actors": 4})
    found = forecast(spec, SimulatedOptions(), 10**12)
    assert (found.ends_by, found.rounds.p50) == ("rounds", 20)
    assert found.steps.p50 == pytest.approx(20 * 1438, rel=0.03)
    assert found.calls.p50 > 20 * 23
    assert 0 < found.dollars.p10 < found.dollars.p90
    assert not any("nvironment" in one for one in found.assumptions)


# Hostile answers


def of(spec: Training, kind: str) -> tuple[Call, bytes]:
    """A call of each kind, and the weights that it needs."""
    task = task_of(spec)
    begun = task.begin()
    ref = BlobRef(version=0, sha256="0" * 64, byte_count=len(begun.weights))
    values: dict[str, Any] = {"round_no": 1, "seed": 0, "deadline_s": 30.0, "memory_mb": 1769}
    requests = {
        "sgd": task.slice(0, 0),
        "score": task.judge(0, 2)[0].request,
    }
    if kind == "merge":
        pushes = [result_of(*of(spec, "sgd")).payload for _ in range(2)]
        call = Call(
            id="c-a1", request=task.learn(0.0), where="learner", inputs=(begun.learner, *pushes), **values
        )
        return call, begun.weights
    request = requests[kind]
    call = Call(
        id="c-a1", request=request, where="actor", weights=ref, inputs=task.inputs_of(request), **values
    )
    return call, begun.weights


def result_of(call: Call, weights: bytes) -> Any:
    return execute(call, weights if call.weights is not None else None, WarmCache())


@pytest.mark.parametrize("kind", ["sgd", "merge", "score"])
@pytest.mark.parametrize("significance", [0.0, 0.5])
def test_an_honest_answer_is_taken(kind: str, significance: float) -> None:
    call, weights = of(descent(significance=significance), kind)
    result = result_of(call, weights)
    KINDS[kind].check(call, call.request, result)
    assert len(result.payload) + len(result.slot_state or b"") <= KINDS[kind].answer_limit_bytes(
        call, call.request
    )


def test_an_answer_travels_by_the_wire() -> None:
    call, weights = of(descent(), "sgd")
    assert call.weights is not None
    ref = call.weights.model_copy(update={"sha256": hashlib.sha256(weights).hexdigest()})
    call = call.model_copy(update={"weights": ref})
    packed = ActorMemory().answer(
        wire.pack_request(ActorRequest(run="run", call=call, not_after_unix_s=2e10)), weights=weights
    )
    _, result = answer_to(call, "run", packed)
    assert result is not None
    assert result.payload == result_of(call, weights).payload
    answer = wire.read_answer(packed)
    other = answer.model_copy(update={"payload": answer.payload + b"more"})
    with pytest.raises(MalformedMessage):
        answer_to(call, "run", wire.pack_answer(other))


def changed(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(changes)


def _reverse(document: dict[str, Any]) -> None:
    del document["all:weight"]
    document |= {"at:weight": np.array([5, 3], np.int32), "of:weight": np.ones(2, np.float32)}


def _others(document: dict[str, Any]) -> None:
    """The classes that the model finds likeliest, and their losses."""
    targets = document["probabilities"].argmax(axis=1).astype(np.int32)
    document |= {"targets": targets, "losses": losses_of(document["probabilities"], targets)}


HOSTILE = [
    pytest.param("sgd", changed(version=3), "not", id="a push of another version"),
    pytest.param("sgd", changed(slice_no=9), "not", id="a push of another slice"),
    pytest.param("sgd", changed(rows=10**9), "not", id="a push of more rows"),
    pytest.param("sgd", changed(rows=True), "rows is True", id="a push whose rows are no number"),
    pytest.param("sgd", changed(loss=float("nan")), "not a finite", id="a loss that is no number"),
    pytest.param("sgd", changed(loss="low"), "loss is 'low'", id="a loss that is a text"),
    pytest.param(
        "sgd",
        changed(**{"all:bias": np.zeros(11, np.float32)}),
        "11 numbers, not 10",
        id="a gradient of another size",
    ),
    pytest.param("sgd", changed(**{"all:bias": np.zeros(10)}), "type <f4", id="a gradient of another type"),
    pytest.param(
        "sgd",
        changed(**{"all:bias": np.full(10, np.inf, np.float32)}),
        "not finite",
        id="a gradient that is infinite",
    ),
    pytest.param("sgd", changed(more=1), "not packed as", id="something more"),
    pytest.param(
        "sgd",
        changed(**{"all:bias": np.zeros(10, np.float32)}),
        "not packed as",
        id="a gradient packed in another way",
    ),
    pytest.param("sgd", _reverse, "not in order", id="places out of order"),
    pytest.param("sgd", changed(loss=1e300), "at most 1e", id="a loss beyond all sense"),
    pytest.param(
        "sgd",
        changed(**{"all:bias": np.full(10, 1e16, np.float32)}),
        "finite, or above",
        id="a gradient beyond all sense",
    ),
    pytest.param("merge", changed(loss=0.1), "of these pushes", id="a merge of other numbers"),
    pytest.param("merge", changed(version=9), "of these pushes", id="a merge of another version"),
    pytest.param("score", changed(losses=np.zeros(3, np.float32)), "of its rows", id="scores of fewer rows"),
    pytest.param("score", changed(losses=np.full(180, -1, np.float32)), "below 0", id="a score below zero"),
    pytest.param("score", changed(losses=np.zeros(180, np.float32)), "of the prob", id="losses that flatter"),
    pytest.param(
        "score", changed(losses=np.full(180, 3e38, np.float32)), "of the prob", id="losses beyond all sense"
    ),
    pytest.param("score", _others, "of the rows", id="other classes"),
    pytest.param(
        "score", changed(probabilities=np.zeros((180, 10), np.float32)), "add up to 1", id="no probabilities"
    ),
    pytest.param(
        "score", changed(targets=np.full(180, 10, np.int32)), "no probability", id="a class that is not there"
    ),
    pytest.param("score", changed(more=1), "adds: more", id="scores with more beside"),
]


@pytest.mark.parametrize(("kind", "change", "words"), HOSTILE)
def test_a_hostile_answer_is_refused(kind: str, change: Callable[[dict[str, Any]], None], words: str) -> None:
    call, weights = of(descent(), kind)
    result = result_of(call, weights)
    document = decode(result.payload)
    change(document)
    with pytest.raises(ValueError, match=words):
        KINDS[kind].check(call, call.request, type(result)(encode(document), result.slot_state, result.usage))


@pytest.mark.parametrize("kind", ["sgd", "merge", "score"])
def test_work_that_was_not_done_is_not_believed(kind: str) -> None:
    call, weights = of(descent(), kind)
    result = result_of(call, weights)
    usage = result.usage.model_copy(update={"samples": result.usage.samples + 1})
    with pytest.raises(ValueError, match="reported"):
        KINDS[kind].check(call, call.request, type(result)(result.payload, None, usage))
    with pytest.raises(ValueError, match=r"state|carr|too short"):
        KINDS[kind].check(call, call.request, type(result)(result.payload, b"state", result.usage))


def test_a_carried_state_without_a_filter_is_refused() -> None:
    call, weights = of(descent(significance=0.5), "sgd")
    result = result_of(call, weights)
    plain, _ = of(descent(), "sgd")
    with pytest.raises(ValueError, match="without a filter"):
        KINDS["sgd"].check(plain, plain.request, result)


def test_a_checkpoint_knows_where_it_is_in_its_data() -> None:
    progress = Progress(learner=b"", weights=b"", first_slice=4, slices_done=(6, 9))
    spec = descent()
    assert Progress.decode(progress.encode(spec), spec) == progress
