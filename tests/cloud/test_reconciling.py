"""Beliefs against findings: each case by hand, and laws that hold for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cloud.accounts.reconciling import PATIENCE, Decision, RegisteredResource, compare
from cloud.accounts.register import FoundResource

NOW = 1_000_000.0
OURS = "con_ours"
GROUP = RegisteredResource("g1", "container_group", "standing", True, NOW - 500, NOW - 490, NOW + 30)


def seen(name: str = "g1", **changes: Any) -> FoundResource:
    return replace(FoundResource(name, "container_group", deployment=OURS), **changes)


def decided(resource: RegisteredResource | None, seen: FoundResource | None) -> Decision:
    decisions = compare(
        [] if resource is None else [resource], [] if seen is None else [seen], now_unix_s=NOW, ours=OURS
    )
    assert len(decisions) == 1
    return decisions[0]


def test_what_no_row_knows() -> None:
    ours = decided(None, seen())
    assert (ours.action, ours.orphaned) == ("end", True)
    others = decided(None, seen(deployment="con_theirs"))
    assert others.action == "leave"
    assert "con_theirs" in others.reason
    assert decided(None, seen(deployment="")).action == "leave"


def test_what_a_set_up_tries_is_its_own_until_the_time_it_gave_itself() -> None:
    """It has our tags, no row and no run; a look at the wrong moment ended it before its container had begun."""
    trial = seen(run="", expires_unix_s=NOW + 60)
    assert decided(None, trial).action == "wait"
    assert decided(None, replace(trial, expires_unix_s=NOW)).action == "end"
    assert decided(None, replace(trial, expires_unix_s=None)).action == "end"
    assert decided(None, replace(trial, run="job_1/e1")).action == "end", "a run writes its rows first"


def test_one_decision_for_each_name_in_their_order() -> None:
    beliefs = [replace(GROUP, name="b"), replace(GROUP, name="d", held=False)]
    decisions = compare(beliefs, [seen("c"), seen("d"), seen("a")], now_unix_s=NOW, ours=OURS)
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
