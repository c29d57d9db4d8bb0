"""The states of a job: which may follow which, written out once more, and what the sets of them say."""

from itertools import product

import pytest

from webapp.job_states import (
    ACTIVE,
    FILTERS,
    SUCCESSORS,
    TERMINAL,
    IllegalTransition,
    Observed,
    require_allowed,
)

ALLOWED: dict[str, set[str]] = {
    "queued": {"starting", "paused", "failed", "cancelled"},
    "starting": {"running", "recovering", "draining", "paused", "succeeded", "failed", "cancelled"},
    "running": {"recovering", "draining", "paused", "succeeded", "failed", "cancelled"},
    "recovering": {"starting", "paused", "failed", "cancelled"},
    "draining": {"recovering", "paused", "succeeded", "failed", "cancelled"},
    "paused": {"queued", "cancelled"},
    "succeeded": set(),
    "failed": set(),
    "cancelled": set(),
}


def test_a_state_follows_another_as_the_table_says() -> None:
    assert set(ALLOWED) == set(SUCCESSORS) == set(Observed)
    for before, after in product(ALLOWED, ALLOWED):
        if after in ALLOWED[before]:
            require_allowed(before, after)
        else:
            with pytest.raises(IllegalTransition, match=f"{before} .*{after}"):
                require_allowed(before, after)


def test_terminal_states_have_no_successor_and_a_process_runs_the_active_ones() -> None:
    assert {state for state, following in SUCCESSORS.items() if not following} == TERMINAL
    assert set(Observed) - TERMINAL - {Observed.PAUSED} == ACTIVE
    assert not ACTIVE & TERMINAL


def test_each_state_is_found_by_one_filter_of_the_list() -> None:
    found = [state for _, states in FILTERS.values() for state in states]
    assert sorted(found) == sorted(Observed)
    assert set(FILTERS["active"][1]) == ACTIVE
    assert {key: states for key, (_, states) in FILTERS.items() if key != "active"} == {
        "paused": ("paused",),
        "succeeded": ("succeeded",),
        "failed": ("failed",),
        "stopped": ("cancelled",),
    }
