"""Gradients that fail, are dropped or come too late: every sample is still learned from and counted once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from tests.training.specs import tiny
from tests.training.stellaris_runs import (
    QUICK,
    Recording,
    at_random,
    first_of,
    loop,
    paused_with_gradients,
    reports,
)
from training.engine import checkpoints
from training.engine.checkpoints import CheckpointError, FileCheckpointStore, Progress
from training.engine.codec import decode, encode
from training.engine.messages import Call, CheckpointSaved, Outcome
from training.engine.ports import Control
from training.rl.learner import LearnerState


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
    # A gradient may wait over a pause, and be applied in a later sitting than it was computed in.
    computed: dict[bytes, tuple[int, int]] = {}
    resume, events = None, []
    store = FileCheckpointStore(tmp_path)
    for sitting in range(30):
        fault = lambda call: "it broke" if call.kind == "gradient" and rng.random() < 0.1 else None  # noqa: E731
        platform = Recording(order=at_random(sitting), fault=fault)
        running_looks = rng.randrange(5, 40)
        control = iter(["run"] * running_looks + ["paused"] * 1000)
        events = events_of(
            spec,
            platform,
            checkpoints=store,
            resume=resume,
            control=lambda control=control: Control(desired=next(control)),
        )
        for what, call, outcome in platform.happened:
            if what != "landed" or outcome is None or outcome.status != "done":
                continue
            if call.kind == "gradient":
                computed[outcome.payload] = call.seed, call.request.pass_no
            elif call.kind == "apply":
                done.update(computed[payload] for payload in call.inputs[1:])
        resume = store.load(store.names()[-1])
        if events[-1].reason_code != "paused":
            break
    assert events[-1].reason_code == "steps"
    progress = Progress.decode(resume, spec)
    state = LearnerState.decode(progress.learner)
    assert progress.total_progress >= 5 * 16 * 4
    assert set(done.values()) == {1}
    slices = {seed for seed, _ in done}
    assert progress.total_progress == 16 * sum((seed, 3) in done for seed in slices)
    assert state.observation_moments is not None
    counted = state.observation_moments.count + (
        seen.count if (seen := state.round_sums.observation_moments) is not None else 0
    )
    assert counted == progress.total_progress


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


@pytest.mark.parametrize(
    ("order", "code"),
    [
        *((order, code) for order in ("arrival", "launch") for code in ("numbers", "result_too_large")),
        ("launch", "refused_gradient"),
    ],
)
def test_a_gradient_that_would_fail_again_in_the_same_way_is_not_sent_again(order: str, code: str) -> None:
    def fault(call: Call) -> str | None:
        return "in vain" if call.kind == "gradient" and call.seed == platform.gradients[0].seed else None

    class OfSlices(InlinePlatform):
        @property
        def gradients(self) -> list[Call]:
            return [call for call in self.submitted if call.kind == "gradient"]

    platform = OfSlices(fault=fault, fault_code=code)
    (report,) = reports(
        events_of(tiny(algorithm=QUICK, loop=loop(order=order), stop={"rounds": 1}), platform)
    )
    tried = [call for call in platform.gradients if call.seed == platform.gradients[0].seed]
    assert [call.attempt for call in tried] == [1]
    assert (report.failed_calls, report.retried_calls) == (1, 0)
    assert (report.dropped_contributions, report.progress) == (1, 2 * 16)
    assert report.gradients.dropped == ({} if code == "result_too_large" else {code: 1})


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
    assert failure.reason.startswith("dropped: ")
    assert not failure.will_retry
    first, second = reports(events)
    assert first.gradients.dropped == {"numbers": 1}
    assert first.gradients.wasted_picodollars == 1000
    assert first.dropped_contributions == 1
    assert first.progress == 2 * 16
    assert second.gradients.dropped == {}
    assert second.progress == 3 * 16


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
    assert report.progress == 3 * 4


def test_a_slice_whose_last_gradient_is_dropped_counts_as_lost() -> None:
    """Its samples are counted with the last pass alone."""
    platform = Recording()

    def order(waiting: int) -> int:
        calls = list(platform._waiting)
        return next((i for i, call in enumerate(calls) if call.name != "r1-gradient1-n111"), 0)

    platform._order = order
    spec = tiny(
        algorithm=QUICK | {"epochs": 1},
        loop=loop(learners=3, hold=False),
        scaling={"actors": 110},
        rollout={"steps_per_call": 4},
        stop={"rounds": 1},
    )
    (report,) = reports(events_of(spec, platform))
    assert report.gradients.dropped == {"too_old": 1}
    assert report.progress == 109 * 4
    assert report.dropped_contributions == 1


def test_gradients_that_no_version_can_be_paid_for_are_kept_and_taken_when_the_run_goes_on() -> None:
    """Money ends before the first version of a round: a raised budget makes it of what waits."""
    spec = tiny(algorithm=QUICK | {"epochs": 1}, loop=loop(), stop={"rounds": 1})
    fault = lambda call: "budget" if call.kind == "apply" else None  # noqa: E731
    platform, store = Recording(fault=fault), Forgetful()
    platform._order = first_of({"gradient", "rollout"}, platform)
    events = events_of(spec, platform, checkpoints=store)
    assert (events[-1].reason_code, events[-1].rounds) == ("budget", 0)
    computed = {
        outcome.payload
        for what, call, outcome in platform.happened
        if what == "landed" and call.kind == "gradient" and outcome and outcome.status == "done"
    }
    assert computed
    kept = list(store.saved.values())[-1]
    assert {one.payload for one in Progress.decode(kept, spec).unfinished.gradients} == computed
    again = Recording()
    events = events_of(spec, again, resume=kept)
    assert events[-1].progress == 3 * 16
    applied = {payload for call in again.submitted if call.kind == "apply" for payload in call.inputs[1:]}
    assert computed < applied or computed == applied


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


def test_a_run_that_begins_with_another_runs_weights_takes_none_of_its_gradients_and_slices() -> None:
    spec = tiny(algorithm=QUICK, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})
    kept = paused_with_gradients(spec)
    unfinished = Progress.decode(kept, spec).unfinished
    theirs = {one.payload for one in unfinished.gradients}
    theirs |= {contribution.payload for one in unfinished.slices for contribution in one.contributions}
    platform = Recording()
    events = events_of(spec.model_copy(update={"seed": 1}), platform, begin_with=kept)
    assert events[-1].reason_code == "rounds"
    assert not theirs & {payload for call in platform.submitted for payload in call.inputs}
    first = next(call for call in platform.submitted if call.kind == "gradient")
    assert (first.name, first.request.pass_no) == ("r1-gradient1-n6", 1)
    assert reports(events)[0].gradients.bound is None, "its staleness is measured by itself"


def test_a_checkpoint_with_gradients_of_another_network_or_task_is_refused_in_one_sentence() -> None:
    spec = tiny(algorithm=QUICK, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})
    kept = paused_with_gradients(spec)
    others = (
        tiny(algorithm=QUICK, loop=loop(), network={"kind": "mlp", "hidden": [4]}),
        tiny("Acrobot-v1", algorithm=QUICK, loop=loop()),
    )
    for other, part in zip(others, ("network", "environment"), strict=True):
        platform = Recording()
        for way in ("resume", "begin_with"):
            with pytest.raises(CheckpointError, match=f"with another {part}"):
                events_of(other, platform, **{way: kept})
        assert platform.submitted == []


def test_a_checkpoint_holds_data_up_to_a_limit_and_says_what_it_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = tiny(algorithm=QUICK, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})

    def paused() -> tuple[CheckpointSaved, bytes]:
        """The last checkpoint of a run that is paused in the middle of its data."""
        control, store = iter(["run"] * 20 + ["paused"] * 1000), Forgetful()
        events = events_of(
            spec,
            Recording(order=at_random(20)),
            checkpoints=store,
            control=lambda: Control(desired=next(control)),
        )
        saved = [event for event in events if isinstance(event, CheckpointSaved) and not event.best][-1]
        return saved, store.load(saved.name)

    whole, data = paused()
    held = Progress.decode(data, spec)
    assert (whole.left_out, held.contributions > 2) == (0, True)
    sizes = [
        sum(len(contribution.payload) for contribution in one.contributions) + len(one.prepared or b"")
        for one in held.unfinished.slices
    ]
    monkeypatch.setattr(checkpoints, "DATA_LIMIT_BYTES", sizes[0])
    less, data = paused()
    kept = Progress.decode(data, spec)
    assert less.left_out == held.contributions - kept.contributions > 0
    assert kept.unfinished.slices == held.unfinished.slices[:1]
    assert whole.byte_count - less.byte_count >= sum(sizes[1:])
    assert events_of(spec, Recording(), resume=data)[-1].reason_code == "rounds"


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        ({"kind": "impala", "minibatch_size": 16}, "by ppo"),
        (QUICK | {"objective": "decoupled"}, "by ppo .* objective"),
        (QUICK | {"epochs": 1}, "in 3 passes"),
    ],
)
def test_what_learners_had_begun_is_resumed_only_by_what_can_finish_it(
    algorithm: dict[str, Any], words: str
) -> None:
    spec = tiny(algorithm=QUICK, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})
    kept = paused_with_gradients(spec)
    other = tiny(
        algorithm={"normalise_observations": True} | algorithm,
        loop=loop(),
        scaling={"actors": 5},
        stop={"rounds": 3},
    )
    platform = Recording()
    with pytest.raises(CheckpointError, match=f"middle of data, {words}"):
        events_of(other, platform, resume=kept)
    assert platform.submitted == []
    assert events_of(other, platform, begin_with=kept)[-1].reason_code == "rounds"
    more = tiny(algorithm=QUICK | {"epochs": 9}, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})
    assert events_of(more, Recording(), resume=kept)[-1].reason_code == "rounds"
