"""Sends a call as an invocation, and reads the result or the reason why there is none."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from cloud.actor import wire
from cloud.actor.blobs import MissingWeights
from cloud.failures import Failure
from cloud.platforms.aws import invoke as aws_invoke
from cloud.platforms.aws.flight import FunctionReply
from cloud.platforms.aws.functions import function_name
from cloud.platforms.aws.invoke import Reply
from cloud.platforms.aws.provisioned import ProvisionedConcurrency
from cloud.platforms.aws.request_body import Pieces
from cloud.platforms.aws.weights import AwsWeights
from cloud.platforms.outcomes import read_answer, unusable_answer
from training.engine.messages import Call
from training.rl import packages


class Invoker:
    """Used by many threads at once. `run` is the token that answers of this run carry."""

    def __init__(
        self,
        client: Any,
        weights: AwsWeights,
        provisioned: ProvisionedConcurrency,
        prefix: str,
        run: str,
        start_cap_s: float,
    ) -> None:
        self._client = client
        self._weights = weights
        self._provisioned = provisioned
        self._prefix = prefix
        self._run = run
        self._start_cap_s = start_cap_s

    def invoke(self, call: Call) -> FunctionReply:
        """Send the call once and check the answer. It may not begin later than `start_cap_s` after this."""
        try:
            inline_base64, address = self._weights.of(call)
        except MissingWeights as error:
            why = Failure("weights", str(error))
            return FunctionReply(call.id, Reply(failure=why, ran=False), time.monotonic(), None, why)
        request = wire.ActorRequest(
            run=self._run,
            call=call,
            not_after_unix_s=time.time() + self._start_cap_s,
            weights_url=address,
            packages=packages.enabled(),
        )
        payload = Pieces(wire.json_pieces(call.id, wire.pack_request(request), inline_base64))
        name = function_name(self._prefix, call.memory_mb)
        reply = aws_invoke.invoke(
            self._client, name, payload, self._provisioned.qualifier, self._weights.failure
        )
        landed_s = time.monotonic()
        if reply.body is None:
            why = reply.failure or Failure("function_failed", "no answer came")
            return FunctionReply(call.id, reply, landed_s, None, why)
        return self._read(call, replace(reply, body=None), reply.body, landed_s)

    def _read(self, call: Call, reply: Reply, body: bytes, landed_s: float) -> FunctionReply:
        try:
            envelope = wire.from_json(body, limit_bytes=aws_invoke.RESPONSE_LIMIT_BYTES)
        except wire.MalformedMessage as refusal:
            return FunctionReply(call.id, reply, landed_s, None, unusable_answer(refusal))
        return FunctionReply(call.id, reply, landed_s, *read_answer(call, self._run, envelope.data))
