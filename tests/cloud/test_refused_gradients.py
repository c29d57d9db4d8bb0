"""A gradient of another run is refused once, with its reason: it is counted and billed, and its slice is sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cloud.actor import wire
from cloud.actor.body import ActorMemory
from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.gateway.store import WaitingPuller
from cloud.platforms.pulled import PulledCalls
from tests.cloud.memory_mailbox import MemoryMailbox
from tests.training.runs import events_of
from tests.training.specs import tiny
from tests.training.stellaris_runs import QUICK, loop, reports
from training.engine.codec import decode, encode
from training.engine.messages import BlobRef, Call, Outcome
from training.engine.ports import Settlement

_HERE = WaitingPuller("p1", "u")
_BUDGET = 10**12
Bring = Callable[[Call, wire.ActorAnswer], wire.ActorAnswer]


class FetchedHere:
    """A platform whose calls for actors are fetched and answered by this process, with the answers that `bring` makes
    of the true ones. `newest` is the newest version when a call was sent.
    """

    def __init__(self, bring: Bring) -> None:
        self._mailbox = MemoryMailbox()
        self._calls = PulledCalls(self._mailbox)
        self._actor = ActorMemory()
        self._bring = bring
        self._newest = 0
        self.submitted: list[Call] = []
        self.newest: dict[str, int] = {}

    def publish(self, version: int, blob: bytes) -> BlobRef:
        self._newest = version
        return self._calls.publish(version, blob)

    def submit(self, call: Call) -> None:
        self.submitted.append(call)
        self.newest[call.id] = self._newest
        self._calls.submit(call)

    def next(self, timeout_s: float) -> Outcome | None:
        outcome = self._calls.next(0.0)
        if outcome is not None:
            return outcome
        while (given := self._mailbox.hand_out("memory", [_HERE]).work.get(_HERE.name)) is not None:
            self._answer(wire.read_request(given.request))
        return self._calls.next(timeout_s)

    def _answer(self, request: wire.ActorRequest) -> None:
        weights = request.call.weights
        assert weights is not None
        blob = self._mailbox.weights("memory", weights.sha256)
        sent = wire.pack_request(request.model_copy(update={"weights": blob}))
        answer = self._bring(request.call, wire.read_answer(self._actor.answer(sent)))
        self._mailbox.receive("memory", _HERE.name, request.call.id, wire.pack_answer(answer))

    def cancel(self, call_id: str) -> None:
        self._calls.cancel(call_id)

    def now_s(self) -> float:
        return self._calls.now_s()

    def close(self) -> None:
        self._calls.close()


def _run(
    bring: Bring, seed: int = 0, order: str = "arrival"
) -> tuple[list[Any], FetchedHere, list[Settlement]]:
    spec = tiny(algorithm=QUICK, loop=loop(order=order), stop={"rounds": 2}, seed=seed)
    settled: list[Settlement] = []
    inner = FetchedHere(bring)
    tariff = LambdaOptions().tariff(PriceBook.load(), spec.rollout.memory_mb)
    platform = MeteredPlatform(inner, MemoryLedger(_BUDGET, on_settled=settled.append), tariff)
    try:
        return events_of(spec, platform), inner, settled
    finally:
        platform.close()


def test_a_gradient_of_another_run_is_refused_once_and_its_slice_is_sent_again_with_the_newest_version() -> (
    None
):
    others: list[wire.ActorAnswer] = []

    def kept(call: Call, answer: wire.ActorAnswer) -> wire.ActorAnswer:
        if call.kind == "gradient":
            others.append(answer)
        return answer

    other_events, _, _ = _run(kept, seed=1)
    refused: list[Call] = []

    def mistaken(call: Call, answer: wire.ActorAnswer) -> wire.ActorAnswer:
        if call.kind == "gradient" and call.request.pass_no == 2 and not refused:
            refused.append(call)
            return others[0].model_copy(update={"call_id": call.id, "version": answer.version})
        return answer

    events, platform, settled = _run(mistaken)
    (failure,) = [event for event in events if event.kind == "call_failed"]
    assert (failure.call_id, failure.reason_code) == (refused[0].id, "refused_run")
    assert failure.reason.endswith("another run")
    assert not failure.will_retry

    gradients = [call for call in platform.submitted if call.kind == "gradient"]
    tried = Counter((call.seed, call.request.pass_no) for call in gradients)
    assert tried.pop((refused[0].seed, 2)) == 2
    assert set(tried.values()) == {1}
    again = next(
        call for call in reversed(gradients) if (call.seed, call.request.pass_no) == (refused[0].seed, 2)
    )
    assert again.attempt == 1
    assert again.weights is not None
    assert again.weights.version == platform.newest[again.id]
    applied = {payload for call in platform.submitted if call.kind == "apply" for payload in call.inputs[1:]}
    assert others[0].payload not in applied

    found = reports(events)
    assert [report.failed_calls for report in found] == [1, 0]
    assert [report.progress for report in found] == [report.progress for report in reports(other_events)]
    assert [report.gradients.dropped for report in found] == [{"refused_run": 1}, {}]
    costs = {one.id: one for one in settled}
    assert [report.gradients.wasted_picodollars for report in found] == [costs[refused[0].id].picodollars, 0]
    assert costs[refused[0].id].basis == "assumed", "what an answer says that is not ours is not believed"
    assert costs[refused[0].id].picodollars > max(
        one.picodollars for one in settled if one.basis != "assumed"
    )
    assert events[-1].cost_picodollars == sum(one.picodollars for one in settled)


@pytest.mark.parametrize("spoil", ["shape", "numbers"])
def test_a_gradient_of_another_shape_or_not_finite_is_dropped_once_with_its_slice_in_the_order_of_launch(
    spoil: str,
) -> None:
    """An equal call would be refused in the same way, so it is not paid for again."""
    refused: list[Call] = []

    def spoiled(call: Call, answer: wire.ActorAnswer) -> wire.ActorAnswer:
        if call.kind != "gradient" or refused:
            return answer
        refused.append(call)
        document = decode(answer.payload)
        name = next(name for name in document if name.startswith("g:"))
        document[name] = document[name][:1] if spoil == "shape" else np.full_like(document[name], np.nan)
        return answer.model_copy(update={"payload": encode(document)})

    events, platform, settled = _run(spoiled, order="launch")
    (failure,) = [event for event in events if event.kind == "call_failed"]
    assert (failure.reason_code, failure.will_retry) == ("refused_gradient", False)
    assert [call.attempt for call in platform.submitted if call.seed == refused[0].seed] == [1]
    first, second = reports(events)
    assert (first.gradients.dropped, second.gradients.dropped) == ({"refused_gradient": 1}, {})
    (paid,) = [one.picodollars for one in settled if one.id == refused[0].id]
    assert first.gradients.wasted_picodollars == paid
    assert (first.dropped_contributions, second.dropped_contributions) == (1, 0)
    assert events[-1].cost_picodollars == sum(one.picodollars for one in settled)
