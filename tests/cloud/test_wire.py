"""What travels to an actor and back, and what is refused on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import zstandard

from cloud.actor import wire
from cloud.actor.answers import answer_to
from cloud.actor.blobs import BlobShelf
from cloud.actor.body import ActorMemory
from cloud.actor.wire import ActorAnswer, ActorRequest, MalformedMessage
from tests.cloud import calls
from tests.training.gradient_calls import gradient_call, sampled, spec_of
from tests.training.specs import tiny
from training.calls.update import UpdateRequest
from training.engine.codec import decode, encode
from training.engine.messages import BlobRef, Call
from training.rl.environments.making import spaces_of
from training.rl.learner import LearnerState

RUN = "run-token"


def _request(call: Call, **changes: Any) -> bytes:
    given: dict[str, Any] = {"not_after_unix_s": time.time() + 60, "weights": calls.weights()}
    return wire.pack_request(ActorRequest(run=RUN, call=call, **{**given, **changes}))


def answer_of(call: Call) -> ActorAnswer:
    """An answer as an actor really gives it."""
    return wire.read_answer(ActorMemory().answer(_request(call)))


@pytest.fixture
def ref() -> BlobRef:
    return BlobShelf().publish(0, calls.weights())


@pytest.fixture
def call(ref: BlobRef) -> Call:
    return calls.rollout("c1", ref)


@pytest.fixture
def good(call: Call) -> ActorAnswer:
    return answer_of(call)


def test_a_call_travels_whole(ref: BlobRef) -> None:
    call = calls.rollout("c1", ref, slot_state=b"state", inputs=(b"one", b"", b"three"))
    request = wire.read_request(_request(call, packages=("more_worlds",), weights_url="https://x/y"))
    assert request.call == call
    assert (request.run, request.packages, request.weights_url) == (RUN, ("more_worlds",), "https://x/y")


def test_an_answer_is_the_bodys_result(call: Call, good: ActorAnswer) -> None:
    answer, result = answer_to(call, RUN, wire.pack_answer(good))
    assert result is not None
    assert result.usage.steps == 16
    assert decode(result.payload)["slot"] == 0
    assert answer.run_s > 0


def test_evaluations_are_checked_too(ref: BlobRef) -> None:
    call = calls.evaluation("e", ref)
    packed = ActorMemory().answer(_request(call))
    assert answer_to(call, RUN, packed)[1] is not None
    answer = wire.read_answer(packed)
    short = answer.model_copy(update={"payload": encode({"returns": np.zeros(1), "lengths": np.zeros(1)})})
    with pytest.raises(MalformedMessage, match="not 2 numbers"):
        answer_to(call, RUN, wire.pack_answer(short))


def learned_update() -> tuple[Call, ActorAnswer]:
    """An update as an actor may be asked for one, and its answer."""
    sampled = wire.read_answer(
        ActorMemory().answer(_request(calls.rollout("r", BlobShelf().publish(0, calls.weights()))))
    )
    call = calls.update("u", (calls.learner_state().encode(), sampled.payload), where="actor")
    return call, wire.read_answer(ActorMemory().answer(_request(call)))


@pytest.fixture(scope="module")
def learned() -> tuple[Call, ActorAnswer]:
    return learned_update()


def test_an_update_from_an_actor_is_used(learned: tuple[Call, ActorAnswer]) -> None:
    call, answer = learned
    _, result = answer_to(call, RUN, wire.pack_answer(answer))
    assert result is not None
    assert decode(result.payload)["version"] == 1


_OFTEN = {"normalise_observations": True, "normalise_rewards": True, "minibatch_size": 16}


@pytest.mark.parametrize(
    "algorithm",
    [
        {"kind": "ppo", "epochs": 2, **_OFTEN},
        {"kind": "a2c"},
        {"kind": "impala", **_OFTEN},
        {"kind": "impact"},
    ],
    ids=lambda algorithm: algorithm["kind"],
)
def test_updates_of_every_algorithm_are_used_twice_in_a_row(algorithm: dict[str, Any]) -> None:
    spec = tiny(algorithm=algorithm, scaling={"kind": "boosting"})
    request = UpdateRequest(
        algorithm=spec.algorithm,
        network=spec.network,
        progress=0.0,
        staleness_limit=1,
        measures=spec.scaling.measures,
    )
    state = spec.algorithm.initial_state(spec.network, spaces_of(calls.CARTPOLE), 1).encode()
    ref = BlobShelf().publish(0, calls.weights())
    sampled = [
        wire.read_answer(ActorMemory().answer(_request(calls.rollout(f"r{slot}", ref, slot=slot)))).payload
        for slot in range(2)
    ]
    for version in (1, 2):
        call = calls.update("u", (state, *sampled), where="actor").model_copy(update={"request": request})
        _, result = answer_to(call, RUN, ActorMemory().answer(_request(call)))
        assert result is not None
        assert decode(result.payload)["version"] == version
        state = decode(result.payload)["state"]


def _with_update(answer: ActorAnswer, **changes: Any) -> ActorAnswer:
    return answer.model_copy(update={"payload": encode({**decode(answer.payload), **changes})})


def _with_state(answer: ActorAnswer, **changes: Any) -> ActorAnswer:
    """The update's state with parts replaced, and the weights that belong to it."""
    state = replace(LearnerState.decode(decode(answer.payload)["state"]), **changes)
    return _with_update(answer, state=state.encode(), weights=state.actor_weights(calls.SPEC.network))


def _parameters(answer: ActorAnswer, change: Callable[[Any], Any]) -> dict[str, Any]:
    found = LearnerState.decode(decode(answer.payload)["state"]).parameters
    name = next(iter(found))
    return {**found, name: change(found[name].copy())}


WRONG_UPDATES = [
    pytest.param(lambda good: _without(good, "report"), "adds: report", id="lacks the report"),
    pytest.param(lambda good: _with_state(good, version=7), "of version 7, not 1", id="of a later version"),
    pytest.param(
        lambda good: _with_update(good, version=2), "of version 2", id="of another version than its state"
    ),
    pytest.param(
        lambda good: _with_update(good, weights=calls.weights()),
        "of the learner's state",
        id="weights of another network",
    ),
    pytest.param(
        lambda good: _with_update(good, weights=np.zeros(3)),
        "of the learner's state",
        id="weights that are numbers",
    ),
    pytest.param(
        lambda good: _with_state(good, parameters=_parameters(good, lambda array: array * np.nan)),
        "not finite",
        id="parameters that are not finite",
    ),
    pytest.param(
        lambda good: _with_state(good, parameters=_parameters(good, lambda array: array.astype(np.float64))),
        "another shape",
        id="parameters of another type",
    ),
    pytest.param(
        lambda good: _with_state(good, second_moments=_parameters(good, lambda array: array[:1])),
        "another shape",
        id="parameters of another shape",
    ),
    pytest.param(
        lambda good: _with_update(
            good, state=encode({**decode(decode(good.payload)["state"]), "more": np.zeros(4)})
        ),
        "more than a",
        id="a state with more than a state",
    ),
    pytest.param(
        lambda good: _with_update(good, state=b"STRL1"), "cannot be read", id="a state that is none"
    ),
    pytest.param(lambda good: _with_update(good, state=7), "no state of", id="a state that is a number"),
    pytest.param(
        lambda good: _with_update(good, env_steps=17), "env_steps is 17", id="samples that no one took"
    ),
    pytest.param(
        lambda good: _with_update(good, report={"policy_loss": "low"}), "report is not", id="a report of text"
    ),
    pytest.param(
        lambda good: _with_update(
            good, report={**decode(good.payload)["report"], "policy_loss": float("nan")}
        ),
        "not finite",
        id="a report that is not finite",
    ),
    pytest.param(
        lambda good: good.model_copy(update={"work": good.work.model_copy(update={"samples": 17})}),
        "17 samples are reported",
        id="more work than there was",
    ),
    pytest.param(
        lambda good: good.model_copy(update={"work": good.work.model_copy(update={"macs": 10**9})}),
        "of the network",
        id="a larger network",
    ),
]


def _without(answer: ActorAnswer, name: str) -> ActorAnswer:
    document = decode(answer.payload)
    del document[name]
    return answer.model_copy(update={"payload": encode(document)})


@pytest.mark.parametrize(("make", "words"), WRONG_UPDATES)
def test_an_update_that_does_not_follow_is_refused(
    make: Callable[[ActorAnswer], ActorAnswer], words: str, learned: tuple[Call, ActorAnswer]
) -> None:
    call, good = learned
    with pytest.raises(MalformedMessage, match=words):
        answer_to(call, RUN, wire.pack_answer(make(good)))


@pytest.fixture(scope="module")
def gradient() -> tuple[Call, ActorAnswer]:
    """A gradient as an actor may be asked for one, and its answer."""
    _, ((_, *trajectories), _) = sampled("CartPole-v1")
    spec = spec_of("ppo, 10 passes")
    state = spec.algorithm.initial_state(spec.network, spaces_of(spec.environment), 3)
    call, blob = gradient_call(
        spec, state, tuple(trajectories), policies=(state.actor_weights(spec.network),)
    )
    return call, wire.read_answer(ActorMemory().answer(_request(call, weights=blob)))


def test_a_gradient_from_an_actor_is_used_with_what_later_passes_need(
    gradient: tuple[Call, ActorAnswer],
) -> None:
    call, answer = gradient
    _, result = answer_to(call, RUN, wire.pack_answer(answer))
    assert result is not None
    assert (decode(result.payload)["version"], decode(result.payload)["pass_no"]) == (0, 1)
    assert result.slot_state is not None
    assert set(decode(result.slot_state)) == {"advantages", "values"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"run": "another"}, "run"),
        ({"call_id": "another"}, "call"),
        ({"version": 7}, "version"),
        ({"slot_state": None}, "gradient"),
        ({"slot_state": b"nonsense"}, "codec"),
        ({"work": wire.MeasuredWork(minibatches=1, samples=10**6)}, "work"),
        ({"payload": b""}, "codec"),
        ({"payload": encode({"g:policy.0.weight": np.zeros(10**7, np.float32)})}, "codec"),
        ({"payload": encode({"version": 0})}, "gradient"),
    ],
)
def test_a_gradient_that_was_not_requested_is_refused(
    changes: dict[str, Any], code: str, gradient: tuple[Call, ActorAnswer]
) -> None:
    call, answer = gradient
    with pytest.raises(MalformedMessage) as refused:
        answer_to(call, RUN, wire.pack_answer(answer.model_copy(update=changes)))
    assert refused.value.code == code
    assert refused.value.reason


def test_pictures_come_back_compressed(call: Call, good: ActorAnswer) -> None:
    assert len(wire.pack_answer(good.model_copy(update={"payload": bytes(100_000)}))) < 5_000


def with_trajectory(answer: ActorAnswer, **arrays: Any) -> ActorAnswer:
    document = {**decode(answer.payload), **arrays}
    return answer.model_copy(
        update={"payload": encode({name: value for name, value in document.items() if value is not None})}
    )


WRONG_TRAJECTORIES = [
    pytest.param(
        {"observations": np.zeros((16, 1, 5), np.float32)}, "observations of shape", id="a wrong shape"
    ),
    pytest.param(
        {
            name: np.zeros((8, 1, *more), dtype)
            for name, more, dtype in (
                ("observations", (4,), np.float32),
                ("actions", (), np.int64),
                ("log_probs", (), np.float32),
                ("rewards", (), np.float32),
                ("terminated", (), np.bool_),
                ("truncated", (), np.bool_),
                ("discounted_returns", (), np.float64),
            )
        },
        r"\(8, 1\), not \(16, 1\)",
        id="too few steps",
    ),
    pytest.param({"rewards": np.zeros((16, 1), np.float64)}, "rewards as float64", id="a wrong dtype"),
    pytest.param({"version": 3}, "sampled with version 3", id="another version inside"),
    pytest.param({"rewards": np.full((16, 1), np.nan, np.float32)}, "not finite", id="no number"),
    pytest.param({"actions": np.full((16, 1), 9)}, "does not have", id="an unknown action"),
    pytest.param({"rewards": None}, "adds: rewards", id="something missing"),
    pytest.param({"extra": np.zeros(3)}, "adds: extra", id="something more"),
    pytest.param({"slot": 4}, "slot 4", id="another slot"),
    pytest.param({"episode_returns": np.zeros(5)}, "returns than lengths", id="returns than lengths"),
    pytest.param({"rewards": "many"}, "lacks rewards", id="text for numbers"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG_TRAJECTORIES)
def test_a_trajectory_that_was_not_requested_is_refused(
    changes: dict[str, Any], words: str, call: Call, good: ActorAnswer
) -> None:
    with pytest.raises(MalformedMessage, match=words):
        answer_to(call, RUN, wire.pack_answer(with_trajectory(good, **changes)))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"run": "another"}, "run"),
        ({"call_id": "c2"}, "call"),
        ({"version": 7}, "version"),
        ({"version": None}, "version"),
        ({"slot_state": encode({"states": [b"a", b"b"]})}, "state"),
        ({"slot_state": b"nonsense"}, "codec"),
        ({"work": wire.MeasuredWork(steps=17)}, "work"),
        ({"payload": b""}, "codec"),
    ],
)
def test_an_answer_to_another_question_is_refused(
    changes: dict[str, Any], code: str, call: Call, good: ActorAnswer
) -> None:
    with pytest.raises(MalformedMessage) as refused:
        answer_to(call, RUN, wire.pack_answer(good.model_copy(update=changes)))
    assert refused.value.code == code
    assert refused.value.reason


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"STRL1",
        b"\x80\x04K\x01.",
        b"STRL1\x00\xff\xff\xff\xff",
        encode({"run": RUN}),
        encode({"run": RUN, "call_id": "c1", "status": "done", "surprise": 1}),
        encode({"run": 5, "call_id": "c1", "status": "done"}),
        encode({"run": RUN, "call_id": "c1", "status": "excellent"}),
        encode({"run": RUN, "call_id": "c1", "status": "done", "run_s": float("nan")}),
    ],
)
def test_bytes_that_are_no_answer_are_refused(data: bytes, call: Call) -> None:
    with pytest.raises(MalformedMessage):
        answer_to(call, RUN, data)


def test_a_compressed_bomb_is_refused_before_it_unpacks(call: Call, good: ActorAnswer) -> None:
    """A few kilobytes that would become gigabytes: outside as the answer, and inside as its trajectory."""
    huge = bytes(2**27)
    outside = encode({"run": RUN, "call_id": "c1", "status": "done", "payload": huge}, compress=True)
    inside = good.model_copy(
        update={"payload": encode({"rewards": np.frombuffer(huge, "f4")}, compress=True)}
    )
    assert len(outside) + len(inside.payload) < 50_000
    for packed in (outside, wire.pack_answer(inside)):
        with pytest.raises(MalformedMessage, match="at most"):
            answer_to(call, RUN, packed)


def test_a_bomb_that_lies_about_its_size_is_refused(call: Call) -> None:
    honest = encode({"run": RUN, "call_id": "c1", "status": "done", "payload": bytes(10**6)}, compress=True)
    bomb = zstandard.ZstdCompressor().compress(bytes(2**26))
    body_at = honest.index(b"\x28\xb5\x2f\xfd")
    with pytest.raises(MalformedMessage):
        answer_to(call, RUN, honest[:body_at] + bomb)
