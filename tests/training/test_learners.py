"""Slices, rounds and the number of learners of the staleness-aware loop."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from tests.training.specs import tiny
from tests.training.stellaris_runs import QUICK, Recording, at_random, loop, reports
from training.engine.codec import decode
from training.engine.ports import Control
from training.engine.replay import Contribution, ReplaySlice, Slices
from training.engine.unfinished import Unfinished, WaitingGradient
from training.loops.aggregation import fitting_learners
from training.rl.learner import PublishedPolicy
from training.scaling.plan import Bounds


def test_data_for_less_than_a_gradient_waits_for_the_next_round_and_is_not_lost_at_the_end() -> None:
    """5 actors and slices of 2: one trajectory is left over after rounds 1 and 3, and in the last round it is learned
    from as it is.
    """
    platform = Recording()
    spec = tiny(
        algorithm=QUICK,
        loop=loop(trajectories_per_gradient=2, learners=2),
        scaling={"actors": 5},
        stop={"rounds": 3},
    )
    found = reports(events_of(spec, platform))
    assert [report.progress for report in found] == [4 * 16, 6 * 16, 5 * 16]
    sizes = [
        len(call.inputs) - call.request.policies
        for call in platform.submitted
        if call.kind == "gradient" and call.request.pass_no == 1
    ]
    assert sizes == [2, 2, 2, 2, 2, 2, 2, 1]


@pytest.mark.parametrize("seed", range(3))
def test_actors_that_go_on_sample_no_more_than_the_run_learns_from(seed: int) -> None:
    platform = Recording(order=at_random(seed))
    spec = tiny(
        algorithm={"kind": "impala", "minibatch_size": 16},
        loop=loop(actors_wait=False, trajectories_per_gradient=2, learners=3),
        scaling={"actors": 4},
        stop={"rounds": None, "env_steps": 16 * 30 - 5},
    )
    events = events_of(spec, platform)
    assert events[-1].reason_code == "steps"
    assert events[-1].progress == 16 * 30
    assert sum(report.progress for report in reports(events)) == 16 * 30
    assert sum(call.kind == "rollout" for call in platform.submitted) == 30
    check_ages = [report.staleness_mean for report in reports(events)]
    assert max(check_ages) > 0


@pytest.mark.parametrize("changes", [{"actors_wait": False}, {}, {"order": "launch"}])
def test_a_slices_gradient_brings_the_policy_of_each_version_that_sampled_it(changes: dict[str, Any]) -> None:
    """Five actors and slices of two: also where actors wait one is left over, and sampled by an older version."""
    platform = Recording(order=at_random(4))
    spec = tiny(
        algorithm=QUICK | {"kl_coefficient": 0.2},
        loop=loop(trajectories_per_gradient=2, learners=2, **changes),
        scaling={"actors": 5},
        stop={"rounds": 4},
    )
    events_of(spec, platform)
    several = 0
    for call in platform.submitted:
        if call.kind != "gradient":
            continue
        data = len(call.inputs) - call.request.policies - call.request.anchors
        sampled = {decode(one)["version"] for one in call.inputs[:data]}
        anchors = [PublishedPolicy.decode(one).version for one in call.inputs[data + call.request.policies :]]
        assert anchors == sorted(sampled - {call.weights.version})
        several += len(sampled) > 1
    assert several


def test_a_round_may_be_any_number_of_samples() -> None:
    for actors_wait in (True, False):
        spec = tiny(
            algorithm=QUICK,
            loop=loop(actors_wait=actors_wait, samples_per_round=64, learners=2),
            scaling={"actors": 6},
            stop={"rounds": 3},
        )
        found = reports(events_of(spec, InlinePlatform(order=at_random(1))))
        assert len(found) == 3
        assert all(64 <= report.progress <= 96 for report in found)


def test_only_learners_with_data_are_called() -> None:
    """Eight learners and three slices: never more than three calls, and none while actors sample."""
    platform = Recording(order=at_random(3))
    events = events_of(tiny(algorithm=QUICK, loop=loop(learners=3), stop={"rounds": 2}), platform)
    sampling = learning = 0
    for what, call, _ in platform.happened:
        change = 1 if what == "sent" else -1
        sampling += change * (call.kind == "rollout")
        learning += change * (call.kind == "gradient")
        assert learning <= 3
    assert sampling == learning == 0
    assert all(0 < report.gradients.starved_share < 1 for report in reports(events))


def test_slices_go_out_failed_ones_first_then_new_ones_then_those_with_passes_left() -> None:
    data = (Contribution(b"x", 0),)
    slices = Slices(
        [
            ReplaySlice(1, data, passes=2),
            ReplaySlice(2, data),
            ReplaySlice(3, data, passes=1),
            ReplaySlice(4, data),
        ]
    )
    slices.give_back(ReplaySlice(5, data, passes=1))
    slices.give_back(ReplaySlice(6, data, failures=1))
    order = []
    while (one := slices.take()) is not None:
        order.append(one.number)
    assert order == [6, 5, 2, 4, 1, 3]
    assert len(slices) == 0


def test_what_is_unfinished_comes_back_from_bytes_as_it_was() -> None:
    data = (Contribution(b"one", 3), Contribution(b"", 4))
    whole = Unfinished(
        slices=(ReplaySlice(7, data, 2, b"kept", 1), ReplaySlice(8, data[:1])),
        gradients=(WaitingGradient(b"gradient", 4, 19, "r2-gradient19-n5"),),
        policies={3: b"policy"},
        slices_made=8,
        launched=20,
        largest_staleness=3.0,
        calibrated_round=1,
        measured_with=(4, 16),
    )
    assert Unfinished.decode(whole.encode()) == whole
    assert Unfinished().encode() == b""
    assert Unfinished.decode(b"") == Unfinished()


def test_what_a_checkpoint_holds_of_slices_and_their_policies_stays_within_its_limit() -> None:
    """A policy counts once, with the first slice that needs it, and is kept for no other. By bytes as well: 64 slices
    of 100 KiB, each sampled by a policy of 1 MiB of its own, fit into 16 MiB as 14 slices.
    """
    data = (Contribution(b"one", 3), Contribution(b"four", 4))
    whole = Unfinished(
        slices=(ReplaySlice(7, data[:1], 2, b"kept"), ReplaySlice(8, data)),
        policies={3: b"policy", 4: b"another"},
    )
    assert whole.within(27) == whole
    first = whole.within(26)
    assert first.slices == whole.slices[:1]
    assert first.policies == {3: b"policy"}
    assert whole.within(12) == Unfinished()

    slices = tuple(ReplaySlice(n, (Contribution(bytes(100 * 2**10), n),)) for n in range(64))
    large = Unfinished(slices=slices, policies={n: bytes(2**20) for n in range(64)})
    held = large.within(16 * 2**20)
    assert len(held.slices) == len(held.policies) == 14
    assert len(held.encode()) < 16 * 2**20 + 2**16


def test_actors_that_go_on_may_feed_more_learners_than_there_are_slices_at_once() -> None:
    assert tiny(loop=loop(learners=9, actors_wait=False)).loop.learners == 9


@pytest.mark.parametrize(
    ("changes", "most"),
    [({"loop": loop(learners=2)}, 1024), ({"scaling": {"actors": 4}}, 1024), ({}, 2)],
    ids=["learners", "scaling", "bounds"],
)
def test_staleness_is_measured_again_if_a_run_goes_on_with_other_numbers(
    changes: dict[str, Any], most: int
) -> None:
    """`most` is the bound on actors that a user set while the run was paused."""
    begun: dict[str, Any] = {"algorithm": QUICK, "loop": loop(), "scaling": {"actors": 3}}
    kept = Forgetful()
    events_of(tiny(**begun, stop={"rounds": 2}), InlinePlatform(), checkpoints=kept)

    def bounds(**others: Any) -> list[float | None]:
        """The bound of each round after resuming; None where staleness is measured."""
        spec = tiny(**begun | others, stop={"rounds": 4})
        control = Control(bounds=Bounds(actors_max=most if others == changes else 1024))
        events = events_of(spec, InlinePlatform(), resume=kept.load("2"), control=lambda: control)
        return [report.gradients.bound for report in reports(events)]

    alike = {"loop": loop(), "scaling": {"actors": 3}}
    assert None not in bounds(**alike)
    assert [bound is None for bound in bounds(**changes)] == [True, False]


@pytest.mark.parametrize("actors_wait", [True, False])
def test_the_number_of_learners_may_follow_the_round_before_with_its_reason(actors_wait: bool) -> None:
    """Here a call takes as long as any other, so gradients of three passes take about as long as nine fragments."""
    most = 3
    spec = tiny(
        algorithm=QUICK,
        loop=loop(learners=most, fit_learners=True, actors_wait=actors_wait),
        stop={"rounds": 5},
        evaluation={"every_rounds": 100},
    )
    found = [report.gradients for report in reports(events_of(spec, InlinePlatform()))]
    assert (found[0].learners, found[0].learners_why) == (most, "")
    for before, after, report in zip(
        found, found[1:], reports(events_of(spec, InlinePlatform())), strict=False
    ):
        gradient_s = before.learners_busy * report.total_s
        collecting_s = before.actors_busy * report.total_s / report.actors
        assert after.learners == fitting_learners(gradient_s, collecting_s, most)
        assert after.learners_why.startswith(f"{gradient_s:.3g} s of gradients")
        assert after.learners_busy <= most
    assert spec.loop.depends_on_timing
