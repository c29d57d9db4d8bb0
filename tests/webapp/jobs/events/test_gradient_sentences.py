"""Sentences about a round of learners that compute gradients."""

from __future__ import annotations

from typing import Any

from training.loops.staleness_aware import StalenessAware
from webapp.formatting import format_percent
from webapp.jobs.charts.figures import LINES
from webapp.jobs.events.event_text import describe_event, gradients_sentence
from webapp.jobs.events.sentences import learners_sentence, useful_learners

FOUND: dict[str, Any] = {
    "learners": 4,
    "gradients": 40,
    "steps": 26,
    "staleness_mean": 1.04,
    "bound": 1.6,
    "starved_share": 0.62,
    "dropped": {},
    "wasted_picodollars": 0,
    "queue_mean": 0.5,
}


def test_a_round_says_what_its_gradients_became() -> None:
    text = "40 gradients in 26 steps, 1.0 versions behind on average, bound 1.6."
    assert gradients_sentence(FOUND) == text
    wasted = FOUND | {"dropped": {"too_old": 2}, "wasted_picodollars": 200_000_000, "bound": None}
    assert gradients_sentence(wasted) == (
        "40 gradients in 26 steps, 1.0 versions behind on average. 2 dropped (over 100 versions old), $0.000200 wasted."
    )
    refused = FOUND | {"dropped": {"refused_gradient": 1, "refused_run": 2}}
    assert "1 dropped (not as requested), 2 dropped (of another run)" in gradients_sentence(refused)
    assert gradients_sentence(None) == ""


def test_a_checkpoint_says_what_it_had_no_room_for() -> None:
    payload: dict[str, Any] = {"round_no": 7, "byte_count": 3 * 2**20, "best": False, "left_out": 0}
    plain = describe_event("checkpoint", payload).text
    assert plain.startswith("Checkpoint of round 7 saved")
    assert describe_event("checkpoint", payload | {"left_out": 12}).text == (
        f"{plain} More data waits than a checkpoint holds: resumed from it, the job samples 12 trajectories again."
    )


ROUND: dict[str, Any] = {
    "actors": 16,
    "total_s": 2.0,
    "gradients": FOUND | {"learners_busy": 1.5, "actors_busy": 14.0},
}


def test_a_round_says_how_many_learners_its_data_was_enough_for_and_what_they_cost() -> None:
    """3 s of gradients for 28 s of sampling by 16 actors, which is 1.75 s."""
    useful = useful_learners(ROUND, StalenessAware(actors_wait=False))
    assert useful == 2
    waited = f"Learners waited for data {format_percent(0.62)} of the time:"
    assert (
        learners_sentence(ROUND, useful, "Each costs $1.") == f"{waited} 2 of 4 would suffice. Each costs $1."
    )
    assert learners_sentence(ROUND, 4, "") == f"{waited} more than 4 would bring nothing."
    assert learners_sentence(ROUND, 7, "") == f"{waited} 7 in place of 4 would shorten its rounds."


def test_a_round_that_decides_its_learners_says_why_there_are_so_many() -> None:
    why = "3 s of gradients a round for 1.75 s of sampling, at most 8"
    decided = ROUND | {"gradients": ROUND["gradients"] | {"learners": 2, "learners_why": why}}
    assert learners_sentence(decided, 2, "").startswith(
        f"2 learners allowed: {why}. Learners waited for data"
    )


def test_where_actors_wait_a_round_has_work_for_as_many_learners_as_slices() -> None:
    assert useful_learners(ROUND, StalenessAware(trajectories_per_gradient=4)) == 4
    assert useful_learners(ROUND, StalenessAware(trajectories_per_gradient=3)) == 6


def test_charts_read_the_figures_of_gradients_and_nothing_of_other_rounds() -> None:
    assert LINES["gradient_staleness"].read({"gradients": FOUND}) == 1.04
    assert LINES["dropped_gradients"].read({"gradients": FOUND | {"dropped": {"numbers": 3}}}) == 3
    for name in ("gradient_staleness", "dropped_gradients", "ratio_mean", "staleness_bound"):
        assert LINES[name].read({}) is None
