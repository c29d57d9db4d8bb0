"""Calls that are fetched: what actors send is not trusted, what is lost is begun again, and each call ends once."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from cloud.actor import wire
from cloud.actor.body import ActorMemory
from cloud.platforms.gateway.asgi import Receive, Scope, Send
from cloud.platforms.gateway.store import WaitingPuller
from cloud.platforms.local import LocalOptions, LocalPlatform
from cloud.platforms.pulled import Patience, PulledCalls
from rig.servers import wait_until
from tests.cloud import calls, pullers
from tests.cloud.gateway_server import Application
from tests.cloud.memory_mailbox import MemoryMailbox
from tests.training.runs import final_learner
from training.engine.codec import decode, encode
from training.engine.messages import Call, Outcome
from training.engine.ports import Platform
from training.spec import TrainingSpec

_HERE = WaitingPuller("p1", "u")
_LONG_STEPS = 200_000


class Desk:
    """A platform over a mailbox in memory, and a hand that fetches from it as pullers do."""

    def __init__(self, patience: Patience | None = None) -> None:
        self.now_unix_s = time.time()
        self.mailbox = MemoryMailbox(now_unix_s=lambda: self.now_unix_s)
        self.platform = PulledCalls(self.mailbox, patience)
        self.actor = ActorMemory()

    def submit(self, name: str = "c", **changes: Any) -> Call:
        call = calls.rollout(name, self.platform.publish(0, calls.weights()), **changes)
        self.platform.submit(call)
        assert self.platform.next(0.0) is None
        return call

    def fetch(self, puller: WaitingPuller = _HERE) -> wire.ActorRequest:
        given = self.mailbox.hand_out("memory", [puller]).work[puller.name]
        request = wire.read_request(given.request)
        weights = request.call.weights
        assert weights is not None
        assert request.weights_url == f"/actor/v1/weights/{weights.sha256}"
        return request.model_copy(update={"weights": self.mailbox.weights("memory", weights.sha256)})

    def answer(self, request: wire.ActorRequest) -> wire.ActorAnswer:
        return wire.read_answer(self.actor.answer(wire.pack_request(request)))

    def bring(self, call: Call, answer: bytes, puller: WaitingPuller = _HERE) -> str:
        return self.mailbox.receive("memory", puller.name, call.id, answer).word

    def outcome(self) -> Outcome:
        outcome = self.platform.next(1.0)
        assert outcome is not None
        return outcome


@pytest.fixture
def desk() -> Any:
    made = Desk()
    yield made
    made.platform.close()


def _payload(**changes: Any) -> Callable[[wire.ActorAnswer], wire.ActorAnswer]:
    def change(answer: wire.ActorAnswer) -> wire.ActorAnswer:
        document = decode(answer.payload)
        document.update({name: to(document[name]) for name, to in changes.items()})
        return answer.model_copy(update={"payload": encode(document)})

    return change


def _with(**changes: Any) -> Callable[[wire.ActorAnswer], wire.ActorAnswer]:
    return lambda answer: answer.model_copy(update=changes)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (_with(run="f" * 32), "refused_run"),
        (_with(version=1), "refused_version"),
        (_with(call_id="c2"), "refused_call"),
        (_with(work=wire.MeasuredWork(steps=17)), "refused_work"),
        (_payload(rewards=lambda array: array[:-1]), "refused_trajectory"),
        (_payload(rewards=lambda array: array.astype(np.int32)), "refused_trajectory"),
        (_payload(version=lambda version: version + 1), "refused_trajectory"),
        (_payload(slot=lambda slot: slot + 1), "refused_trajectory"),
    ],
)
def test_a_wrong_answer_is_refused_and_the_job_goes_on(
    desk: Desk, spoil: Callable[[wire.ActorAnswer], wire.ActorAnswer], code: str
) -> None:
    call = desk.submit()
    answer = desk.answer(desk.fetch())
    assert answer.status == "done"
    assert desk.bring(call, wire.pack_answer(spoil(answer))) == "taken"
    outcome = desk.outcome()
    assert (outcome.status, outcome.reason_code) == ("failed", code)
    assert outcome.reason.startswith("the answer")
    assert outcome.payload == b""
    retried = desk.submit("c-again")
    desk.bring(retried, wire.pack_answer(desk.answer(desk.fetch())))
    assert desk.outcome().status == "done"


def test_bombs_and_noise_are_refused_before_they_unfold(desk: Desk) -> None:
    bombed = desk.submit("a")
    good = desk.answer(desk.fetch())
    packed = wire.pack_answer(good)
    bomb = zstandard.ZstdCompressor().compress(bytes(2**28))
    header_bytes = 10 + int.from_bytes(packed[6:10], "little")
    desk.bring(bombed, packed[:5] + b"\x01" + packed[6:header_bytes] + bomb)
    assert desk.outcome().reason_code == "refused_codec"
    for number, noise in enumerate((b"", b"noise", packed[:-100])):
        call = desk.submit(f"n{number}")
        desk.fetch()
        desk.bring(call, noise)
        assert desk.outcome().reason_code == "refused_codec"


def test_an_outcome_is_returned_once_however_often_its_answer_comes(desk: Desk) -> None:
    call = desk.submit()
    request = desk.fetch()
    desk.now_unix_s += 30.0
    assert desk.platform.next(0.0) is None
    other = WaitingPuller("p2", "u")
    desk.fetch(other)
    packed = wire.pack_answer(desk.answer(request))
    words = [desk.bring(call, packed), desk.bring(call, packed, other), desk.bring(call, packed)]
    assert words == ["taken", "known", "known"]
    assert desk.outcome().status == "done"
    assert desk.platform.next(0.0) is None
    assert desk.platform.starts == 2


def test_an_answer_to_a_call_that_was_cancelled_is_let_go(desk: Desk) -> None:
    call = desk.submit()
    packed = wire.pack_answer(desk.answer(desk.fetch()))
    desk.platform.cancel(call.id)
    assert desk.outcome().status == "cancelled"
    assert desk.bring(call, packed) == "unwanted"
    assert desk.platform.next(0.0) is None


def test_a_call_that_is_not_fetched_is_given_up(desk: Desk) -> None:
    desk.submit()
    desk.now_unix_s += 601.0
    outcome = desk.outcome()
    assert (outcome.status, outcome.reason_code) == ("failed", "not_begun")
    assert "within 600 s" in outcome.reason
    assert outcome.usage.billed_s == 0.0


def test_a_call_without_an_answer_is_given_up_and_its_cost_is_unknown(desk: Desk) -> None:
    desk.submit()
    for number in range(3):
        desk.fetch(WaitingPuller(f"p{number}", "u"))
        desk.now_unix_s += 21.0
    outcome = desk.outcome()
    assert (outcome.status, outcome.reason_code) == ("failed", "lost")
    assert "3 times" in outcome.reason
    assert outcome.usage.billed_s is None
    assert desk.platform.starts == 3


def test_weights_go_once_no_call_names_them(desk: Desk) -> None:
    old = desk.platform.publish(0, calls.weights())
    call = calls.rollout("c", old)
    desk.platform.submit(call)
    refs = [desk.platform.publish(version, calls.weights(version)) for version in range(1, 12)]
    held = {ref.version for ref in (old, *refs) if desk.mailbox.weights("memory", ref.sha256) is not None}
    assert held == {0, *range(4, 12)}
    assert desk.platform.next(0.0) is None
    desk.bring(call, desk.actor.answer(wire.pack_request(desk.fetch())))
    assert desk.outcome().status == "done"
    desk.platform.publish(12, calls.weights(12))
    assert desk.mailbox.weights("memory", old.sha256) is None


def test_a_killed_puller_s_call_goes_to_another_and_ends_once() -> None:
    with pullers.opened(1, Patience(begin_s=60.0, lease_s=3.0)) as (platform, machines):
        ref = platform.publish(0, calls.weights())
        # It lasts for seconds, so that it is not over before it was seen.
        platform.submit(calls.rollout("c", ref, steps=_LONG_STEPS))
        wait_until(
            lambda: platform.next(0.0) is None and any(one.call_id for one in platform.pullers()),
            within_s=60.0,
            what="the call is at a puller",
        )
        machines.processes[0].send_signal(signal.SIGKILL)
        machines.join()
        outcome = platform.next(60.0)
        assert outcome is not None
        assert (outcome.call_id, outcome.status) == ("c", "done")
        assert outcome.usage.steps == _LONG_STEPS
        assert platform.next(0.0) is None
        assert platform.starts == 2


def test_an_answer_whose_receipt_was_lost_is_sent_again_and_counts_once() -> None:
    posted: list[int] = []

    def losing(door: Application) -> Application:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == "/actor/v1/result":
                posted.append(1)
                if len(posted) == 1:
                    await door(scope, receive, _into_nothing)
                    raise ConnectionError("the line is cut")
            await door(scope, receive, send)

        return application

    with pullers.opened(1, Patience(begin_s=60.0, lease_s=60.0), around=losing) as (platform, _):
        ref = platform.publish(0, calls.weights())
        for name in ("a", "b"):
            platform.submit(calls.rollout(name, ref))
        ended = [platform.next(60.0), platform.next(60.0)]
        assert {one.call_id for one in ended if one is not None} == {"a", "b"}
        assert platform.next(0.0) is None
        wait_until(lambda: len(posted) == 3, within_s=60.0, what="a's answer, again, and b's")
        assert platform.starts == 2


async def _into_nothing(message: Any) -> None:
    pass


def _learner(platform: Platform, environment: str, rounds: int, folder: Path) -> bytes:
    """What the learner is at the end."""
    spec = TrainingSpec.model_validate(
        {
            "environment": {"id": environment},
            "network": {"kind": "mlp", "hidden": [16]},
            "algorithm": {"kind": "ppo", "epochs": 2, "minibatch_size": 32},
            "scaling": {"kind": "fixed", "actors": 4},
            "rollout": {"steps_per_call": 48},
            "stop": {"rounds": rounds, "env_steps": None},
            "evaluation": {"every_rounds": rounds, "episodes": 2},
        }
    )
    try:
        return final_learner(spec, platform, folder)
    finally:
        platform.close()


@pytest.mark.parametrize(
    ("environment", "rounds"), [("CartPole-v1", 3), pytest.param("Hopper-v5", 10, marks=pytest.mark.slow)]
)
def test_the_same_job_here_and_fetched_gives_the_same_weights(
    environment: str, rounds: int, tmp_path: Path
) -> None:
    here = _learner(LocalPlatform(LocalOptions(workers=1)), environment, rounds, tmp_path / "here")
    with pullers.opened(2) as (platform, _):
        assert _learner(platform, environment, rounds, tmp_path / "fetched") == here
