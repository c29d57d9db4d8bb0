"""When the staleness-aware loop applies gradients: each release has one reason that is true."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import tiny
from tests.training.stellaris_runs import QUICK, Recording, at_random, first_of, loop, reports
from training.engine.checkpoints import FileCheckpointStore
from training.engine.codec import decode


def check_releases(platform: Recording, learners: int, decay: float) -> Counter[str]:
    """Return how many releases had each reason, once each has exactly one that is true, going by what was sent and
    what landed. The bound is the largest staleness of the first round, times `decay` a round.
    """
    in_flight: set[str] = set()
    queue: dict[bytes, int] = {}
    applying = False
    applied: Counter[bytes] = Counter()
    reasons: Counter[str] = Counter()
    largest, staleness_of_round, round_no = float("inf"), [], 1
    for what, call, outcome in platform.happened:
        if call.kind == "gradient" and what == "sent":
            in_flight.add(call.id)
            assert len(in_flight) <= learners
        elif call.kind == "gradient":
            in_flight.remove(call.id)
            if outcome is not None and outcome.status == "done":
                queue[outcome.payload] = call.weights.version if call.weights else -1
        elif call.kind == "apply" and what == "sent":
            if call.attempt > 1:
                continue
            assert not applying, "two versions are made at once"
            applying = True
            version = decode(call.inputs[0])["version"]
            if call.round_no > round_no:
                if round_no == 1:
                    largest = max(1.0, *staleness_of_round)
                round_no = call.round_no
            bound = max(1.0, largest * decay ** (round_no - 1)) if round_no > 1 else float("inf")
            taken = call.inputs[1:]
            assert set(taken) == set(queue), "a release takes the whole queue"
            staleness = [version - queue.pop(payload) for payload in taken]
            staleness_of_round += staleness
            applied.update(taken)
            numbers = [decode(payload)["version"] for payload in taken]
            assert len(numbers) == len(call.request.weights)
            assert call.request.weights == tuple(max(1, late) ** -0.5 for late in staleness)
            if sum(staleness) / len(staleness) <= bound:
                reasons["bound"] += 1
            elif len(taken) >= learners:
                reasons["full"] += 1
            else:
                assert not in_flight, "held gradients were released though more were on their way"
                reasons["idle"] += 1
        elif call.kind == "apply":
            applying = False
    assert max(applied.values()) == 1
    assert not queue, "gradients were never applied"
    return reasons


@pytest.mark.parametrize(
    ("seed", "learners", "decay", "waits"),
    [
        (0, 1, 0.9, True),
        (3, 5, 0.3, True),
        (7, 3, 0.1, False),
        pytest.param(1, 2, 0.5, True, marks=pytest.mark.slow),
        pytest.param(2, 3, 0.1, True, marks=pytest.mark.slow),
        pytest.param(4, 6, 0.5, True, marks=pytest.mark.slow),
        pytest.param(5, 6, 1.0, True, marks=pytest.mark.slow),
        pytest.param(6, 1, 0.9, False, marks=pytest.mark.slow),
        pytest.param(8, 6, 0.5, False, marks=pytest.mark.slow),
    ],
)
def test_each_release_has_one_reason_and_no_gradient_is_applied_twice_or_lost(
    seed: int, learners: int, decay: float, waits: bool
) -> None:
    rng = random.Random(seed)
    fault = lambda call: "it broke" if call.kind == "gradient" and rng.random() < 0.1 else None  # noqa: E731
    platform = Recording(order=at_random(seed), fault=fault)
    spec = tiny(
        algorithm=QUICK | {"epochs": 4},
        loop=loop(learners=learners, staleness_decay=decay, learners_wait=waits),
        scaling={"actors": 6},
        rollout={"attempts": 10},
        stop={"rounds": 5},
    )
    found = reports(events_of(spec, platform))
    reasons = check_releases(platform, learners, decay)
    reported: Counter[str] = Counter()
    for report in found:
        reported.update(report.gradients.released)
        assert report.gradients.queue_most <= learners
        assert report.gradients.gradients == sum(report.gradients.released.values())
    assert set(reported) == set(reasons)
    assert sum(report.gradients.steps for report in found) == sum(reasons.values()) == found[-1].version
    assert [report.progress for report in found] == [6 * 16] * 5


def test_tight_bounds_hold_gradients_for_each_of_the_reasons() -> None:
    found: Counter[str] = Counter()
    for seed in range(3):
        platform = Recording(order=at_random(seed))
        spec = tiny(
            algorithm=QUICK | {"epochs": 8},
            loop=loop(learners=6, staleness_decay=0.1),
            scaling={"actors": 8},
            stop={"rounds": 3},
        )
        events_of(spec, platform)
        found += check_releases(platform, 6, 0.1)
    assert set(found) == {"bound", "full", "idle"} or set(found) == {"bound", "full"}
    assert found["full"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("learners", [2, 5])
def test_purely_asynchronous_gradients_are_one_version_behind_for_each_other_learner(learners: int) -> None:
    """All learners are always busy and versions take no time, so mean δ = K − 1."""
    platform = Recording()
    choose = at_random(7)

    def order(waiting: int) -> int:
        applies = [i for i, call in enumerate(platform._waiting) if call.kind == "apply"]
        return applies[0] if applies else choose(waiting)

    platform._order = order
    spec = tiny(
        algorithm=QUICK | {"epochs": 70},
        loop=loop(learners=learners, hold=False),
        scaling={"actors": 8},
        rollout={"steps_per_call": 4},
        stop={"rounds": 1},
    )
    (report,) = reports(events_of(spec, platform))
    assert report.gradients.gradients == report.gradients.steps == 560
    assert report.gradients.released == {"bound": 560}
    assert report.gradients.staleness_mean == pytest.approx(learners - 1, rel=0.05)
    assert report.gradients.bound is None


def test_only_gradients_that_the_bound_held_back_count_as_held() -> None:
    """One that only waits for the version that is being made was not."""

    def round_of(platform: InlinePlatform, **changes: Any) -> Any:
        spec = tiny(
            algorithm=QUICK | {"epochs": 8},
            loop=loop(learners=6, learners_wait=False, **changes),
            scaling={"actors": 8},
            stop={"rounds": 1},
        )
        (report,) = reports(events_of(spec, platform))
        return report.gradients

    slow_versions = InlinePlatform()
    slow_versions._order = first_of({"gradient", "rollout"}, slow_versions)
    assert round_of(slow_versions, hold=False).held_share == 0.0
    bounded = round_of(InlinePlatform(), largest_staleness=0.0)
    assert bounded.released == {"bound": 31, "full": 5 * 6, "idle": 3}
    assert bounded.held_share == (5 * 5 + 2) / 64, "the last of each queue lets the others go"


def test_a_run_resumed_with_other_learners_measures_staleness_again(tmp_path: Path) -> None:
    spec = tiny(algorithm=QUICK, loop=loop(learners=3), stop={"rounds": 3}, checkpoints={"every_rounds": 1})
    store = FileCheckpointStore(tmp_path)
    found = reports(events_of(spec, InlinePlatform(), checkpoints=store))
    assert [report.gradients.bound is None for report in found] == [True, False, False]
    saved = store.load(store.names()[-1])
    for learners, measured_again in ((3, False), (2, True)):
        more = spec.model_copy(
            update={
                "loop": spec.loop.model_copy(update={"learners": learners}),
                "stop": spec.stop.model_copy(update={"rounds": 4}),
            }
        )
        (report,) = reports(events_of(more, InlinePlatform(), resume=saved))
        assert (report.gradients.bound is None) == measured_again


@pytest.mark.parametrize("seed", range(3))
def test_staleness_may_be_counted_by_how_far_the_policy_moved(seed: int) -> None:
    """Each version's gradients bring states, and each aggregation tells how far all policies in flight are from it."""
    platform = Recording(order=at_random(seed))
    spec = tiny(
        algorithm=QUICK,
        loop=loop(distance="kl", staleness_decay=0.5, learners=3),
        stop={"rounds": 3},
        seed=seed,
    )
    events = events_of(spec, platform)
    assert events[-1].reason_code == "rounds"
    behind = []
    for _, call, outcome in platform.happened:
        if call.kind == "apply" and outcome is not None:
            document = decode(outcome.payload)
            assert len(document["distances"]) == call.request.policies >= 1
            assert all(far >= 0 for _, far in document["distances"])
            behind += [far for version, far in document["distances"] if version < document["version"] - 1]
    assert behind, "a gradient must have been in flight over two versions"
    assert max(behind) > 0
    staleness = [report.gradients.staleness_most for report in reports(events)]
    assert any(one != int(one) for one in staleness), "these are no counts of versions"
