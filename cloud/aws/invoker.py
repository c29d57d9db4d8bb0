"""A call becomes an invocation, and what comes back becomes a result or the reason why there is none."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from cloud import answers, wire
from cloud.aws import invoke as aws_invoke
from cloud.aws.flight import Landed
from cloud.aws.functions import function_name
from cloud.aws.invoke import Reply
from cloud.aws.provisioned import KeptReady
from cloud.aws.request_body import Pieces
from cloud.aws.weights import AwsWeights
from cloud.blobs import MissingWeights
from cloud.failures import Failure, OtherCode
from training.environments import packages
from training.messages import Call


class Asking:
    """Used by many threads at once. `run` is the token by which answers are known for this run's."""

    def __init__(
        self, client: Any, weights: AwsWeights, ready: KeptReady, prefix: str, run: str, start_cap_s: float
    ) -> None:
        self._client = client
        self._weights = weights
        self._ready = ready
        self._prefix = prefix
        self._run = run
        self._start_cap_s = start_cap_s

    def ask(self, call: Call) -> Landed:
        """Send it once, and check what comes back. Each sending has its own time after which it may not begin."""
        try:
            inline_base64, address = self._weights.of(call)
        except MissingWeights as error:
            why = Failure("weights", str(error))
            return Landed(call.id, Reply(failure=why, ran=False), time.monotonic(), None, why)
        request = wire.Request(
            run=self._run,
            call=call,
            not_after_unix_s=time.time() + self._start_cap_s,
            weights_url=address,
            packages=packages.enabled(),
        )
        payload = Pieces(wire.json_pieces(call.id, wire.pack_request(request), inline_base64))
        name = function_name(self._prefix, call.memory_mb)
        reply = aws_invoke.invoke(self._client, name, payload, self._ready.qualifier)
        landed_s = time.monotonic()
        if reply.body is None:
            why = reply.failure or Failure("function_failed", "no answer came")
            return Landed(call.id, reply, landed_s, None, why)
        return self._read(call, replace(reply, body=None), reply.body, landed_s)

    def _read(self, call: Call, reply: Reply, body: bytes, landed_s: float) -> Landed:
        try:
            envelope = wire.from_json(body, limit_bytes=aws_invoke.RESPONSE_LIMIT_BYTES)
            answer, result = answers.answer_to(call, self._run, envelope.data)
        except wire.Refusal as refusal:
            why = Failure(
                OtherCode(f"refused_{refusal.code}"), f"the answer is not to be used: {refusal.reason}"
            )
            return Landed(call.id, reply, landed_s, None, why)
        if result is None:
            why = Failure(OtherCode(answer.reason_code or "error"), answer.reason)
            return Landed(call.id, reply, landed_s, answer, why)
        return Landed(call.id, reply, landed_s, answer, result)
