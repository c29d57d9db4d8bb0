"""A cache of sampled trajectories, so that a run that restarts from a checkpoint need not pay for them twice.

Nitro keeps its trajectories in Redis between actors and learner. Here they are in the actors' answers, so the learner
needs no cache. This cache helps when a process dies: the run resumes from its last checkpoint, repeats the rounds
since then, and requests the very same fragments again: the same policy, slot, seed and state. The cache answers these
at once and at no cost. It holds encoded bytes (`training.engine.codec`) and is only a cache: if it is emptied or
lost, the run is slower and not otherwise different. It is off unless the installation sets its size.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict, deque
from typing import Any, Protocol

from cloud.actor import answers, blobs
from cloud.actor.wire import ActorAnswer, MalformedMessage, MeasuredWork, pack_answer, read_answer
from training.calls.rollout import RolloutRequest
from training.engine.messages import BlobRef, Call, Outcome
from training.engine.ports import Platform

log = logging.getLogger(__name__)

_PREFIX = "starling:trajectory"
_PAUSE_S = 30.0
_OF_PROTOCOLS = ("prepare", "set_payer", "throttling_reasons")
KEPT_S = 6 * 3600


class CacheClient(Protocol):
    """The methods of a Redis client that are used."""

    def get(self, name: str) -> Any: ...

    def set(self, name: str, value: bytes, *, ex: int) -> Any: ...

    def delete(self, *names: str) -> Any: ...

    def scan_iter(self, match: str) -> Any: ...

    def strlen(self, name: str) -> Any: ...


class TrajectoryCache:
    """One job's trajectories, at most `most_bytes` of them; the oldest are removed first.

    Errors of the store are misses; after one it is not used for a while, as waiting for it would slow the run.
    """

    def __init__(self, store: CacheClient, job: str, most_bytes: int, *, kept_s: int = KEPT_S) -> None:
        self._store = store
        self._job = job
        self._most_bytes = most_bytes
        self._kept_s = kept_s
        self._sizes: OrderedDict[str, int] | None = None
        self._bytes = 0
        self._retry_at_s = 0.0
        self.hits = self.misses = self.errors = 0
        self._complained: set[str] = set()

    @property
    def stored_bytes(self) -> int:
        """The size of this job's trajectories in the store, as far as it is known."""
        return self._bytes

    def find(self, call: Call) -> ActorAnswer | None:
        """Return a done answer to a call with the same request, whatever its id."""
        answer = None
        if time.monotonic() >= self._retry_at_s:
            try:
                answer = self._read(call)
            except MalformedMessage as refusal:
                self.errors += 1
                self._warn_once("damaged", f"a trajectory in the cache cannot be used: {refusal.reason}")
            except Exception as error:
                self._failed(error)
        self.hits += answer is not None
        self.misses += answer is None
        return answer

    def _read(self, call: Call) -> ActorAnswer | None:
        data = self._store.get(self._name(call))
        if data is None:
            return None
        answer = read_answer(bytes(data), limit_bytes=answers.limit_bytes(call))
        answers.result_of(call, answer)
        return answer

    def _failed(self, error: Exception) -> None:
        """Handle any error of the client as a miss."""
        self.errors += 1
        self._retry_at_s = time.monotonic() + _PAUSE_S
        kind = type(error).__name__
        words = f"the trajectory cache failed ({kind}: {error}); the run goes on without it for a while"
        self._warn_once(kind, words)

    def _warn_once(self, kind: str, words: str) -> None:
        """Log once for each kind: a store that is gone fails at every call."""
        if kind not in self._complained:
            self._complained.add(kind)
            log.warning("%s", words)

    def keep(self, call: Call, outcome: Outcome) -> None:
        assert call.weights is not None
        if time.monotonic() < self._retry_at_s:
            return
        answer = ActorAnswer(
            run=self._job,
            call_id=call.id,
            status="done",
            version=call.weights.version,
            payload=outcome.payload,
            slot_state=outcome.slot_state,
            work=MeasuredWork.of(outcome.usage),
        )
        try:
            self._put(self._name(call), pack_answer(answer))
        except Exception as error:
            self._failed(error)

    def _put(self, name: str, data: bytes) -> None:
        if len(data) > self._most_bytes:
            return
        sizes = self._known()
        self._bytes += len(data) - sizes.pop(name, 0)
        sizes[name] = len(data)
        old = []
        while self._bytes > self._most_bytes:
            oldest, size = sizes.popitem(last=False)
            self._bytes -= size
            old.append(oldest)
        if old:
            self._store.delete(*old)
        self._store.set(name, data, ex=self._kept_s)

    def _known(self) -> OrderedDict[str, int]:
        """Return the trajectories in the store, including those of an earlier process of this job."""
        if self._sizes is None:
            names = [_text(name) for name in self._store.scan_iter(match=f"{_PREFIX}:{self._job}:*")]
            self._sizes = OrderedDict((name, int(self._store.strlen(name))) for name in sorted(names))
            self._bytes = sum(self._sizes.values())
        return self._sizes

    def _name(self, call: Call) -> str:
        assert call.weights is not None
        request = "\n".join(
            [
                call.weights.sha256,
                call.request.model_dump_json(),
                str(call.seed),
                hashlib.sha256(call.slot_state or b"").hexdigest(),
            ]
        )
        digest = hashlib.sha256(request.encode()).hexdigest()
        return f"{_PREFIX}:{self._job}:{call.weights.version:012}:{digest}"


class CachingPlatform:
    """A platform whose rollouts are stored in a cache, and answered from it if they are there.

    Everything that does not concern calls is the platform's own.
    """

    def __init__(self, platform: Platform, cache: TrajectoryCache) -> None:
        self._platform = platform
        self.cache = cache
        self._submitted: dict[str, Call] = {}
        self._ready: deque[Outcome] = deque()
        # Python 3.12 looks for a protocol's methods without `__getattr__`, and what seems to rent nothing is not paid.
        vars(self).update(
            {name: getattr(platform, name) for name in _OF_PROTOCOLS if hasattr(platform, name)}
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._platform, name)

    def publish(self, version: int, blob: bytes) -> BlobRef:
        return self._platform.publish(version, blob)

    def submit(self, call: Call) -> None:
        if not isinstance(call.request, RolloutRequest) or call.weights is None:
            self._platform.submit(call)
            return
        known = self.cache.find(call)
        if known is None:
            self._submitted[call.id] = call
            self._platform.submit(call)
        else:
            self._ready.append(_outcome(call, known, self.now_s()))

    def next(self, timeout_s: float) -> Outcome | None:
        if self._ready:
            return self._ready.popleft()
        outcome = self._platform.next(timeout_s)
        if outcome is not None:
            call = self._submitted.pop(outcome.call_id, None)
            if call is not None and outcome.status == "done":
                self.cache.keep(call, outcome)
        return outcome

    def cancel(self, call_id: str) -> None:
        self._platform.cancel(call_id)

    def now_s(self) -> float:
        return self._platform.now_s()

    def close(self) -> None:
        self._ready.clear()
        self._submitted.clear()
        self._platform.close()


def _outcome(call: Call, answer: ActorAnswer, now_s: float) -> Outcome:
    """Return the outcome of a cached call: it took no time and costs nothing, because it was paid when it was
    sampled.
    """
    usage = answer.work.usage().model_copy(
        update={
            "bytes_out": blobs.bytes_out(answer.payload, answer.slot_state),
            "billed_s": 0.0,
            "memory_mb": call.memory_mb,
        }
    )
    return Outcome(
        call_id=call.id,
        status="done",
        started_s=now_s,
        finished_s=now_s,
        usage=usage,
        payload=answer.payload,
        slot_state=answer.slot_state,
    )


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
