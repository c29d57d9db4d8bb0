"""What is particular to each loop: who waits, how old data may be, and what can be repeated."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of, final_learner
from tests.training.specs import tiny
from training.calls.update import UpdateRequest
from training.engine.checkpoints import FileCheckpointStore, Progress
from training.engine.codec import decode
from training.engine.ports import CheckpointRef, Control
from training.engine.replay import CircularBuffer, Contribution, KeptBatch, newest_within
from training.engine.train import train
from training.rl.learner import LearnerState

ASYNCHRONOUS = {"kind": "asynchronous", "staleness_limit": 2}
IMPACT = {"kind": "impact", "epochs": 1, "minibatch_size": 16, "learning_rate_decay": False}


def reports(events):
    return [event.report for event in events if event.kind == "round"]


def ages(platform):
    """By how many versions the data of each update was older than the state it changed."""
    found = []
    for call in platform.submitted:
        if isinstance(call.request, UpdateRequest):
            version = LearnerState.decode(call.inputs[0]).version
            found.append([version - decode(payload)["version"] for payload in call.inputs[1:]])
    return found


def test_synchronous_data_is_never_stale():
    platform = InlinePlatform()
    events_of(tiny(), platform)
    assert ages(platform) == [[0, 0, 0]] * 4


def test_pipelined_data_is_exactly_one_version_old():
    platform = InlinePlatform()
    events = events_of(tiny(loop={"kind": "pipelined"}), platform)
    assert ages(platform) == [[0] * 3, [1] * 3, [1] * 3, [1] * 3]
    assert [report.staleness_mean for report in reports(events)] == [0.0, 1.0, 1.0, 1.0]
    assert [report.progress for report in reports(events)] == [48] * 4


def test_pipelined_runs_repeat_whichever_answers_first_and_when_split(tmp_path):
    spec = tiny(loop={"kind": "pipelined"})
    learners = {
        final_learner(spec, InlinePlatform(order=order, warmths=2), tmp_path / str(i))
        for i, order in enumerate([lambda n: 0, lambda n: n - 1, lambda n: n // 2])
    }
    assert len(learners) == 1
    store = FileCheckpointStore(tmp_path / "split")
    short = spec.model_copy(update={"stop": spec.stop.model_copy(update={"rounds": 2})})
    events_of(short, InlinePlatform(), checkpoints=store)
    events_of(spec, InlinePlatform(), checkpoints=store, resume=store.load(store.names()[-1]))
    assert {Progress.decode(store.load(store.names()[-1]), spec).learner} == learners


@pytest.mark.parametrize("seed", range(5))
def test_asynchronous_data_is_never_older_than_the_limit(seed):
    """Whatever the order of answers. Oracle: the versions inside the trajectories that updates were given."""
    rng = random.Random(seed)
    platform = InlinePlatform(order=lambda n: rng.randrange(n))
    spec = tiny(loop=ASYNCHRONOUS, algorithm={"kind": "impala", "minibatch_size": 16}, stop={"rounds": 12})
    events = events_of(spec, platform)
    found = ages(platform)
    assert max(max(one) for one in found) <= 2
    assert any(max(one) > 0 for one in found)
    assert [report.round_no for report in reports(events)] == list(range(1, 13))
    assert events[-1].reason_code == "rounds"
    assert len(platform.submitted) == len({call.id for call in platform.submitted})


def test_a_slow_learner_makes_actors_pause_and_not_pay():
    """Updates always answer last: no more fragments than the learner can use in time may ever wait."""
    platform = InlinePlatform()
    platform._order = lambda n: next(
        (i for i, call in enumerate(platform._waiting) if call.kind != "update"), 0
    )
    spec = tiny(loop=ASYNCHRONOUS, algorithm={"kind": "impala", "minibatch_size": 16}, stop={"rounds": 4})
    events = events_of(spec, platform)
    assert len(reports(events)) == 4
    rollouts = sum(call.kind == "rollout" for call in platform.submitted)
    assert rollouts <= 3 * (4 + 1 + 2 + 1)


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_nothing_is_sampled_that_a_slow_learner_can_only_drop(limit):
    """Updates always answer last, so that all data waits that may: none is too old when its turn comes."""
    platform = InlinePlatform()
    platform._order = lambda n: next(
        (i for i, call in enumerate(platform._waiting) if call.kind != "update"), 0
    )
    loop = {"kind": "asynchronous", "staleness_limit": limit}
    spec = tiny(loop=loop, algorithm={"kind": "impala", "minibatch_size": 16}, stop={"rounds": 12})
    found = reports(events_of(spec, platform))
    assert [report.dropped_contributions for report in found] == [0] * 12
    assert max(max(one) for one in ages(platform)) == limit


def test_replay_learns_again_from_old_data_when_nothing_new_has_come():
    platform = InlinePlatform()
    # Fragments answer last, so the learner would idle without its buffer.
    platform._order = lambda n: next(
        (i for i, call in enumerate(platform._waiting) if call.kind == "update"), 0
    )
    spec = tiny(loop=ASYNCHRONOUS, algorithm=IMPACT | {"replay_uses": 2}, stop={"rounds": 10})
    events_of(spec, platform)
    inputs = [call.inputs[1:] for call in platform.submitted if isinstance(call.request, UpdateRequest)]
    uses = [inputs.count(one) for one in inputs]
    assert max(uses) == 2
    once = tiny(loop=ASYNCHRONOUS, algorithm=IMPACT | {"replay_uses": 1}, stop={"rounds": 10})
    platform = InlinePlatform()
    events_of(once, platform)
    inputs = [call.inputs[1:] for call in platform.submitted if isinstance(call.request, UpdateRequest)]
    assert len(inputs) == len(set(inputs))


def test_replayed_data_is_learned_from_again_but_counts_as_sampled_steps_once():
    """Of the calls that sampled, those whose data an update took are counted, each once."""
    platform = InlinePlatform()
    platform._order = lambda n: next(
        (i for i, call in enumerate(platform._waiting) if call.kind == "update"), 0
    )
    spec = tiny(loop=ASYNCHRONOUS, algorithm=IMPACT | {"replay_uses": 2}, stop={"rounds": 10})
    found = reports(events_of(spec, platform))
    taken = [call.inputs[1:] for call in platform.submitted if isinstance(call.request, UpdateRequest)]
    fresh = {payload for inputs in taken for payload in inputs}
    every = [payload for inputs in taken for payload in inputs]
    assert len(fresh) < len(every)
    assert found[-1].total_progress == len(fresh) * spec.progress_a_call
    assert sum(report.progress for report in found) == found[-1].total_progress
    assert sum(report.learned_samples for report in found) == len(every) * spec.progress_a_call


def test_a_limit_of_steps_is_a_limit_of_what_was_sampled_whatever_is_replayed():
    platform = InlinePlatform()
    platform._order = lambda n: next(
        (i for i, call in enumerate(platform._waiting) if call.kind == "update"), 0
    )
    limit = 10 * tiny().progress_a_call
    spec = tiny(
        loop=ASYNCHRONOUS, algorithm=IMPACT | {"replay_uses": 4}, stop={"env_steps": limit, "rounds": None}
    )
    events = events_of(spec, platform)
    taken = [call.inputs[1:] for call in platform.submitted if isinstance(call.request, UpdateRequest)]
    fresh = {payload for inputs in taken for payload in inputs}
    assert events[-1].reason_code == "steps"
    assert events[-1].progress == len(fresh) * spec.progress_a_call >= limit
    assert any(one.replayed_samples for one in reports(events))


def test_the_buffer_forgets_what_is_used_up_or_too_old():
    buffer = CircularBuffer(batches=2, uses=2)
    buffer.put((b"a",), 0)
    buffer.put((b"b",), 5)
    buffer.put((b"c",), 6)
    assert buffer.take(5) == (b"b",)
    assert buffer.take(5) == (b"c",)
    assert buffer.take(5) is None
    buffer.put((b"d",), 1)
    assert buffer.take(2) is None


def test_a_use_that_came_to_nothing_is_given_back():
    buffer = CircularBuffer(batches=2, uses=2)
    # Equal batches are different batches.
    first, second = (tuple(data) for data in ([b"a"], [b"a"]))
    buffer.put(first, 0)
    buffer.put(second, 0)
    taken = buffer.take(0)
    buffer.give_back(taken)
    assert [kept.uses for kept in buffer.kept] == [1, 1]
    resumed = CircularBuffer(2, 2, buffer.kept)
    assert resumed.take(0) is taken
    assert resumed.take(0) is second
    assert resumed.take(0) is None


def test_a_checkpoint_drops_the_oldest_data_beyond_its_limit():
    waiting = tuple(Contribution(bytes(10), version) for version in range(3))
    replay = (KeptBatch(waiting[:1], 0, 1), KeptBatch(waiting[1:], 1, 1))
    assert newest_within(60, waiting, replay) == (waiting, replay)
    assert newest_within(59, waiting, replay) == (waiting, replay[1:])
    assert newest_within(49, waiting, replay) == (waiting, ())
    assert newest_within(29, waiting, replay) == (waiting[1:], ())
    assert newest_within(0, waiting, replay) == ((), ())


@dataclass
class Saved:
    """A checkpoint, and what was known when it was written."""

    data: bytes
    sampled: set[bytes]
    learned: Counter[bytes]


class Killed:
    """One asynchronous run over several processes, each of which may end anywhere. Every checkpoint is remembered with
    the trajectories that had been answered by then and how often each had been learned from, on its line of descent.
    """

    def __init__(self, spec):
        self.spec = spec
        self.saved = None
        self.sampled, self.learned = set(), Counter()
        self.batches = {}
        self.process = 0

    def play(self, *, order, events, drain=False):
        """Play so many events, then kill the process; with `drain` it is paused instead. Return the last event."""
        if self.saved is not None:
            self.sampled, self.learned = set(self.saved.sampled), Counter(self.saved.learned)
        platform, seen = InlinePlatform(order=order), []
        answer = platform.next

        def watched(timeout_s):
            known = {call.id: call for call in platform._waiting}
            outcome = answer(timeout_s)
            if outcome is not None and outcome.status == "done":
                call = known[outcome.call_id]
                if call.kind == "rollout":
                    self.sampled.add(outcome.payload)
                if call.kind == "update":
                    self.learned.update(call.inputs[1:])
                    self.batches |= dict.fromkeys(call.inputs[1:], call.inputs[1:])
            return outcome

        platform.next = watched
        self.process += 1
        run = train(
            self.spec,
            platform=platform,
            checkpoints=self,
            control=lambda: Control(desired="paused" if drain and len(seen) >= events else "run"),
            resume=self.saved.data if self.saved is not None else None,
            call_prefix=f"p{self.process}-",
        )
        for event in run:
            seen.append(event)
            if not drain and len(seen) == events:
                break
        run.close()
        return seen[-1]

    def save(self, round_no, data, *, best=False):
        if not best:
            self.saved = Saved(data, set(self.sampled), Counter(self.learned))
        return CheckpointRef(f"{round_no}", round_no, "", len(data))


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
@pytest.mark.parametrize("drain", [False, True], ids=["killed", "paused"])
def test_an_asynchronous_run_that_is_resumed_loses_no_data_and_learns_from_none_too_often(seed, drain):
    """Killed or paused at any event, with any order of answers. Whatever had been paid for when the checkpoint was
    written is used up, waits, may be used again, or was too old.
    """
    rng = random.Random(seed)
    uses = 2
    spec = tiny(
        loop=ASYNCHRONOUS,
        algorithm=IMPACT | {"replay_uses": uses, "replay_batches": 64},
        stop={"rounds": 10_000},
        checkpoints={"every_rounds": 1},
    )
    one = Killed(spec)
    for _ in range(6):
        one.play(order=lambda n: rng.randrange(n), events=rng.randrange(5, 40), drain=drain)
        if one.saved is None:
            continue
        assert max(one.learned.values(), default=0) <= uses
        progress = Progress.decode(one.saved.data, spec)
        held = {contribution.payload for contribution in progress.waiting}
        again = {contribution.payload for kept in progress.replay for contribution in kept.batch}
        for payload in one.saved.sampled - held - again:
            # A batch is as old as the oldest in it.
            oldest = min(decode(other)["version"] for other in one.batches.get(payload, (payload,)))
            too_old = oldest < progress.version - ASYNCHRONOUS["staleness_limit"]
            assert too_old or one.saved.learned[payload] == uses
        assert not held & set(one.saved.learned)
        assert all(
            one.saved.learned[contribution.payload] == kept.uses
            for kept in progress.replay
            for contribution in kept.batch
        )
    assert one.process == 6
    assert one.saved is not None


def test_data_that_waits_before_the_first_round_is_kept_when_a_run_is_paused():
    one = Killed(tiny(loop=ASYNCHRONOUS, stop={"rounds": 10}))
    # Every fragment but the third has landed when the first tick comes, so nothing could be learned yet.
    assert one.play(order=lambda n: 0, events=2, drain=True).reason_code == "paused"
    assert one.saved is not None
    progress = Progress.decode(one.saved.data, one.spec)
    assert progress.round_no == 0
    assert {contribution.payload for contribution in progress.waiting} == one.saved.sampled != set()
    assert one.play(order=lambda n: 0, events=10_000).reason_code == "rounds"


@pytest.mark.parametrize("kind", ["pipelined", "asynchronous"])
@pytest.mark.parametrize("what", ["rollout", "update"])
def test_a_run_that_cannot_go_on_says_why_in_every_loop(kind, what):
    platform = InlinePlatform(fault=lambda call: "no such thing" if call.kind == what else None)
    last = events_of(tiny(loop={"kind": kind}), platform)[-1]
    assert last.reason_code == "failing"
    assert "no such thing" in last.reason


@pytest.mark.parametrize("kind", ["pipelined", "asynchronous"])
def test_every_loop_stops_by_hand_and_by_money(kind):
    looks = []

    def control():
        looks.append(1)
        return Control(desired="cancelled" if len(looks) > 30 else "run")

    platform = InlinePlatform()
    spec = tiny(loop={"kind": kind}, stop={"rounds": 10_000})
    assert events_of(spec, platform, control=control)[-1].reason_code == "cancelled"
    assert platform.next(0) is None
    poor = InlinePlatform(fault=lambda call: "budget" if call.round_no == 3 else None)
    events = events_of(spec, poor)
    assert (events[-1].reason_code, events[-1].rounds) == ("budget", 2)
    assert poor.next(0) is None


@pytest.mark.parametrize("kind", ["asynchronous", "staleness_aware"])
def test_nothing_is_sent_after_the_budget_has_refused_a_call(kind):
    """What was done before it could be cancelled still ends rounds, which are neither judged nor followed by others."""

    class AllDone(InlinePlatform):
        sent_before = None

        def cancel(self, call_id):
            self.sent_before = self.sent_before or len(self.submitted)

    loop = {"kind": kind}
    if kind == "staleness_aware":
        loop |= {"learners": 2, "trajectories_per_gradient": 1, "actors_wait": False}
    spec = tiny(loop=loop, evaluation={"every_rounds": 1}, algorithm={"kind": "impala"})
    rounds = []
    for refused in range(3, 14):
        rollouts = iter(range(1000))
        platform = AllDone(
            order=lambda waiting: waiting - 1,
            fault=lambda call, rollouts=rollouts, refused=refused: (
                "budget" if call.kind == "rollout" and next(rollouts) == refused else None
            ),
        )
        events = events_of(spec, platform)
        if events[-1].reason_code == "budget" and platform.sent_before:
            kinds = {call.kind for call in platform.submitted[platform.sent_before :]}
            assert kinds <= {"apply"}  # a last version of gradients that wait
            rounds.append(events[-1].rounds)
    assert max(rounds) >= 2
