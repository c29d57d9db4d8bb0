"""What a kind of training must pass, run in a copy of the code that knows quadratics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from training.calls.quadratic import loss_at
from training.tasks.quadratic import Quadratic

from cloud.money.billing.bill_context import bill_context
from cloud.money.billing.full_bill import full_bill
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.money.billing.round_times import round_times
from cloud.platforms.local import LocalOptions
from tests.cloud.aws import lambdas
from tests.cloud.recorded import CHANCE, record
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of, final_learner
from training.engine.checkpoints import FileCheckpointStore, Progress
from training.engine.codec import decode
from training.engine.messages import Evaluated, Event, RoundFinished
from training.engine.reports import RoundReport


def quadratic(**changes: Any) -> Quadratic:
    return Quadratic.model_validate(
        {"scaling": {"kind": "fixed", "actors": 3}, "stop": {"samples": None, "rounds": 6}, **changes}
    )


def losses(events: list[Event]) -> list[float]:
    return [event.score for event in events if isinstance(event, Evaluated)]


def test_it_learns_and_its_loss_goes_down() -> None:
    events = events_of(quadratic(), InlinePlatform())
    found = losses(events)
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.2 * found[0]
    reports = [event.report for event in events if isinstance(event, RoundFinished)]
    assert [report.total_progress for report in reports] == [48 * n for n in range(1, 7)]
    assert all(report.score == report.figures.loss for report in reports)
    assert reports[0].model_dump()["episode_return_mean"] == reports[0].score
    assert RoundReport.model_validate_json(reports[0].model_dump_json()) == reports[0]


def test_it_is_stopped_by_its_own_score() -> None:
    last = events_of(
        quadratic(stop={"samples": 100_000, "target_loss": 0.05}, evaluation={"every_rounds": 1}),
        InlinePlatform(),
    )[-1]
    assert last.reason_code == "target"
    assert " loss stayed at 0.05 " in last.reason
    last = events_of(quadratic(stop={"samples": 96}), InlinePlatform())[-1]
    assert (last.reason_code, last.reason) == ("steps", "reached 96 samples")


def test_its_best_checkpoint_has_the_least_loss(tmp_path: Path) -> None:
    store, spec = FileCheckpointStore(tmp_path), quadratic(rate=0.9, evaluation={"every_rounds": 1})
    events = events_of(spec, InlinePlatform(), checkpoints=store)
    best = Progress.decode(store.load(store.best() or ""), spec)
    assert loss_at(decode(best.weights)["theta"]) == min(losses(events))


@pytest.mark.parametrize("loop", ["synchronous", "pipelined", "asynchronous"])
def test_every_loop_runs_it_and_goes_on_from_a_checkpoint(loop: str, tmp_path: Path) -> None:
    spec = quadratic(loop={"kind": loop}, checkpoints={"every_rounds": 1})
    store = Forgetful()
    short = spec.model_copy(update={"stop": spec.stop.model_copy(update={"rounds": 3})})
    events_of(short, InlinePlatform(), checkpoints=store)
    assert events_of(spec, InlinePlatform(), resume=store.saved[3])[-1].rounds == 6
    with pytest.raises(ValueError, match="another dimension"):
        events_of(spec.model_copy(update={"dimension": 7}), InlinePlatform(), resume=store.saved[3])


@pytest.mark.parametrize("chance", [{}, CHANCE], ids=["without chance", "with chance"])
def test_on_the_simulated_cloud_it_is_reserved_billed_and_timed_again(chance: dict[str, float]) -> None:
    run = record(quadratic(calls={"attempts": 6}), **chance)
    assert {work.kind for work in run.segment.works} == {"slope", "descend", "appraise"}
    again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
    assert again.time_s == run.end_s
    assert again.bill.picodollars == run.spent_picodollars
    parts = full_bill([run.segment], bill_context(run.place.profile, run.place.stack, 1))
    assert parts.total == run.spent_picodollars
    assert parts.parts["slopes"] > 0
    assert len(round_times(run.segment)) == 6


@pytest.fixture(params=["local", "lambda"])
def platform(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "local":
        opened = LocalOptions(workers=2).open()
        yield opened
        opened.close()
        return
    with lambdas.metered() as opened:
        yield opened


def test_it_learns_the_same_on_workers_and_on_lambda(platform: Any, tmp_path: Path) -> None:
    spec = quadratic(calls={"memory_mb": lambdas.MEMORY_MB})
    assert final_learner(spec, platform, tmp_path / "there") == final_learner(
        spec, InlinePlatform(), tmp_path / "here"
    )
