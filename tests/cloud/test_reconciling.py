"""Beliefs against findings: each case by hand, and laws that hold for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.accounts.reconciling import PATIENCE, Decision, RegisteredResource, compare
from cloud.accounts.register import FoundResource

NOW = 1_000_000.0
OURS = "con_ours"
_GROUP = RegisteredResource("g1", "container_group", "standing", True, NOW - 500, NOW - 490, NOW + 30)


def _found(name: str = "g1", **changes: Any) -> FoundResource:
    return replace(FoundResource(name, "container_group", deployment=OURS), **changes)


def _decide(resource: RegisteredResource | None, seen: FoundResource | None) -> Decision:
    decisions = compare(
        [] if resource is None else [resource], [] if seen is None else [seen], now_unix_s=NOW, ours=OURS
    )
    assert len(decisions) == 1
    return decisions[0]


@pytest.mark.parametrize(
    ("changes", "action", "words"),
    [
        ({}, "leave", "It exists and is in use."),
        ({"held": False}, "end", "The process that created it is gone."),
        ({"expires_unix_s": NOW - 7}, "end", "It was paid for until 7 s ago, and that was not renewed."),
        ({"state": "intended"}, "stands", "It exists, though its creation was not confirmed yet."),
        ({"state": "intended", "held": False}, "end", "The process that created it is gone."),
        ({"state": "ending", "since_unix_s": NOW - 9}, "wait", "Its removal was requested 9 s ago."),
        (
            {"state": "ending", "since_unix_s": NOW - 10, "held": False},
            "end",
            "Its removal was requested 10 s ago, and it still exists.",
        ),
        ({"state": "gone", "since_unix_s": NOW - 14}, "wait", "It has ended; the cloud may still list it"),
        ({"state": "gone", "since_unix_s": NOW - 15}, "end", "It was recorded as gone, but it still exists."),
        (
            {"state": "lost", "since_unix_s": NOW - 100},
            "end",
            "It was recorded as gone, but it still exists.",
        ),
    ],
)
def test_what_is_believed_and_found(changes: dict[str, Any], action: str, words: str) -> None:
    decision = _decide(replace(_GROUP, **changes), _found())
    assert (decision.action, decision.reason.startswith(words)) == (action, True), decision.reason


@pytest.mark.parametrize(
    ("changes", "action", "words"),
    [
        (
            {"state": "intended", "intended_unix_s": NOW - 5},
            "wait",
            "It was requested 5 s ago and may not be listed",
        ),
        (
            {"state": "intended", "held": False},
            "wait",
            "It was requested 500 s ago and may not be listed yet.",
        ),
        (
            {"state": "intended", "held": False, "missing_since_unix_s": NOW - 15},
            "gone",
            "It was requested 500 s ago and was never created.",
        ),
        (
            {
                "state": "intended",
                "held": False,
                "missing_since_unix_s": NOW - 15,
                "intended_unix_s": NOW - 59,
            },
            "wait",
            "It was requested 59 s ago",
        ),
        ({"state": "intended", "missing_since_unix_s": NOW - 90}, "wait", "It is not listed; the process"),
        ({}, "wait", "It has not been listed for 0 s; listings lag behind."),
        ({"missing_since_unix_s": NOW - 14}, "wait", "It has not been listed for 14 s"),
        ({"missing_since_unix_s": NOW - 15, "held": False}, "gone", "It ended by itself, as its run did."),
        ({"missing_since_unix_s": NOW - 15}, "lost", "It should exist but has not been listed for 15 s."),
        (
            {"missing_since_unix_s": NOW - 90, "intended_unix_s": NOW - 40},
            "wait",
            "It has not been listed for 90",
        ),
        ({"state": "ending"}, "wait", "It is not listed any more; the next listing will confirm that."),
        ({"state": "ending", "missing_since_unix_s": NOW - 15}, "gone", "It has ended."),
        ({"state": "gone"}, "leave", "It has ended and is not listed."),
    ],
)
def test_what_is_believed_and_not_found(changes: dict[str, Any], action: str, words: str) -> None:
    decision = _decide(replace(_GROUP, **changes), None)
    assert (decision.action, decision.reason.startswith(words)) == (action, True), decision.reason


def test_what_no_row_knows() -> None:
    ours = _decide(None, _found())
    assert (ours.action, ours.orphaned) == ("end", True)
    others = _decide(None, _found(deployment="con_theirs"))
    assert others.action == "leave"
    assert "con_theirs" in others.reason
    assert _decide(None, _found(deployment="")).action == "leave"


def test_what_a_set_up_tries_is_its_own_until_the_time_it_gave_itself() -> None:
    """It has our tags, no row and no run; a look at the wrong moment ended it before its container had begun."""
    trial = _found(run="", expires_unix_s=NOW + 60)
    assert _decide(None, trial).action == "wait"
    assert _decide(None, replace(trial, expires_unix_s=NOW)).action == "end"
    assert _decide(None, replace(trial, expires_unix_s=None)).action == "end"
    assert _decide(None, replace(trial, run="job_1/e1")).action == "end", "a run writes its rows first"


def test_one_decision_for_each_name_in_their_order() -> None:
    beliefs = [replace(_GROUP, name="b"), replace(_GROUP, name="d", held=False)]
    decisions = compare(beliefs, [_found("c"), _found("d"), _found("a")], now_unix_s=NOW, ours=OURS)
    assert [(one.name, one.action) for one in decisions] == [
        ("a", "end"),
        ("b", "wait"),
        ("c", "end"),
        ("d", "end"),
    ]


_beliefs = st.builds(
    RegisteredResource,
    name=st.sampled_from("ab"),
    kind=st.just("provisioned"),
    state=st.sampled_from(["intended", "standing", "ending", "gone", "lost"]),
    held=st.booleans(),
    intended_unix_s=st.floats(NOW - 300, NOW),
    since_unix_s=st.floats(NOW - 300, NOW),
    expires_unix_s=st.floats(NOW - 100, NOW + 100),
    missing_since_unix_s=st.none() | st.floats(NOW - 300, NOW),
)
_findings = st.builds(
    FoundResource,
    name=st.sampled_from("ab"),
    kind=st.just("provisioned"),
    deployment=st.sampled_from(["", OURS, "con_theirs"]),
    run=st.sampled_from(["", "job_1/e1"]),
    expires_unix_s=st.none() | st.floats(NOW - 100, NOW + 100),
)


@given(resource=_beliefs, seen=st.none() | _findings)
def test_laws(resource: RegisteredResource, seen: FoundResource | None) -> None:
    for one in compare([resource], [] if seen is None else [seen], now_unix_s=NOW, ours=OURS):
        assert one.reason.endswith(".")
        wanted = (
            resource.held and resource.state in ("intended", "standing") and resource.expires_unix_s > NOW
        )
        if one.action == "end":
            assert one.found is not None, "only what was seen is ended"
            assert one.registered is None or not wanted, "nothing that is wanted is ended"
            if one.registered is None:
                assert one.found.deployment == OURS, "nothing of anybody else's is ended"
        if one.action in ("gone", "lost"):
            assert one.registered is not None
            assert one.found is None
            assert NOW - resource.intended_unix_s >= PATIENCE.appears_within_s, (
                "what is young may be invisible"
            )
            assert resource.missing_since_unix_s is not None, "one look is no evidence"
        if one.action == "leave" and one.registered is not None and one.found is not None:
            assert wanted, "what is found and not wanted is never left"


@given(resource=_beliefs)
def test_whatever_is_not_wanted_ends_in_the_end(resource: RegisteredResource) -> None:
    """Compared again later, without renewals: its end is requested as long as it is listed, and then it is over."""
    late = NOW + 400
    seen = compare(
        [resource], [FoundResource(resource.name, "provisioned", deployment=OURS)], now_unix_s=late, ours=OURS
    )
    assert [one.action for one in seen] == ["end"]
    absent = replace(resource, held=False, missing_since_unix_s=NOW)
    (unseen,) = compare([absent], [], now_unix_s=late, ours=OURS)
    assert unseen.action in ("gone", "lost", "leave")
