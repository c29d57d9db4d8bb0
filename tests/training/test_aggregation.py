"""When gradients are released, what each weighs, and what step they become."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.batches import SPACES, state_away_from_zero
from training.loops.aggregation import (
    AGE_LIMIT,
    GradientQueue,
    Weighting,
    bound_after,
    calibrated,
    fitting_learners,
    policy_distance,
    steps_of,
    usual_step,
)
from training.rl.algorithms.autograd import Autograd
from training.rl.algorithms.closed_form import ClosedForm
from training.rl.algorithms.ppo import PPO
from training.rl.networks import MLP


def test_a_gradient_four_versions_behind_weighs_half():
    assert Weighting("sqrt").weight(4) == 0.5
    assert [Weighting("sqrt").weight(late) for late in (0, 0.5, 1, 16)] == [1.0, 1.0, 1.0, 0.25]
    assert [Weighting("inverse").weight(late) for late in (0, 1, 4)] == [1.0, 1.0, 0.25]
    assert [Weighting("none").weight(late) for late in (0, 1, 4)] == [1.0, 1.0, 1.0]
    threshold = Weighting("threshold", threshold=4)
    assert [threshold.weight(late) for late in (1, 4, 16)] == [1.0, 1.0, 0.25]


def test_the_released_weights_are_1_wherever_they_fall_below_the_decay():
    released = Weighting("released", decay=0.9)
    assert {released.weight(late) for late in range(AGE_LIMIT)} == {1.0}
    assert Weighting("released", decay=0.5).weight(8) == pytest.approx(0.5)
    assert Weighting("released", decay=0.5).weight(9) == 1.0


@pytest.mark.parametrize("descent", [ClosedForm, Autograd])
def test_half_the_weight_is_half_a_step_of_adam(descent):
    network, spaces, algorithm = MLP(hidden=(8,)), SPACES["continuous"], PPO(gradient_clip="none")
    state = state_away_from_zero(algorithm, network, spaces, 1)
    # From zero, so that a step is the parameter itself and no rounding hides in a difference.
    state.parameters.update({name: np.zeros_like(array) for name, array in state.parameters.items()})
    rng = np.random.default_rng(2)
    gradient = {
        name: rng.standard_normal(array.shape).astype(np.float32) for name, array in state.parameters.items()
    }
    moved = {}
    for late in (1, 4):
        (step,) = steps_of([gradient], [Weighting("sqrt").weight(late)], "mean")
        taken = descent(state, network, algorithm, 1e-3, None)
        taken.keep(step.direction)
        taken.move(step.length)
        moved[late] = taken.result().parameters
    for name in gradient:
        assert np.abs(moved[1][name]).max() > 0
        np.testing.assert_allclose(
            moved[4][name], 0.5 * moved[1][name], rtol=1e-6 if descent is Autograd else 0
        )


def random_gradients(count, seed=0, shapes=((3, 4), (4,))):
    rng = np.random.default_rng(seed)
    return [
        {str(n): rng.standard_normal(shape).astype(np.float32) for n, shape in enumerate(shapes)}
        for _ in range(count)
    ]


def test_under_sgd_the_step_is_the_papers():
    """θ − α/H Σ g_i/√δ_i, with staleness 1, 4 and 16."""
    gradients = random_gradients(3)
    weights = [Weighting("sqrt").weight(late) for late in (1, 4, 16)]
    (step,) = steps_of(gradients, weights, "mean")
    (printed,) = steps_of(gradients, weights, "weigh_gradients")
    assert printed.length == 1.0
    for name in gradients[0]:
        first, second, third = (one[name].astype(np.float64) for one in gradients)
        paper = (first + second / 2 + third / 4) / 3
        np.testing.assert_allclose(step.direction[name] * step.length, paper, rtol=1e-6)
        np.testing.assert_allclose(printed.direction[name], paper, rtol=1e-6)
    assert [(one.direction, one.length) for one in steps_of(gradients, weights, "sequential")] == list(
        zip(gradients, weights, strict=True)
    )


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 64),
    seed=st.integers(0, 1000),
    late=st.lists(st.integers(0, AGE_LIMIT), min_size=64, max_size=64),
)
def test_the_mean_of_equal_gradients_is_that_gradient(count, seed, late):
    (gradient,) = random_gradients(1, seed)
    weights = [Weighting("sqrt").weight(one) for one in late[:count]]
    (step,) = steps_of([gradient] * count, weights, "mean")
    for name, array in gradient.items():
        assert step.direction[name].dtype == array.dtype
        assert (step.direction[name] == array).all()


@settings(max_examples=60, deadline=None)
@given(order=st.permutations(range(6)), newest=st.integers(3, 9))
def test_the_order_of_arrival_changes_nothing(order, newest):
    queue = GradientQueue(6, Weighting("sqrt"))
    numbers = [queue.launch(version % 4) for version in range(6)]
    for place in order:
        assert queue.land(numbers[place], place % 4, str(place).encode(), newest) is None
        queue.enqueue()
    released = queue.release(newest, bound=0.0)
    assert [one.payload for one in released.gradients] == [str(place).encode() for place in range(6)]
    assert released.reason == "full"
    gradients = random_gradients(6)
    (step,) = steps_of(gradients, released.weights, "mean")
    expected = sum(w * g["0"].astype(np.float64) for w, g in zip(released.weights, gradients, strict=True))
    assert (step.direction["0"] == (expected / sum(released.weights)).astype(np.float32)).all()


def test_the_bound_shrinks_with_the_rounds_and_never_below_1():
    assert [bound_after(rounds, 4.0, 0.5) for rounds in range(4)] == [4.0, 2.0, 1.0, 1.0]
    assert bound_after(1000, 4.0, 1.0) == 4.0
    assert calibrated([0, 3, 1], "largest") == 3.0
    assert calibrated([0, 3, 1], "mean") == 2.0
    assert calibrated([0, 0], "largest") == calibrated([0, 0], "mean") == calibrated([], "largest") == 1.0


SCHEDULES = st.builds(
    lambda learners, ordered, bounds, seed: (learners, ordered, bounds, seed),
    st.integers(1, 32),
    st.booleans(),
    st.lists(st.one_of(st.floats(0, 40), st.just(math.inf)), min_size=1, max_size=8),
    st.integers(0, 10_000),
)


@settings(max_examples=150, deadline=None)
@given(SCHEDULES)
def test_each_release_has_one_true_reason_and_no_gradient_is_applied_twice_or_lost_unseen(schedule):
    """Schedules with failures, stragglers, duplicates, wrong versions and a stop in the middle."""
    learners, ordered, bounds, seed = schedule
    rng = random.Random(seed)
    queue = GradientQueue(learners, Weighting("sqrt"), in_order_of_launch=ordered)
    newest, ends, in_flight = 0, {}, {}

    def take(bound):
        nonlocal newest
        while (enqueued := queue.enqueue()) is not None:
            assert len(queue.queued) <= learners
            assert enqueued.number not in ends
            in_flight_before = queue.in_flight
            release = queue.release(newest, bound)
            if release is None:
                mean = np.mean([newest - one.version for one in queue.queued])
                assert mean > bound
                assert len(queue.queued) < learners
                assert in_flight_before
                continue
            assert not queue.queued
            mean = sum(release.staleness) / len(release.staleness)
            true = {
                "bound": mean <= bound,
                "full": len(release.gradients) >= learners,
                "idle": not in_flight_before,
            }
            assert true[release.reason]
            assert release.reason == next(reason for reason, is_true in true.items() if is_true)
            numbers = [one.number for one in release.gradients]
            assert numbers == sorted(numbers)
            for one, late, weight in zip(release.gradients, release.staleness, release.weights, strict=True):
                assert late == newest - one.version >= 0
                assert weight == Weighting("sqrt").weight(late)
                assert one.number not in ends
                ends[one.number] = "released"
            newest += 1

    for _ in range(rng.randrange(1, 120)):
        bound = bounds[newest % len(bounds)]
        if len(in_flight) + len(queue.queued) < learners and rng.random() < 0.6:
            in_flight[queue.launch(newest)] = newest
        elif in_flight:
            # Mostly the oldest, sometimes one that was faster.
            number = rng.choice(list(in_flight)) if rng.random() < 0.4 else next(iter(in_flight))
            version = in_flight.pop(number)
            chance = rng.random()
            if chance < 0.1:
                queue.lose(number)
                ends[number] = "lost"
            elif chance < 0.2:
                assert queue.land(number, version + 1, b"", newest) == "unknown_version"
                ends[number] = "unknown_version"
            else:
                late = newest - version > AGE_LIMIT
                assert queue.land(number, version, b"", newest) == ("too_old" if late else None)
                assert queue.land(number, version, b"", newest) == "duplicate"
                if late:
                    ends[number] = "too_old"
        take(bound)
        if rng.random() < 0.05:
            # A stop: what is in flight is lost, what is queued is kept.
            for number in list(in_flight):
                queue.lose(number)
                ends[number] = "lost"
            in_flight.clear()
            take(bound)
            again = GradientQueue(
                learners,
                Weighting("sqrt"),
                in_order_of_launch=ordered,
                launched=queue.launched,
                queued=queue.queued,
            )
            assert (again.queued, again.launched) == (queue.queued, queue.launched)
            queue = again
            if (release := queue.release(newest, bound)) is not None:
                ends |= {one.number: "released" for one in release.gradients}
                newest += 1
    # Quiescence: nothing new is launched, and all in flight lands or is lost.
    for number, version in in_flight.items():
        if rng.random() < 0.3:
            queue.lose(number)
            ends[number] = "lost"
        elif (reason := queue.land(number, version, b"", newest)) is not None:
            ends[number] = reason
        take(0.0)
    take(0.0)
    if (release := queue.release(newest, 0.0)) is not None:
        ends |= {one.number: "released" for one in release.gradients}
    assert (queue.in_flight, queue.queued) == (0, ())
    assert sorted(ends) == list(range(1, queue.launched + 1))


def test_a_gradient_a_hundred_versions_late_is_dropped():
    queue = GradientQueue(2, Weighting("sqrt"))
    kept, dropped = queue.launch(1), queue.launch(0)
    assert queue.land(kept, 1, b"", 1 + AGE_LIMIT) is None
    assert queue.land(dropped, 0, b"", 1 + AGE_LIMIT) == "too_old"
    assert queue.land(dropped, 0, b"", 1 + AGE_LIMIT) == "duplicate"
    assert queue.land(99, 0, b"", 0) == "duplicate"


def test_in_order_of_launch_an_early_gradient_waits_for_those_before_it():
    queue = GradientQueue(3, Weighting("sqrt"), in_order_of_launch=True)
    first, second, third = (queue.launch(0) for _ in range(3))
    queue.land(third, 0, b"third", 0)
    assert queue.enqueue() is None
    queue.land(first, 0, b"first", 0)
    assert queue.enqueue().payload == b"first"
    assert queue.enqueue() is None
    queue.lose(second)
    assert queue.enqueue().payload == b"third"
    assert queue.in_flight == 0


@pytest.mark.parametrize("learners", [1, 2, 5, 8, 16])
def test_purely_asynchronous_learners_are_one_less_behind_than_there_are(learners):
    """K always busy, aggregation taking no time: δ is K − 1 on average, whichever is faster."""
    rng = random.Random(learners)
    queue = GradientQueue(learners, Weighting("sqrt"))
    newest, staleness = 0, []
    in_flight = {queue.launch(0): 0 for _ in range(learners)}
    while newest < 500:
        number = rng.choice(list(in_flight))
        queue.land(number, in_flight.pop(number), b"", newest)
        queue.enqueue()
        release = queue.release(newest, math.inf)
        assert release.reason == "bound"
        staleness += release.staleness
        newest += 1
        in_flight[queue.launch(newest)] = newest
    assert np.mean(staleness) == pytest.approx(learners - 1, rel=0.05)


def test_distances_take_the_place_of_staleness():
    queue = GradientQueue(4, Weighting("sqrt"))
    for version in (0, 2, 3):
        queue.land(queue.launch(version), version, b"", 3)
        queue.enqueue()
    queue.launch(3)
    assert queue.release(3, bound=1.0) is None
    released = queue.release(3, bound=2.0, distances={0: 4.0, 2: 0.25})
    assert (released.reason, released.staleness) == ("bound", (4.0, 0.25, 0.0))
    assert released.weights == (0.5, 1.0, 1.0)


def test_a_usual_step_is_one_away_and_divergences_grow_with_the_square_of_the_way():
    assert usual_step(0.0, 0.02) == 0.02
    assert usual_step(0.02, 0.02) == pytest.approx(0.02)
    assert usual_step(0.02, 0.12) == pytest.approx(0.03)
    assert [policy_distance(far, 0.02) for far in (0.0, 0.02, 0.08, 0.32)] == pytest.approx([0, 1, 2, 4])
    assert policy_distance(-1e-9, 0.02) == policy_distance(1.0, 0.0) == 0.0


def test_learners_that_keep_up_are_gradient_seconds_over_sampling_seconds_rounded_up():
    assert [fitting_learners(seconds, 2.0, 4) for seconds in (0.0, 1.0, 2.0, 2.1, 7.9, 99.0)] == [
        1,
        1,
        1,
        2,
        4,
        4,
    ]
    assert fitting_learners(5.0, 0.0, 4) == 4
