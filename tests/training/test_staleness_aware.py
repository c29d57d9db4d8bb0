"""The staleness-aware loop: equal to the synchronous one where it must be, repeatable where it says so, and every
gradient, sample and release accounted for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of, final_learner
from tests.training.specs import tiny
from training.aggregation import fitting_learners
from training.checkpoints import FileCheckpointStore, Progress
from training.codec import decode, encode
from training.learner import LearnerState
from training.messages import Call, Outcome
from training.ports import Control
from training.replay import Slice, Slices, Trajectory
from training.unfinished import Unfinished, WaitingGradient

ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo, one pass": {"kind": "ppo", "epochs": 1, "normalise_observations": True, "normalise_rewards": True},
    "ppo, ten passes": {
        "kind": "ppo",
        "epochs": 10,
        "normalise_observations": True,
        "normalise_rewards": True,
        "value_clip": 0.2,
    },
    "ppo with a KL penalty": {"kind": "ppo", "epochs": 3, "kl_coefficient": 0.2},
    "a2c": {"kind": "a2c", "normalise_observations": True},
    "impala": {"kind": "impala", "normalise_observations": True},
    "impact": {"kind": "impact", "target_every_updates": 2},
}
QUICK: dict[str, Any] = {
    "kind": "ppo",
    "epochs": 3,
    "learning_rate_decay": False,
    "normalise_observations": True,
    "normalise_rewards": True,
}


def loop(**changes: Any) -> dict[str, Any]:
    return {"kind": "staleness_aware", "learners": 3, "trajectories_per_gradient": 1, **changes}


def reports(events: list[Any]) -> list[Any]:
    return [event.report for event in events if event.kind == "round"]


def at_random(seed: int) -> Callable[[int], int]:
    rng = random.Random(seed)
    return lambda waiting: rng.randrange(waiting)


class Recording(InlinePlatform):
    """Keeps what was submitted and answered, in order."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.happened: list[tuple[str, Call, Outcome | None]] = []
        self._calls: dict[str, Call] = {}

    def submit(self, call: Call) -> None:
        self._calls[call.id] = call
        self.happened.append(("sent", call, None))
        super().submit(call)

    def next(self, timeout_s: float) -> Outcome | None:
        outcome = super().next(timeout_s)
        if outcome is not None:
            self.happened.append(("landed", self._calls[outcome.call_id], outcome))
        return outcome


def first_of(kinds: set[str], platform: InlinePlatform) -> Callable[[int], int]:
    """An order in which calls of these kinds answer before all others."""
    return lambda waiting: next((i for i, call in enumerate(platform._waiting) if call.kind in kinds), 0)


@pytest.mark.parametrize("order", ["arrival", "launch"])
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_one_learner_with_whole_rounds_learns_what_the_synchronous_loop_learns(
    tmp_path: Path, name: str, order: str
) -> None:
    """To the last bit, whatever is left off but the count of versions: a pass is a version here."""
    minibatch = {} if name == "a2c" else {"minibatch_size": 48}
    changes: dict[str, Any] = {"algorithm": ALGORITHMS[name] | minibatch, "stop": {"rounds": 5}}
    one = loop(learners=1, trajectories_per_gradient=3, truncation="off", order=order)
    synchronous, stellaris = (
        LearnerState.decode(final_learner(tiny(**changes, **more), InlinePlatform(), tmp_path / str(i)))
        for i, more in enumerate([{}, {"loop": one}])
    )
    assert stellaris.version >= synchronous.version == 5
    for group in ("parameters", "first_moments", "second_moments", "target_parameters"):
        before, after = getattr(synchronous, group), getattr(stellaris, group)
        assert list(before) == list(after)
        assert all(np.array_equal(before[key], after[key]) for key in before)
    for moments in ("observation_moments", "return_moments"):
        one_side, other = getattr(synchronous, moments), getattr(stellaris, moments)
        assert (one_side is None) == (other is None)
        if one_side is not None:
            assert one_side.count == other.count
            assert np.array_equal(one_side.mean, other.mean)
            assert np.array_equal(one_side.variance, other.variance)
    assert stellaris.kl_coefficient == synchronous.kl_coefficient
    assert stellaris.optimiser_steps == synchronous.optimiser_steps


LAUNCH = {"algorithm": QUICK, "loop": loop(order="launch"), "scaling": {"actors": 5}, "stop": {"rounds": 4}}


def test_in_the_order_of_launch_it_repeats_whichever_answers_first(tmp_path: Path) -> None:
    learners = {
        final_learner(tiny(**LAUNCH), InlinePlatform(order=order, warmths=2), tmp_path / str(i))
        for i, order in enumerate([lambda n: 0, lambda n: n - 1, at_random(1), at_random(2)])
    }
    assert len(learners) == 1


def test_in_the_order_of_launch_failures_change_nothing(tmp_path: Path) -> None:
    """A failed gradient is computed again with the same parameters, as all others wait for it."""
    rng = random.Random(5)
    fault = lambda call: "made to fail" if call.attempt == 1 and rng.random() < 0.2 else None  # noqa: E731
    learners = {
        final_learner(tiny(**LAUNCH), platform, tmp_path / str(i))
        for i, platform in enumerate([InlinePlatform(), InlinePlatform(order=at_random(3), fault=fault)])
    }
    assert len(learners) == 1


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_in_the_order_of_launch_a_resumed_run_is_the_same_run(tmp_path: Path, rounds: int) -> None:
    spec = tiny(**LAUNCH, checkpoints={"every_rounds": 1})
    whole = final_learner(spec, InlinePlatform(), tmp_path / "whole")
    store = FileCheckpointStore(tmp_path / "split")
    short = spec.model_copy(update={"stop": spec.stop.model_copy(update={"rounds": rounds})})
    events_of(short, InlinePlatform(order=at_random(1)), checkpoints=store)
    events_of(spec, InlinePlatform(), checkpoints=store, resume=store.load(store.names()[-1]))
    assert Progress.decode(store.load(store.names()[-1]), spec).learner == whole


def check_releases(platform: Recording, learners: int, decay: float) -> Counter[str]:
    """Return how many releases had each reason, once each has exactly one that is true, told from what was sent and
    what landed. The bound is the largest staleness of the first round, times `decay` a round.
    """
    flying: set[str] = set()
    queue: dict[bytes, int] = {}
    applying = False
    applied: Counter[bytes] = Counter()
    reasons: Counter[str] = Counter()
    largest, staleness_of_round, round_no = float("inf"), [], 1
    for what, call, outcome in platform.happened:
        if call.kind == "gradient" and what == "sent":
            flying.add(call.id)
            assert len(flying) <= learners
        elif call.kind == "gradient":
            flying.remove(call.id)
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
                assert not flying, "held gradients were released though more were on their way"
                reasons["idle"] += 1
        elif call.kind == "apply":
            applying = False
    assert max(applied.values()) == 1
    assert not queue, "gradients were never applied"
    return reasons


@pytest.mark.parametrize(
    ("seed", "learners", "decay"),
    [(0, 1, 0.9), (1, 2, 0.5), (2, 3, 0.1), (3, 5, 0.3), (4, 6, 0.5), (5, 6, 1.0)],
)
def test_each_release_has_one_reason_and_no_gradient_is_applied_twice_or_lost(
    seed: int, learners: int, decay: float
) -> None:
    rng = random.Random(seed)
    fault = lambda call: "it broke" if call.kind == "gradient" and rng.random() < 0.1 else None  # noqa: E731
    platform = Recording(order=at_random(seed), fault=fault)
    spec = tiny(
        algorithm=QUICK | {"epochs": 4},
        loop=loop(learners=learners, staleness_decay=decay),
        scaling={"actors": 6},
        rollout={"attempts": 10},
        stop={"rounds": 5},
    )
    found = reports(events_of(spec, platform))
    reasons = check_releases(platform, learners, decay)
    told: Counter[str] = Counter()
    for report in found:
        told.update(report.gradients.released)
        assert report.gradients.queue_most <= learners
        assert report.gradients.gradients == sum(report.gradients.released.values())
    assert set(told) == set(reasons)
    assert sum(report.gradients.steps for report in found) == sum(reasons.values()) == found[-1].version
    assert [report.env_steps for report in found] == [6 * 16] * 5


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


def test_every_sample_is_learned_from_in_each_pass_once_and_counted_once(tmp_path: Path) -> None:
    """Over failures, pauses at any moment and resumes: by the seeds of slices, which no two share."""
    spec = tiny(
        algorithm=QUICK,
        loop=loop(learners=3),
        scaling={"actors": 5},
        rollout={"attempts": 10},
        stop={"rounds": None, "env_steps": 5 * 16 * 4},
        checkpoints={"every_rounds": 1},
    )
    rng = random.Random(2)
    done: Counter[tuple[int, int]] = Counter()
    resume, events = None, []
    store = FileCheckpointStore(tmp_path)
    for sitting in range(30):
        fault = lambda call: "it broke" if call.kind == "gradient" and rng.random() < 0.1 else None  # noqa: E731
        platform = Recording(order=at_random(sitting), fault=fault)
        asked = rng.randrange(5, 40)
        control = iter(["run"] * asked + ["paused"] * 1000)
        events = events_of(
            spec,
            platform,
            checkpoints=store,
            resume=resume,
            control=lambda control=control: Control(desired=next(control)),
        )
        for call in platform.submitted:
            if call.kind == "apply":
                taken = [one for one in platform.happened if one[2] and one[2].payload in call.inputs[1:]]
                done.update((one[1].seed, one[1].request.pass_no) for one in taken)
        resume = store.load(store.names()[-1])
        if events[-1].reason_code != "paused":
            break
    assert events[-1].reason_code == "steps"
    progress = Progress.decode(resume, spec)
    state = LearnerState.decode(progress.learner)
    assert progress.total_env_steps >= 5 * 16 * 4
    assert set(done.values()) == {1}
    slices = {seed for seed, _ in done}
    assert progress.total_env_steps == 16 * sum((seed, 3) in done for seed in slices)
    assert state.observation_moments is not None
    counted = state.observation_moments.count + (
        seen.count if (seen := state.round_sums.observation_moments) is not None else 0
    )
    assert counted == progress.total_env_steps


def test_a_failed_gradients_slice_is_sent_again_first_with_the_newest_version() -> None:
    failed: list[Call] = []

    def fault(call: Call) -> str | None:
        if call.kind == "gradient" and call.request.pass_no == 2 and not failed:
            failed.append(call)
            return "it broke"
        return None

    platform = Recording(fault=fault)
    platform._order = first_of({"apply"}, platform)
    events_of(tiny(algorithm=QUICK, loop=loop(learners=1), stop={"rounds": 1}), platform)
    gradients = [call for call in platform.submitted if call.kind == "gradient"]
    place = gradients.index(failed[0])
    again = gradients[place + 1]
    assert (again.seed, again.request.pass_no) == (failed[0].seed, 2)
    assert again.attempt == 1
    assert again.id != failed[0].id
    assert len(gradients) == 3 * 3 + 1


@pytest.mark.parametrize("actors_wait", [True, False])
def test_a_run_ends_when_no_learner_returns_anything(actors_wait: bool) -> None:
    fault = lambda call: "no GPU is left" if call.kind == "gradient" else None  # noqa: E731
    platform = InlinePlatform(fault=fault)
    spec = tiny(algorithm=QUICK, loop=loop(actors_wait=actors_wait), stop={"rounds": 9})
    events = events_of(spec, platform)
    assert events[-1].reason_code == "failing"
    assert "no GPU is left" in events[-1].reason
    assert events[-1].rounds == 0
    gradients = sum(call.kind == "gradient" for call in platform.submitted)
    assert gradients == 3 * 3 * 3 or not actors_wait


class Spoiling(InlinePlatform):
    """Puts a number that is not one into chosen gradients."""

    def __init__(self, spoils: Callable[[Call], bool]) -> None:
        super().__init__()
        self._spoils = spoils
        self._kinds: dict[str, Call] = {}

    def submit(self, call: Call) -> None:
        self._kinds[call.id] = call
        super().submit(call)

    def next(self, timeout_s: float) -> Outcome | None:
        outcome = super().next(timeout_s)
        call = self._kinds[outcome.call_id] if outcome is not None else None
        if outcome is None or call is None or call.kind != "gradient" or not self._spoils(call):
            return outcome
        document = decode(outcome.payload)
        name = next(name for name in document if name.startswith("g:"))
        document[name] = np.full_like(document[name], np.nan)
        return outcome.model_copy(update={"payload": encode(document)})


def test_a_gradient_that_is_not_finite_is_dropped_once_with_its_reason_and_counted_as_waste() -> None:
    spoiled: list[str] = []

    def spoils(call: Call) -> bool:
        if not spoiled or call.id in spoiled:
            spoiled.append(call.id)
            return True
        return False

    events = events_of(tiny(algorithm=QUICK, loop=loop(), stop={"rounds": 2}), Spoiling(spoils))
    (failure,) = [event for event in events if event.kind == "call_failed"]
    assert failure.call_id == spoiled[0]
    assert failure.reason == "dropped: it holds numbers that are not finite"
    assert not failure.will_retry
    first, second = reports(events)
    assert first.gradients.dropped == {"numbers": 1}
    assert first.gradients.wasted_picodollars == 1000
    assert first.dropped_trajectories == 1
    assert first.env_steps == 2 * 16
    assert second.gradients.dropped == {}
    assert second.env_steps == 3 * 16


def test_a_gradient_over_100_versions_late_is_dropped_and_its_slice_goes_on() -> None:
    platform = Recording()

    def order(waiting: int) -> int:
        calls = list(platform._waiting)
        old = [
            i
            for i, call in enumerate(calls)
            if call.kind == "gradient" and call.weights and call.weights.version == 0
        ]
        first = min((call.id for call in calls if call.kind == "gradient"), key=len, default="")
        others = [i for i in range(waiting) if calls[i].id != first or i not in old]
        return others[0] if others else 0

    platform._order = order
    spec = tiny(
        algorithm=QUICK | {"epochs": 60},
        loop=loop(learners=3, hold=False),
        rollout={"steps_per_call": 4},
        stop={"rounds": 1},
    )
    events = events_of(spec, platform)
    (report,) = reports(events)
    (failure,) = [event for event in events if event.kind == "call_failed"]
    assert failure.reason_code == "too_old"
    assert report.gradients.dropped == {"too_old": 1}
    assert report.gradients.gradients == 3 * 60 - 1
    assert report.gradients.wasted_picodollars == 1000
    assert report.env_steps == 3 * 4


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
    assert [report.env_steps for report in found] == [4 * 16, 6 * 16, 5 * 16]
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
    assert events[-1].env_steps == 16 * 30
    assert sum(report.env_steps for report in reports(events)) == 16 * 30
    assert sum(call.kind == "rollout" for call in platform.submitted) == 30
    check_ages = [report.staleness_mean for report in reports(events)]
    assert max(check_ages) > 0


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
        assert all(64 <= report.env_steps <= 96 for report in found)


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


def test_money_that_ends_while_gradients_wait_is_no_loss_if_the_version_is_paid() -> None:
    """The third round's gradients cannot be paid any more: what waits becomes a last version."""
    calls = iter(range(10**6))

    def fault(call: Call) -> str | None:
        return "budget" if call.kind == "gradient" and next(calls) >= 14 else None

    platform = Recording(fault=fault)
    platform._order = first_of({"gradient", "rollout"}, platform)
    spec = tiny(
        algorithm=QUICK | {"epochs": 4},
        loop=loop(learners=3, largest_staleness=0.0),
        stop={"rounds": 5},
        checkpoints={"every_rounds": 1},
    )
    events = events_of(spec, platform)
    assert events[-1].reason_code == "budget"
    applied = {payload for call in platform.submitted if call.kind == "apply" for payload in call.inputs[1:]}
    made = {
        outcome.payload
        for what, call, outcome in platform.happened
        if what == "landed" and call.kind == "gradient" and outcome and outcome.status == "done"
    }
    assert made == applied


def test_a_run_resumed_with_other_learners_measures_staleness_anew(tmp_path: Path) -> None:
    spec = tiny(algorithm=QUICK, loop=loop(learners=3), stop={"rounds": 3}, checkpoints={"every_rounds": 1})
    store = FileCheckpointStore(tmp_path)
    found = reports(events_of(spec, InlinePlatform(), checkpoints=store))
    assert [report.gradients.bound is None for report in found] == [True, False, False]
    saved = store.load(store.names()[-1])
    for learners, measures_anew in ((3, False), (2, True)):
        more = spec.model_copy(
            update={
                "loop": spec.loop.model_copy(update={"learners": learners}),
                "stop": spec.stop.model_copy(update={"rounds": 4}),
            }
        )
        (report,) = reports(events_of(more, InlinePlatform(), resume=saved))
        assert (report.gradients.bound is None) == measures_anew


def test_slices_go_out_failed_ones_first_then_new_ones_then_those_with_passes_left() -> None:
    data = (Trajectory(b"x", 0),)
    slices = Slices([Slice(1, data, passes=2), Slice(2, data), Slice(3, data, passes=1), Slice(4, data)])
    slices.give_back(Slice(5, data, passes=1))
    slices.give_back(Slice(6, data, failures=1))
    order = []
    while (one := slices.take()) is not None:
        order.append(one.number)
    assert order == [6, 5, 2, 4, 1, 3]
    assert len(slices) == 0


def test_what_is_unfinished_comes_back_from_bytes_as_it_was() -> None:
    data = (Trajectory(b"one", 3), Trajectory(b"", 4))
    whole = Unfinished(
        slices=(Slice(7, data, 2, b"kept", 1), Slice(8, data[:1])),
        gradients=(WaitingGradient(b"gradient", 4, 19, "r2-gradient19-n5"),),
        policies={3: b"policy"},
        slices_made=8,
        launched=20,
        largest_staleness=3.0,
        calibrated_round=1,
        measured_with=(4, 16),
    )
    assert Unfinished.decode(whole.encode(1000)) == whole
    assert Unfinished.decode(whole.encode(9)).slices == whole.slices[:1]
    assert Unfinished().encode(1000) == b""
    assert Unfinished.decode(b"") == Unfinished()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"algorithm": {"kind": "impala"}, "loop": loop(truncation="released")}, "PPO's clipped objective"),
        (
            {
                "algorithm": {"kind": "ppo", "objective": "decoupled"},
                "loop": loop(truncation="differentiated"),
            },
            "PPO's clipped objective",
        ),
        ({"loop": loop(), "scaling": {"kind": "boosting"}}, "scaling by boosting measures each update"),
        (
            {"loop": loop(learners=4)},
            "3 actors that wait fill 3 slices of 1 trajectories, so no more than 3 of 4",
        ),
        ({"loop": loop(ratio_limit=0.99)}, "greater than or equal to 1"),
        ({"loop": loop(staleness_decay=0.0)}, "greater than 0"),
        ({"loop": loop(staleness_decay=1.01)}, "less than or equal to 1"),
        ({"loop": loop(learners=0)}, "greater than or equal to 1"),
        ({"loop": loop(fit_learners=True, order="launch")}, "cannot repeat a run"),
    ],
)
def test_what_learners_cannot_do_is_refused_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        tiny(**changes)
    (error,) = refused.value.errors()  # type: ignore[attr-defined]
    assert error["msg"].count(". ") == 0


def test_actors_that_go_on_may_feed_more_learners_than_there_are_slices_at_once() -> None:
    assert tiny(loop=loop(learners=9, actors_wait=False)).loop.learners == 9


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
        assert after.learners_why.startswith(f"{gradient_s:.3g} s of gradients a round for")
        assert after.learners_busy <= most
    assert spec.loop.depends_on_timing
