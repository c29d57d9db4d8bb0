"""Gradients and passes in checkpoints of an earlier version, which measured and kept less than this one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.training.runs import events_of
from tests.training.specs import tiny
from tests.training.stellaris_runs import QUICK, Recording, loop, paused_with_gradients
from training.calls.gradient import IMPORTANCE, mean_figures
from training.engine.checkpoints import CheckpointError, Progress
from training.engine.codec import decode, encode


def test_gradients_that_waited_while_staleness_was_counted_in_versions_are_not_resumed_by_kl() -> None:
    spec = tiny(algorithm=QUICK, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})
    kept = paused_with_gradients(spec)
    other = tiny(algorithm=QUICK, loop=loop(distance="kl"), scaling={"actors": 5}, stop={"rounds": 3})
    with pytest.raises(CheckpointError, match="KL"):
        events_of(other, Recording(), resume=kept)
    kept = paused_with_gradients(other)
    assert events_of(other, Recording(), resume=kept)[-1].reason_code == "rounds"
    assert events_of(spec, Recording(), resume=kept)[-1].reason_code == "rounds"


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("report", "explained_variance"),
        ("importance", "truncated"),
        ("importance", "weight"),
        ("", "divergence"),
    ],
)
def test_a_figure_that_waiting_gradients_of_an_earlier_version_lack_ends_no_run(part: str, name: str) -> None:
    spec = tiny(algorithm=QUICK, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})
    progress = Progress.decode(paused_with_gradients(spec), spec)

    def cut(payload: bytes) -> bytes:
        document = decode(payload)
        del (document[part] if part else document)[name]
        return encode(document)

    gradients = tuple(replace(one, payload=cut(one.payload)) for one in progress.unfinished.gradients)
    less = replace(progress, unfinished=replace(progress.unfinished, gradients=gradients))
    events = events_of(spec, Recording(), resume=less.encode(spec))
    assert events[-1].reason_code == "rounds"
    assert not [event for event in events if event.kind == "call_failed"]


def test_a_first_pass_of_an_earlier_version_that_kept_less_is_prepared_anew() -> None:
    spec = tiny(algorithm=QUICK, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})
    progress = Progress.decode(paused_with_gradients(spec), spec)
    assert any(one.prepared for one in progress.unfinished.slices)

    def cut(prepared: bytes | None) -> bytes | None:
        return encode({"advantages": decode(prepared)["advantages"]}) if prepared else None

    slices = tuple(replace(one, prepared=cut(one.prepared)) for one in progress.unfinished.slices)
    less = replace(progress, unfinished=replace(progress.unfinished, slices=slices))
    events = events_of(spec, Recording(), resume=less.encode(spec))
    assert events[-1].reason_code == "rounds"
    assert not [event for event in events if event.kind == "call_failed"]


def test_the_mean_of_a_figure_is_that_of_the_gradients_that_have_it() -> None:
    gradients = [{"report": {"a": 1.0}}, {"report": {"a": 4.0, "b": 5.0}}, {}]
    assert mean_figures(gradients, "report", ("a", "b", "c")) == {"a": 2.5, "b": 5.0, "c": 0.0}
    assert mean_figures(gradients, "report", ("a",), [2, 1, 9]) == {"a": 2.0}
    assert mean_figures([{}], "importance", IMPORTANCE, [1]) == {
        "weight": 1.0,
        "effective": 1.0,
        "truncated": 0.0,
    }
