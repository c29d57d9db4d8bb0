"""Nitro in trainings where things go wrong: each case is defined, and its decision or its end says what happened."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import tiny
from training.engine.messages import RoundFinished
from training.engine.reports import RoundReport

BOOSTING = {"kind": "boosting", "actors_min": 1, "actors_max": 8, "actors_first": 4}


def _reports(events: list) -> list[RoundReport]:
    return [event.report for event in events if isinstance(event, RoundFinished)]


@pytest.mark.parametrize("loop", ["synchronous", "asynchronous"])
def test_a_round_that_lost_a_call_still_decides_the_next(loop: str) -> None:
    def fault(call: object) -> str | None:
        return "worker died" if call.round_no == 2 and getattr(call.request, "slot", None) == 1 else None  # type: ignore[attr-defined]

    found = _reports(events_of(tiny(scaling=BOOSTING, loop={"kind": loop}), InlinePlatform(fault=fault)))
    assert len(found) == 4
    assert all(one.figures.curvature is not None and one.figures.curvature.samples > 0 for one in found)
    assert all(1 <= one.actors <= 8 and one.plan_reason for one in found)


@pytest.mark.parametrize("loop", ["synchronous", "asynchronous"])
def test_without_a_single_call_the_run_ends_in_words(loop: str) -> None:
    fault = lambda call: "account closed" if call.kind == "rollout" else None  # noqa: E731
    events = events_of(tiny(scaling=BOOSTING, loop={"kind": loop}), InlinePlatform(fault=fault))
    assert not _reports(events)
    assert events[-1].reason_code == "failing"
    assert "account closed" in events[-1].reason


def test_advantages_that_are_all_alike_leave_nothing_to_decide_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flat surface: no R, half of what the score can be, and both are said."""
    from training.rl.measures import curvature

    plain = curvature.standardise
    monkeypatch.setattr(
        curvature, "standardise", lambda one: replace(plain(one), advantages=plain(one).advantages * 0)
    )
    found = _reports(events_of(tiny(scaling=BOOSTING), InlinePlatform()))
    for one in found:
        assert one.figures.curvature is not None
        assert one.figures.curvature.ratio is None
        assert "flat" in one.figures.curvature.note
    assert [one.actors for one in found] == [4] + [max(1, int(8 * 0.5 * 0.96**k)) for k in (1, 2, 3)]
    assert all("has no R" in one.plan_reason for one in found[1:])


def test_a_loss_that_is_not_finite_ends_the_run_in_words_and_leaves_the_agent_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from training.rl.algorithms import optimisation

    monkeypatch.setattr(optimisation.math, "isfinite", lambda value: not isinstance(value, float))
    events = events_of(tiny(scaling=BOOSTING), InlinePlatform())
    monkeypatch.setattr(optimisation.math, "isfinite", math.isfinite)
    assert not _reports(events)
    assert events[-1].reason_code == "failing"
    assert "finite" in events[-1].reason
