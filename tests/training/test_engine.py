"""The engine as a generator: a test is `list(train(...))`."""

import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of, final_learner
from tests.training.specs import tiny
from tests.work import repeated
from training.engine.checkpoints import CheckpointError, FileCheckpointStore
from training.engine.ports import Control
from training.engine.train import train
from training.scaling.plan import Bounds
from training.scaling.ramp import Ramp
from training.spec import RETURN


def kinds(events):
    return [
        "best" if getattr(event, "best", False) else event.kind for event in events if event.kind != "tick"
    ]


def reports(events):
    return [event.report for event in events if event.kind == "round"]


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
def test_a_run_tells_its_story_in_order(environment):
    events = events_of(tiny(environment), InlinePlatform())
    pair = ["round", "round", "evaluation", "checkpoint"]
    assert [kind for kind in kinds(events) if kind != "best"] == ["started", *pair, *pair, "stopped"]
    assert kinds(events)[3:5] == ["evaluation", "best"]
    assert [report.round_no for report in reports(events)] == [1, 2, 3, 4]
    assert [report.total_progress for report in reports(events)] == [48, 96, 144, 192]
    last = events[-1]
    assert (last.reason_code, last.rounds, last.progress) == ("rounds", 4, 192)
    spent = sum(report.cost_picodollars for report in reports(events))
    assert last.cost_picodollars == spent + sum(e.cost_picodollars for e in events if e.kind == "evaluation")


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
def test_the_same_seed_gives_the_same_weights_whichever_worker_answers_first(environment, tmp_path):
    """Workers are caches of their own; answers come first to last, last to first, or from the middle."""
    spec = tiny(environment)
    orders = [lambda n: 0, lambda n: n - 1, lambda n: n // 2]
    learners = {
        final_learner(spec, InlinePlatform(order=order, warmths=workers), tmp_path / f"{i}-{workers}")
        for i, order in enumerate(orders)
        for workers in (1, 2, 8)
    }
    assert len(learners) == 1
    assert final_learner(tiny(environment, seed=1), InlinePlatform(), tmp_path / "other") not in learners


def test_failed_calls_are_tried_again_and_change_nothing(tmp_path):
    spec = tiny()
    flaky = InlinePlatform(
        fault=lambda call: "worker died" if call.attempt == 1 and call.round_no % 2 else None
    )
    assert final_learner(spec, flaky, tmp_path / "a") == final_learner(spec, InlinePlatform(), tmp_path / "b")


def test_a_slot_that_always_fails_leaves_its_round_smaller():
    fault = lambda call: "broken" if call.round_no == 2 and getattr(call.request, "slot", None) == 1 else None  # noqa: E731
    events = events_of(tiny(), InlinePlatform(fault=fault))
    assert [report.progress for report in reports(events)] == [48, 32, 48, 48]
    failures = [event for event in events if event.kind == "call_failed"]
    assert [(f.slot, f.attempt, f.will_retry) for f in failures] == [
        (1, 1, True),
        (1, 2, True),
        (1, 3, False),
    ]
    assert reports(events)[1].failed_calls == 3


@pytest.mark.parametrize(("kind", "rounds"), [("rollout", 0), ("update", 0)])
def test_a_run_that_cannot_go_on_says_why(kind, rounds):
    events = events_of(
        tiny(), InlinePlatform(fault=lambda call: "no such thing" if call.kind == kind else None)
    )
    last = events[-1]
    assert (last.reason_code, last.rounds) == ("failing", rounds)
    assert "no such thing" in last.reason


@pytest.mark.parametrize("code", ["credentials", "function_missing", "bundle"])
@pytest.mark.parametrize("loop", ["synchronous", "pipelined", "asynchronous"])
def test_what_no_call_can_get_past_ends_the_run_at_once_with_the_words(loop, code):
    platform = InlinePlatform(fault=lambda call: "AWS does not know this key", fault_code=code)
    events = events_of(tiny(loop={"kind": loop}), platform)
    last = events[-1]
    assert (last.reason_code, last.reason) == ("failing", "AWS does not know this key")
    failed = [event for event in events if event.kind == "call_failed"]
    assert [event.will_retry for event in failed] == [False]
    assert {call.attempt for call in platform.submitted} == {1}


@pytest.mark.parametrize("code", ["numbers", "request_too_large", "result_too_large", "cloud_refused"])
def test_a_call_that_would_fail_again_in_the_same_way_is_not_tried_again(code):
    def fault(call):
        return "too large" if call.round_no == 1 and getattr(call.request, "slot", None) == 1 else None

    events = events_of(tiny(), InlinePlatform(fault=fault, fault_code=code))
    assert [report.progress for report in reports(events)][:2] == [32, 48]
    failed = [event for event in events if event.kind == "call_failed"]
    assert [(event.attempt, event.will_retry) for event in failed] == [(1, False)]


def test_pictures_are_learned_from_in_a_round(tmp_path):
    """A whole round of Atari with the large network, checkpoint included: tens of megabytes of learner."""
    spec = tiny(
        "PongNoFrameskip-v4",
        network={"kind": "cnn"},
        algorithm={"epochs": 1, "minibatch_size": 64, "clip_rewards": True},
        stop={"rounds": 1},
        evaluation={"every_rounds": 5, "episodes": 1},
    )
    platform = InlinePlatform(fault=lambda call: "not now" if call.kind == "evaluate" else None)
    events = events_of(spec, platform, checkpoints=FileCheckpointStore(tmp_path))
    assert events[-1].reason_code == "rounds"
    assert reports(events)[0].figures.update.entropy > 1.0


def test_refused_money_stops_the_run_with_a_checkpoint_before_the_round():
    store = Forgetful()
    fault = lambda call: "budget" if call.round_no == 3 else None  # noqa: E731
    events = events_of(tiny(), InlinePlatform(fault=fault), checkpoints=store)
    assert (events[-1].reason_code, events[-1].rounds) == ("budget", 2)
    assert list(store.saved) == [2]


@pytest.mark.parametrize("desired", ["cancelled", "paused"])
def test_a_person_stops_the_run_at_once(desired):
    looks = []

    def control():
        looks.append(1)
        return Control(desired=desired if len(looks) > 12 else "run")

    platform = InlinePlatform()
    events = events_of(tiny(stop={"rounds": 10_000}), platform, control=control)
    assert events[-1].reason_code == desired
    assert platform.next(0) is None
    assert kinds(events)[-2:] == ["checkpoint", "stopped"]


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
@pytest.mark.parametrize("split", [2, 3])
def test_a_split_run_equals_an_unsplit_one_bit_for_bit(environment, split, tmp_path):
    spec = tiny(environment)
    whole = final_learner(spec, InlinePlatform(), tmp_path / "whole")
    store = FileCheckpointStore(tmp_path / "split")
    first = spec.model_copy(update={"stop": spec.stop.model_copy(update={"rounds": split})})
    first_events = events_of(first, InlinePlatform(), checkpoints=store)
    data = store.load(store.names()[-1])
    events = events_of(spec, InlinePlatform(), checkpoints=store, resume=data)
    assert events[0].resumed_from_round == split
    assert [report.round_no for report in reports(first_events) + reports(events)] == [1, 2, 3, 4]
    # Where the first part ended differs only in what decays with progress, which this spec turns off.
    assert spec.algorithm.learning_rate_decay is False
    from training.engine.checkpoints import Progress

    assert Progress.decode(store.load(store.names()[-1]), spec).learner == whole


def test_evaluation_changes_nothing_that_is_learned(tmp_path):
    """FrozenModel normaliser, seeds of its own: however often one evaluates, the weights are the same."""
    often, once = tiny(evaluation={"every_rounds": 1, "episodes": 3}), tiny(evaluation={"every_rounds": 4})
    assert final_learner(often, InlinePlatform(), tmp_path / "often") == final_learner(
        once, InlinePlatform(), tmp_path / "once"
    )


def test_an_outcome_that_comes_twice_or_late_is_taken_once(tmp_path):
    """A platform that delivers each outcome again later: same events, same weights."""

    class Repeating(InlinePlatform):
        def __init__(self):
            super().__init__()
            self._again = []

        def next(self, timeout_s):
            if len(self._again) > 2:
                return self._again.pop(0)
            outcome = super().next(timeout_s)
            if outcome is not None:
                self._again.append(outcome)
            return outcome

    spec = tiny()
    assert reports(events_of(spec, Repeating()))[-1].total_progress == 192
    assert final_learner(spec, Repeating(), tmp_path / "a") == final_learner(
        spec, InlinePlatform(), tmp_path / "b"
    )


@repeated(300, endurance=1000)
def test_a_long_run_does_not_grow(times):
    """What the engine holds after so many rounds is what it held after a hundred."""
    import tracemalloc

    spec = tiny(stop={"rounds": times}, evaluation={"every_rounds": 100}, checkpoints={"every_rounds": 50})
    held = []
    tracemalloc.start()
    for event in train(spec, platform=_Forgetting(), checkpoints=Forgetful(), control=Control):
        if event.kind == "round" and event.report.round_no in (100, times):
            held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[1] <= held[0] * 1.25 + 500 * times


class _Forgetting(InlinePlatform):
    """Keeps no record of what it was given, and only the newest weights."""

    def publish(self, version, blob):
        self._blobs.clear()
        self.submitted.clear()
        return super().publish(version, blob)


def test_bounds_hold_the_scaling_policy():
    events = events_of(tiny(), InlinePlatform(), control=lambda: Control(bounds=Bounds(actors_max=2)))
    assert {report.actors for report in reports(events)} == {2}
    assert "limited to 2" in reports(events)[0].plan_reason


def test_bounds_say_why_they_hold():
    bounds = Bounds(actors_max=2, because="for lack of money")
    events = events_of(tiny(), InlinePlatform(), control=lambda: Control(bounds=bounds))
    assert reports(events)[0].plan_reason.endswith("to 2 for lack of money")


@pytest.mark.parametrize("loop", ["synchronous", "pipelined", "asynchronous"])
def test_a_run_whose_money_is_about_to_end_finishes_its_round_and_saves(loop):
    rounds = []

    def control():
        return Control(drain="the money is about to end" if rounds else "")

    events = []
    for event in train(
        tiny(loop={"kind": loop}), platform=InlinePlatform(), checkpoints=Forgetful(), control=control
    ):
        events.append(event)
        rounds += [event] if event.kind == "round" else []
    assert (events[-1].reason_code, events[-1].reason) == ("budget", "the money is about to end")
    assert events[-1].rounds == len(rounds)
    assert [event.round_no for event in events if event.kind == "checkpoint"][-1] == len(rounds)


def test_a_ramp_grows_and_slots_that_rest_keep_their_state():
    spec = tiny(scaling={"kind": "ramp", "actors_first": 1, "actors_last": 4, "over_rounds": 3})
    assert [report.actors for report in reports(events_of(spec, InlinePlatform()))] == [1, 2, 3, 4]


def test_a_ramp_longer_than_the_history_that_is_kept_comes_to_its_end():
    ramp = Ramp(actors_first=1, actors_last=101, over_rounds=100)
    last = reports(events_of(tiny(), InlinePlatform()))[-1]
    kept = [last.model_copy(update={"round_no": round_no}) for round_no in range(37, 101)]
    assert ramp.decide(kept, Bounds(), seed=0, score=RETURN).actors == 101
    assert ramp.decide(kept[:-50], Bounds(), seed=0, score=RETURN).actors == 51


def test_calls_have_ids_of_their_own_and_carry_the_prefix():
    platform = InlinePlatform(fault=lambda call: "x" if call.attempt == 1 else None)
    events_of(tiny(), platform, call_prefix="job_1-2-")
    ids = [call.id for call in platform.submitted]
    assert len(ids) == len(set(ids))
    assert all(call_id.startswith("job_1-2-") for call_id in ids)


def test_not_a_number_stops_the_round_and_names_where_it_arose(monkeypatch):
    from gymnasium.envs.classic_control import CartPoleEnv

    step = CartPoleEnv.step
    monkeypatch.setattr(
        CartPoleEnv, "step", lambda self, action: (step(self, action)[0], float("nan"), False, False, {})
    )
    last = events_of(tiny(), InlinePlatform())[-1]
    assert last.reason_code == "failing"
    assert "at step 0" in last.reason


def test_an_environment_whose_state_cannot_travel_is_named_at_the_start():
    import gymnasium
    from gymnasium.envs.classic_control import CartPoleEnv

    class Elsewhere(CartPoleEnv):
        pass

    gymnasium.register("Elsewhere-v0", entry_point=Elsewhere, max_episode_steps=500)
    try:
        events = events_of(tiny("Elsewhere-v0"), InlinePlatform())
    finally:
        gymnasium.registry.pop("Elsewhere-v0")
    assert "The state of Elsewhere-v0 cannot be saved" in events[0].notes[0]
    assert events[-1].reason_code == "rounds"


@pytest.mark.parametrize(
    ("loop", "algorithm", "noted"),
    [
        ("pipelined", {}, True),
        ("asynchronous", {}, True),
        ("synchronous", {}, False),
        ("pipelined", {"objective": "decoupled"}, False),
        ("asynchronous", {"kind": "impala"}, False),
    ],
)
def test_clipped_ppo_on_data_of_older_policies_is_noted(loop, algorithm, noted):
    spec = tiny(loop={"kind": loop}, algorithm=algorithm)
    started = next(train(spec, platform=InlinePlatform(), checkpoints=Forgetful(), control=Control))
    assert [note for note in started.notes if "decoupled objective, IMPALA or IMPACT" in note] == (
        list(started.notes) if noted else []
    )
    assert bool(started.notes) is noted


def test_resuming_something_else_is_refused():
    with pytest.raises(CheckpointError):
        next(
            train(tiny(), platform=InlinePlatform(), checkpoints=Forgetful(), control=Control, resume=b"junk")
        )
