"""Supervised learning: each epoch has every row once; one function with one local step is plain gradient descent."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from tests.training.specs import descent, tiny
from training.calls.sgd import SgdRequest
from training.data import library
from training.data.store import read_rows
from training.engine.checkpoints import CheckpointError, Progress
from training.engine.messages import Call, Evaluated, RoundFinished
from training.engine.ports import Control
from training.engine.reports import RoundReport
from training.supervised.descent_state import DescentState
from training.supervised.models.metrics import majority_loss
from training.tasks import supervised_spec
from training.tasks.kinds import TASKS, read_training, task_of
from training.tasks.supervised_spec import Supervised

LOOPS = ["hybrid", "bulk_synchronous", "fully_asynchronous"]


def learned(spec: Supervised, platform: Any, **options: Any) -> DescentState:
    store = Forgetful()
    events_of(spec, platform, checkpoints=store, **options)
    (data,) = store.saved.values()
    return DescentState.decode(Progress.decode(data, spec).learner)


def slices_of(platform: InlinePlatform) -> list[SgdRequest]:
    return [call.request for call in platform.submitted if isinstance(call.request, SgdRequest)]


def plainly(spec: Supervised) -> DescentState:
    """Minibatch descent in a loop of its own, over the rows in the order of the job's epochs."""
    task, manifest = task_of(spec), spec.manifest
    state = DescentState.decode(task.begin().learner)
    parameters, optimiser, steps = state.parameters, state.optimiser, 0
    for number in range(spec.calls_an_epoch * (spec.stop.rounds or 0)):
        rows = read_rows(library.store(), task.slice(number, 0).ranges)
        _, gradient = spec.model.loss_and_gradient(parameters, rows)
        parameters, optimiser = spec.optimiser.step(parameters, gradient, optimiser)
        steps += 1
    assert steps * spec.minibatch >= manifest.rows
    return DescentState(steps, parameters, optimiser)


@pytest.mark.parametrize("optimiser", [{"kind": "sgd"}, {"kind": "momentum"}, {"kind": "adam"}])
def test_one_function_with_one_local_step_is_plain_descent_bit_for_bit(optimiser: dict[str, Any]) -> None:
    spec = descent(scaling={"kind": "fixed", "actors": 1}, optimiser=optimiser)
    assert learned(spec, InlinePlatform()).encode() == plainly(spec).encode()


def test_local_steps_of_one_function_are_the_same_descent_but_for_rounding() -> None:
    one = {"kind": "fixed", "actors": 1}
    stepwise = plainly(descent(scaling=one, minibatch=64, stop={"rounds": 1}))
    spec = descent(scaling=one, minibatch=64, local_steps=23, stop={"rounds": 1}, seed=0)
    task = task_of(spec)
    assert task.calls_an_epoch == 1
    local = learned(spec, InlinePlatform())
    in_order = DescentState.decode(task.begin().learner).parameters
    rows = read_rows(library.store(), task.slice(0, 0).ranges)
    for begin in range(0, len(rows), 64):
        _, gradient = spec.model.loss_and_gradient(in_order, rows.between(begin, begin + 64))
        in_order = {name: array - np.float32(0.1) * gradient[name] for name, array in in_order.items()}
    assert local.version == 1
    assert stepwise.version == 23
    for name, array in in_order.items():
        np.testing.assert_allclose(local.parameters[name], array, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("failing", [False, True], ids=["all answer", "one in five fails"])
def test_every_epoch_has_each_row_once_whichever_function_runs_it(loop: str, failing: bool) -> None:
    def fault(call: Call) -> str | None:
        unlucky = failing and call.kind == "sgd" and call.attempt == 1 and call.seed % 5 == 0
        return "made to fail" if unlucky else None

    platform = InlinePlatform(order=lambda waiting: waiting // 2, fault=fault)
    spec = descent(loop={"kind": loop})
    events = events_of(spec, platform)
    named = Counter(
        (part.shard, row)
        for call in platform.submitted
        if isinstance(call.request, SgdRequest) and call.attempt == 1
        for part in call.request.ranges
        for row in range(part.begin, part.end)
    )
    rows = spec.manifest.rows
    beyond = 3 * spec.minibatch if loop == "fully_asynchronous" else 0
    assert len(named) == rows
    assert 2 * rows <= named.total() <= 2 * rows + beyond
    rounds = [event.report for event in events if isinstance(event, RoundFinished)]
    assert 2 * rows <= events[-1].progress <= 2 * rows + beyond
    if not beyond:
        assert [report.progress for report in rounds] == [rows, rows]
    assert {request.slot for request in slices_of(platform)} == {0, 1, 2}
    if loop == "bulk_synchronous":
        assert rounds[0].version == -(-23 // 3)
        assert rounds[0].figures.staleness_most == 0


@pytest.mark.parametrize("loop", LOOPS)
def test_it_learns_and_says_so_in_figures_of_its_own(loop: str) -> None:
    spec = descent(loop={"kind": loop}, stop={"rounds": 6}, optimiser={"kind": "sgd", "learning_rate": 0.5})
    events = events_of(spec, InlinePlatform())
    judged = [event for event in events if isinstance(event, Evaluated)]
    assert judged[-1].score < 0.5 * judged[0].figures.majority_loss
    assert judged[-1].figures.accuracy > 0.85
    assert judged[0].figures.majority_loss == majority_loss(spec.manifest)
    assert judged[0].figures.rows == spec.manifest.held_out_rows
    assert Evaluated.model_validate_json(judged[0].model_dump_json()) == judged[0]
    reports = [event.report for event in events if isinstance(event, RoundFinished)]
    assert reports[-1].score == reports[-1].figures.loss < reports[0].figures.loss
    assert reports[0].figures.pushed_bytes > 1000
    assert RoundReport.model_validate_json(reports[0].model_dump_json()) == reports[0]
    assert events[-1].evaluated_score == judged[-1].score


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("stop_at", [5, 11, 29])
def test_a_run_that_is_stopped_within_an_epoch_goes_on_without_learning_from_a_row_twice(
    loop: str, stop_at: int
) -> None:
    spec, store = descent(loop={"kind": loop}), Forgetful()
    first = InlinePlatform()

    def control() -> Control:
        sent = sum(call.kind == "sgd" for call in first.submitted)
        return Control(desired="paused" if sent >= stop_at else "run")

    before = events_of(spec, first, control=control, checkpoints=store)
    assert before[-1].reason_code == "paused"
    (saved,) = store.saved.values()
    progress = Progress.decode(saved, spec)
    waiting = len(progress.waiting)
    again = InlinePlatform()
    after = events_of(spec, again, resume=saved)
    last = after[-1]
    rounds = [event.report for event in (*before, *after) if isinstance(event, RoundFinished)]
    assert sum(report.progress for report in rounds) == last.progress, "no row is left out of the rounds"
    beyond = 3 * spec.minibatch if loop == "fully_asynchronous" else 0
    assert 2 * spec.manifest.rows <= last.progress <= 2 * spec.manifest.rows + beyond
    assert last.rounds == 2
    numbers = Counter(request.slice_no for request in slices_of(again))
    done = progress.first_slice + len(progress.slices_done)
    assert not set(numbers) & {*range(progress.first_slice), *progress.slices_done}
    assert len(numbers) >= 2 * spec.calls_an_epoch - done
    assert waiting <= 3


def test_between_two_epochs_a_resumed_run_is_the_same_run() -> None:
    spec, store = descent(stop={"rounds": 4}), Forgetful()
    events_of(descent(stop={"rounds": 2}), InlinePlatform(), checkpoints=store)
    assert (
        learned(spec, InlinePlatform(), resume=store.saved[2]).encode()
        == learned(spec, InlinePlatform()).encode()
    )


def test_a_limit_of_samples_ends_within_an_epoch() -> None:
    spec = descent(stop={"rounds": None, "samples": 1000})
    last = events_of(spec, InlinePlatform())[-1]
    assert last.reason_code == "steps"
    assert 1000 <= last.progress < 1000 + 64


def test_a_slice_that_always_fails_is_left_out_of_its_epoch() -> None:
    platform = InlinePlatform(
        fault=lambda call: "unlucky" if getattr(call.request, "slice_no", -1) == 7 else None
    )
    events = events_of(descent(stop={"rounds": 1}), platform)
    (report,) = [event.report for event in events if isinstance(event, RoundFinished)]
    assert (report.dropped_contributions, report.failed_calls) == (1, 3)
    assert report.progress in (1438 - 64, 1438 - 30)


def test_no_call_returns_more_scores_than_an_answer_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = descent()
    monkeypatch.setattr(supervised_spec, "_SCORED_BYTES", 4 * 12 * 50)
    calls = spec.score_calls(1)
    assert spec.manifest.held_out_rows / calls <= 50
    assert len(task_of(spec).judge(1, 1)) == calls


def test_no_call_brings_more_rows_than_a_request_holds() -> None:
    spec = descent(data="generated_clicks", model={"kind": "click_through"}, minibatch=64)
    held_out = sum(shard.byte_count for shard in spec.manifest.held_out_shards)
    assert held_out / spec.score_calls(1) <= 2 * 2**20
    judged = task_of(spec).judge(1, 3)
    assert sum(one.request.rows for one in judged) == spec.manifest.held_out_rows
    assert task_of(spec).most_judgings() == (16, 1)
    assert 10_000 < spec.call_bytes < 400_000


def test_a_model_that_does_not_fit_the_data_is_refused_with_its_field() -> None:
    with pytest.raises(ValueError, match=r"model\n.*LeNet learns grey pictures"):
        descent(data="breast_cancer", model={"kind": "lenet"})
    with pytest.raises(ValueError, match="choose SGD or momentum"):
        descent(local_steps=2, optimiser={"kind": "adam"})


def test_a_fork_keeps_the_parameters_and_begins_its_optimiser_again() -> None:
    spec, store = descent(optimiser={"kind": "momentum"}), Forgetful()
    events_of(spec, InlinePlatform(), checkpoints=store)
    ended = Progress.decode(store.saved[2], spec)
    forked = task_of(descent(optimiser={"kind": "adam"})).fork(ended)
    before, after = DescentState.decode(ended.learner), DescentState.decode(forked.learner)
    assert all((after.parameters[name] == array).all() for name, array in before.parameters.items())
    assert (after.version, after.optimiser.steps) == (0, 0)
    with pytest.raises(CheckpointError, match="another model"):
        task_of(descent(data="breast_cancer")).fork(ended)
    with pytest.raises(CheckpointError, match="another minibatch"):
        Progress.decode(store.saved[2], descent(optimiser={"kind": "momentum"}, minibatch=32))


def test_specs_of_both_kinds_are_distinguished() -> None:
    for spec in (descent(), tiny()):
        assert read_training(spec.model_dump(mode="json")) == spec
        assert TASKS[spec.kind].facts_of(spec.model_dump(mode="json")).kind == spec.kind
    facts = descent().facts
    assert (facts.subject, facts.method, facts.progress_unit, facts.rounds_limit) == (
        "Digits",
        "logistic",
        "samples",
        2,
    )
