"""What is said of answers that are refused, word by word."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import signal
import time
from collections.abc import Callable, Sequence
from email.message import Message
from typing import Any
from urllib.error import HTTPError

import pytest

from cloud.actor import wire
from cloud.actor.answers import answer_to
from cloud.actor.blobs import BlobShelf
from cloud.actor.body import ActorMemory
from cloud.actor.protocol import TOKEN_VARIABLE
from cloud.actor.puller import main
from cloud.actor.watchdog import DeadlineExceeded, Watchdog
from cloud.actor.wire import ActorAnswer, ActorRequest, MalformedMessage
from cloud.failures import Failure
from cloud.platforms.gateway.store import WaitingPuller
from cloud.platforms.outcomes import read_answer
from cloud.platforms.ray.head import NoRay
from cloud.platforms.ray_cluster import RayOptions
from tests.cloud import calls
from tests.cloud.test_pulled import Desk
from tests.cloud.test_supervised_runs import HOSTILE, of, result_of
from tests.cloud.test_wire import (
    RUN,
    WRONG_TRAJECTORIES,
    WRONG_UPDATES,
    answer_of,
    learned_update,
    with_trajectory,
)
from tests.training.specs import descent
from training.calls import KINDS
from training.calls.kind import BadAnswer
from training.engine.codec import decode, encode
from training.engine.messages import Call
from training.rl.environments.catalogue import require_known

UPDATES = {
    "lacks the report": "the result lacks or adds: report",
    "of a later version": "the state is of version 7, not 1",
    "of another version than its state": "the update is of version 2, its state is not",
    "weights of another network": "the weights are not those of the learner's state",
    "weights that are numbers": "the weights are not those of the learner's state",
    "parameters that are not finite": "parameters have policy.0.weight that are not finite numbers",
    "parameters of another type": "parameters have policy.0.weight of another shape or type than before",
    "parameters of another shape": "second_moments have policy.0.weight of another shape or type than before",
    "a state with more than a state": "the learner's state holds more than a state",
    "a state that is none": "the learner's state cannot be read: too short to be a document",
    "a state that is a number": "the update holds no state of the learner",
    "samples that no one took": "env_steps is 17; the trajectories have 16",
    "a report of text": "the report is not one of ours: Input should be a valid number",
    "a report that is not finite": "policy_loss is nan, which is not finite or too large",
    "more work than there was": "17 samples are reported; 16 came in",
    "a larger network": "the reported multiplications are not those of the network",
}

_NOT_REQUESTED = "the trajectory is not what was requested: the trajectory"
TRAJECTORIES = {
    "a wrong shape": f"{_NOT_REQUESTED} has observations of shape (16, 1, 5), not (16, 1, 4)",
    "too few steps": "the trajectory is (8, 1), not (16, 1)",
    "a wrong dtype": f"{_NOT_REQUESTED} has rewards as float64",
    "another version inside": f"{_NOT_REQUESTED} was sampled with version 3; version 0 may be learned from",
    "no number": f"{_NOT_REQUESTED} has rewards that are not finite numbers",
    "an unknown action": f"{_NOT_REQUESTED} has actions that the environment does not have",
    "something missing": "the result lacks or adds: rewards",
    "something more": "the result lacks or adds: extra",
    "another slot": "the trajectory is of slot 4, not 0",
    "returns than lengths": "episodes have more returns than lengths",
    "text for numbers": f"{_NOT_REQUESTED} lacks rewards",
}

SUPERVISED = {
    "a push of another version": "the push is of version, slice, rows and steps (3, 0, 64, 1), not (0, 0, 64, 1)",
    "a push of another slice": "the push is of version, slice, rows and steps (0, 9, 64, 1), not (0, 0, 64, 1)",
    "a push of more rows": "the push is of version, slice, rows and steps (0, 0, 1000000000, 1), not (0, 0, 64, 1)",
    "a push whose rows are no number": "the push cannot be used: rows is True",
    "a loss that is no number": "the push cannot be used: the loss is not a finite number of at most 1e+15",
    "a loss that is a text": "the push cannot be used: loss is 'low'",
    "a gradient of another size": "the push cannot be used: bias has 11 numbers, not 10",
    "a gradient of another type": "the push cannot be used: all:bias is missing, or no list of numbers of type <f4",
    "a gradient that is infinite": "the push cannot be used: all:bias has numbers that are not finite, or above 1e+15",
    "something more": "the push cannot be used: it is not packed as pushes are",
    "a gradient packed in another way": "the push cannot be used: it is not packed as pushes are",
    "places out of order": "the push cannot be used: the places of weight are not in order, or not places of it",
    "a loss beyond all sense": "the push cannot be used: the loss is not a finite number of at most 1e+15",
    "a gradient beyond all sense": "the push cannot be used: all:bias has numbers that are not finite, or above 1e+15",
    "a merge of other numbers": "the merge is not that of these pushes",
    "a merge of another version": "the merge is not that of these pushes",
    "scores of fewer rows": "a judgement has a loss, probabilities and a class for each of its rows",
    "a score below zero": "a loss or a probability is below 0",
    "losses that flatter": "the losses are not those of the probabilities",
    "losses beyond all sense": "the losses are not those of the probabilities",
    "other classes": "the classes are not those of the rows",
    "no probabilities": "the probabilities of a row do not add up to 1",
    "a class that is not there": "a class of the judgement has no probability",
    "scores with more beside": "the result lacks or adds: more",
}


def each(cases: Sequence[Any], sentences: dict[str, str]) -> list[Any]:
    """The cases of a behaviour's test, each with its whole sentence in place of a part of it."""
    return [pytest.param(*case.values[:-1], sentences[case.id], id=case.id) for case in cases]


@pytest.mark.parametrize(("make", "said"), each(WRONG_UPDATES, UPDATES))
def test_updates(make: Callable[[ActorAnswer], ActorAnswer], said: str) -> None:
    call, good = learned_update()
    with pytest.raises(MalformedMessage) as refused:
        answer_to(call, RUN, wire.pack_answer(make(good)))
    assert str(refused.value) == said


@pytest.mark.parametrize(("changes", "said"), each(WRONG_TRAJECTORIES, TRAJECTORIES))
def test_trajectories(changes: dict[str, Any], said: str) -> None:
    call = calls.rollout("c1", BlobShelf().publish(0, calls.weights()))
    with pytest.raises(MalformedMessage) as refused:
        answer_to(call, RUN, wire.pack_answer(with_trajectory(answer_of(call), **changes)))
    assert str(refused.value) == said


@pytest.mark.parametrize(("kind", "change", "said"), each(HOSTILE, SUPERVISED))
def test_supervised_answers(kind: str, change: Callable[[dict[str, Any]], None], said: str) -> None:
    call, weights = of(descent(), kind)
    result = result_of(call, weights)
    document = decode(result.payload)
    change(document)
    with pytest.raises(BadAnswer) as refused:
        KINDS[kind].check(call, call.request, type(result)(encode(document), result.slot_state, result.usage))
    assert str(refused.value) == said


def test_evaluations() -> None:
    call = calls.evaluation("e", BlobShelf().publish(0, calls.weights()))
    short = answer_of(call).model_copy(update={"payload": encode({"returns": [0.0], "lengths": [1]})})
    with pytest.raises(MalformedMessage) as refused:
        answer_to(call, RUN, wire.pack_answer(short))
    assert str(refused.value) == "returns are not 2 numbers of type <f8"


def test_an_answer_of_another_run() -> None:
    call = calls.rollout("c1", BlobShelf().publish(0, calls.weights()))
    _, refused = read_answer(call, "another", wire.pack_answer(answer_of(call)))
    assert isinstance(refused, Failure)
    assert refused.reason == "the answer cannot be used: the answer belongs to another run"


def test_a_kind_of_call_that_there_is_not() -> None:
    document = calls.rollout("c1", None).model_dump()
    document["request"]["kind"] = "multiply"
    with pytest.raises(ValueError, match="no kind of call is named 'multiply'"):
        Call.model_validate(document)


def test_a_call_that_comes_too_late() -> None:
    call = calls.rollout("c1", BlobShelf().publish(0, calls.weights()))
    request = ActorRequest(run=RUN, call=call, not_after_unix_s=1000.0, weights=calls.weights())
    answer = wire.read_answer(ActorMemory(now_unix_s=lambda: 1005.0).answer(wire.pack_request(request)))
    assert answer.reason == "arrived 5.0 s too late; it was not run"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "HTTPError 403"),
        (
            b"not authorized to perform: s3:GetObject on",
            "HTTPError 403; add s3:GetObject to the connection's policy, or copy the whole policy again",
        ),
    ],
)
def test_weights_that_their_store_refuses(body: bytes, reason: str) -> None:
    def refuses(url: str, byte_count: int) -> bytes:
        raise HTTPError(url, 403, "Forbidden", Message(), io.BytesIO(body))

    call = calls.rollout("c1", BlobShelf().publish(0, calls.weights()))
    request = ActorRequest(run=RUN, call=call, not_after_unix_s=2e10, weights_url="https://there/v0")
    answer = wire.read_answer(ActorMemory(fetch=refuses).answer(wire.pack_request(request)))
    assert answer.reason == f"the weights of version 0 could not be fetched: {reason}"


def test_a_call_that_no_actor_fetched() -> None:
    desk = Desk()
    desk.submit()
    desk.now_unix_s += 601.0
    assert desk.outcome().reason == "no actor fetched it within 600 s; are there any?"
    desk.platform.close()


def test_a_call_that_no_actor_answered() -> None:
    desk = Desk()
    desk.submit()
    for number in range(3):
        desk.fetch(WaitingPuller(f"p{number}", "u"))
        desk.now_unix_s += 21.0
    assert desk.outcome().reason == "it was begun 3 times, and no actor sent an answer"
    desk.platform.close()


def test_the_last_words_of_a_puller(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *given: None)

    def last_words(*options: str) -> str:
        monkeypatch.setenv(TOKEN_VARIABLE, "x" * 43)
        main(["--gateway", "http://127.0.0.1:9", *options])
        return capsys.readouterr().err.removeprefix("starling puller: ").rstrip("\n")

    assert last_words("--live", "0") == "its time is over and was not renewed; goodbye"
    gone = last_words("--unreachable", "0")
    assert gone.startswith("no answer from the gateway for 0 s (")
    assert gone.endswith("); goodbye")


def test_a_deadline() -> None:
    with pytest.raises(DeadlineExceeded, match=r"^took longer than its deadline of 0\.05 s$"), Watchdog(0.05):
        time.sleep(10.0)


def test_another_version_of_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.1.0")
    with pytest.raises(NoRay) as refused:
        RayOptions().open()
    assert str(refused.value) == "Ray 2.1.0 is installed; this was made for 2.60.0: run `make ray-setup`."


def test_an_environment_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=r"^there is no environment named 'Growing-v0'; "):
        require_known("Growing-v0")
