"""Calls say what they come after: whatever chance does, a call is sent exactly when the last of that has landed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.chance_platform import ChancePlatform, Flown
from tests.training.runs import Forgetful, events_of
from tests.training.specs import tiny
from training.engine.messages import Event
from training.spec import TrainingSpec

QUICK = {"kind": "impala", "minibatch_size": 64}
REPLAYING = {
    "kind": "impact",
    "epochs": 1,
    "minibatch_size": 64,
    "learning_rate_decay": False,
    "replay_uses": 2,
}
LOOPS = {
    "synchronous": {},
    "pipelined": {"loop": {"kind": "pipelined"}},
    "asynchronous": {"loop": {"kind": "asynchronous", "staleness_limit": 2}, "algorithm": QUICK},
    "hurried": {
        "loop": {"kind": "asynchronous", "staleness_limit": 1, "trajectories_per_update": 1},
        "algorithm": QUICK,
    },
    "replaying": {"loop": {"kind": "asynchronous", "staleness_limit": 2}, "algorithm": REPLAYING},
}


def spec_of(loop: str, **changes: object) -> TrainingSpec:
    base: dict[str, object] = {
        "rollout": {"steps_per_call": 4, "attempts": 2},
        "stop": {"rounds": 6},
        "evaluation": {"every_rounds": 2, "episodes": 3},
    }
    return tiny(**{**base, **LOOPS[loop], **changes})


def check_graph(platform: ChancePlatform) -> dict[str, list[Flown]]:
    """Tasks by name: each was sent at the moment when the last of those before it landed, retries at once."""
    tasks: dict[str, list[Flown]] = {}
    for flown in platform.flown.values():
        assert flown.outcome is not None
        tasks.setdefault(flown.call.name, []).append(flown)
    landed_s = {name: attempts[-1].outcome.finished_s for name, attempts in tasks.items()}
    seen: set[str] = set()
    for name, attempts in tasks.items():
        first, *again = attempts
        assert set(first.call.after) <= seen, "what a call comes after was sent before it"
        seen.add(name)
        assert first.submitted_s == max((landed_s[other] for other in first.call.after), default=0.0)
        for before, retry in zip(attempts, again, strict=False):
            assert retry.submitted_s == before.outcome.finished_s
            assert retry.call.after == first.call.after
    return tasks


def ancestors(tasks: dict[str, list[Flown]], name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = set(tasks[waiting.pop()][0].call.after) - found
        found |= new
        waiting += new
    return found


def check_data(platform: ChancePlatform, tasks: dict[str, list[Flown]]) -> None:
    """Data never comes from a call that is not among those waited for, directly or through others."""
    made_by = {
        flown.outcome.payload: name
        for name, attempts in tasks.items()
        for flown in attempts
        if flown.outcome.status == "done"
    }
    states = {
        flown.outcome.slot_state: name
        for name, attempts in tasks.items()
        for flown in attempts
        if flown.outcome.slot_state
    }
    for name, attempts in tasks.items():
        call = attempts[0].call
        before = ancestors(tasks, name)
        assert {made_by[payload] for payload in call.inputs[1:]} <= before
        if call.slot_state is not None:
            assert states[call.slot_state] in before


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32), loop=st.sampled_from(sorted(LOOPS)), failures=st.sampled_from([0.0, 0.15]))
def test_a_call_is_sent_when_the_last_of_what_it_comes_after_has_landed(seed, loop, failures):
    platform = ChancePlatform(seed, failures=failures)
    events_of(spec_of(loop), platform)
    check_data(platform, check_graph(platform))


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_all_kinds_of_ends_and_calls_are_met(loop):
    """The property above would be empty without retries, evaluations in between, and a last one after the end."""
    platform = ChancePlatform(6)
    # Five rounds and an evaluation every second: the last policy is evaluated once more at the end.
    events: list[Event] = events_of(spec_of(loop, stop={"rounds": 5}), platform)
    tasks = check_graph(platform)
    assert any(len(attempts) > 1 for attempts in tasks.values())
    evaluated = [event.round_no for event in events if event.kind == "evaluation"]
    assert evaluated[-1] == 5
    last = [name for name, attempts in tasks.items() if attempts[0].call.kind == "evaluate"][-1]
    assert any("update" in name for name in tasks[last][0].call.after)
    assert ("asynchronous" in str(LOOPS[loop])) == any(
        flown.outcome.status == "cancelled" for flown in platform.flown.values()
    )


def test_a_round_waits_for_the_evaluation_before_it():
    platform = ChancePlatform(1, failures=0.0)
    events_of(spec_of("synchronous", stop={"rounds": 3}), platform)
    tasks = check_graph(platform)
    third = next(attempts[0].call for attempts in tasks.values() if attempts[0].call.round_no == 3)
    assert third.kind == "rollout"
    assert {tasks[name][0].call.kind for name in third.after} == {"evaluate"}


@pytest.mark.parametrize("loop", ["synchronous", "pipelined", "asynchronous"])
def test_a_resumed_run_begins_a_new_graph(loop):
    store = Forgetful()
    events_of(spec_of(loop, stop={"rounds": 4}), ChancePlatform(1, failures=0.0), checkpoints=store)
    platform = ChancePlatform(2)
    events_of(spec_of(loop), platform, checkpoints=store, resume=store.load("4"))
    tasks = check_graph(platform)
    assert next(iter(tasks.values()))[0].call.after == ()
