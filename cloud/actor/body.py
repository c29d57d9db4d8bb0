"""Runs a call and returns its answer, on any machine. Warm environments and weights are kept between calls."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from cloud import failures
from cloud.actor.watchdog import DeadlineExceeded, Watchdog
from cloud.actor.weights import Fetch, KeptWeights
from cloud.actor.wire import (
    ActorAnswer,
    ActorRequest,
    MalformedMessage,
    MeasuredWork,
    pack_answer,
    read_request,
)
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl import packages

_ANSWERS_KEPT = 2
_ANSWER_KEPT_BYTES = 4 * 2**20


class ActorMemory:
    """The process's memory between calls. It changes no result; it only saves time."""

    def __init__(
        self,
        *,
        now_unix_s: Callable[[], float] = time.time,
        fetch: Fetch | None = None,
        provisioned: bool = False,
        cores: int = 1,
    ) -> None:
        """`cores`: how many cores step copies of an environment at the same time."""
        self._now_unix_s = now_unix_s
        self._weights = KeptWeights(fetch)
        self._warmth = WarmCache(cores)
        self._answered: OrderedDict[str, bytes] = OrderedDict()
        self._calls = 0
        self._provisioned = provisioned

    def answer(
        self,
        data: bytes,
        *,
        weights: bytes | None = None,
        within_s: float | None = None,
        most_bytes: int | None = None,
    ) -> bytes:
        """Run the call in `data`. Return an answer, whatever happens, of at most `most_bytes`.

        `weights`: those that were sent beside the call. `within_s`: the machine ends this process after that time, so
        the call must have ended before. A call that this process has answered is not run again; its answer is repeated.
        """
        try:
            request = read_request(data)
        except MalformedMessage as refusal:
            return pack_answer(_refused("", "", refusal))
        if weights is not None:
            request = request.model_copy(update={"weights": weights})
        known = self._answered.get(request.call.id)
        if known is not None:
            return known
        packed = pack_answer(self._run(request, within_s))
        if most_bytes is not None and len(packed) > most_bytes:
            words = (
                f"the result has {len(packed):,} bytes; {most_bytes:,} can be sent back: ask for fewer steps"
            )
            packed = pack_answer(self._failed(request, "result_too_large", words, 0.0))
        if len(packed) <= _ANSWER_KEPT_BYTES:
            self._answered[request.call.id] = packed
            while len(self._answered) > _ANSWERS_KEPT:
                self._answered.popitem(last=False)
        self._calls += 1
        return packed

    def _run(self, request: ActorRequest, within_s: float | None) -> ActorAnswer:
        call = request.call
        late_s = self._now_unix_s() - request.not_after_unix_s
        if late_s > 0:
            return _refused(
                request.run,
                call.id,
                MalformedMessage("expired", f"arrived {late_s:.1f} s too late; it was not run"),
            )
        limit_s = call.deadline_s if within_s is None else min(call.deadline_s, within_s)
        began_s = time.perf_counter()
        watchdog = Watchdog(limit_s)
        try:
            with watchdog:
                packages.enable(request.packages)
                weights = self._weights.of(request)
                # The body's own time: fetching the weights counts as transfer.
                began_s = time.perf_counter()
                result = execute(call, weights, self._warmth)
        except MalformedMessage as refusal:
            return self._failed(request, refusal.code, refusal.reason, 0.0)
        except DeadlineExceeded as error:
            watchdog.end()
            return self._failed(request, "deadline", str(error), time.perf_counter() - began_s)
        except Exception as error:
            why = failures.from_exception(error)
            return self._failed(request, why.code, why.reason, time.perf_counter() - began_s)
        return ActorAnswer(
            run=request.run,
            call_id=call.id,
            status="done",
            version=call.weights.version if call.weights is not None else None,
            payload=result.payload,
            slot_state=result.slot_state,
            work=MeasuredWork.of(result.usage),
            run_s=time.perf_counter() - began_s,
            calls_before=self._calls,
            provisioned=self._provisioned,
        )

    def _failed(self, request: ActorRequest, code: str, reason: str, run_s: float) -> ActorAnswer:
        # An interrupted body may have left its environment in an undefined state.
        self._warmth = WarmCache(self._warmth.cores)
        return ActorAnswer(
            run=request.run,
            call_id=request.call.id,
            status="failed",
            reason=reason[:8000],
            reason_code=code,
            run_s=run_s,
            calls_before=self._calls,
            provisioned=self._provisioned,
        )


def _refused(run: str, call_id: str, refusal: MalformedMessage) -> ActorAnswer:
    return ActorAnswer(
        run=run, call_id=call_id, status="refused", reason=refusal.reason[:8000], reason_code=refusal.code
    )
