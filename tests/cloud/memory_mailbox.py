"""A mailbox in memory, with both of its sides: the reference that every mailbox is held against."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from cloud.actor.protocol import Beat, Receipt
from cloud.platforms.gateway import store
from cloud.platforms.gateway.store import HandOut, LeasedCall, WaitingPuller
from training.engine.ports import Offer, OfferEnd, Puller

_OVER_REMEMBERED = 10_000


@dataclass
class _Call:
    offer: Offer
    offered_unix_s: float
    state: Literal["waiting", "leased"] = "waiting"
    puller: str = ""
    starts: int = 0
    leased_unix_s: float = 0.0
    lease_until_unix_s: float = 0.0
    began: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Over:
    """A call that was delivered, used up or withdrawn."""

    answered: bool
    began: frozenset[str]


class MemoryMailbox:
    """Implements `training.engine.ports.Mailbox` for the coordinator and `cloud.platforms.gateway.store.Store` for
    one box.
    """

    box = "memory"

    def __init__(self, *, now_unix_s: Callable[[], float] = time.time) -> None:
        self._now_unix_s = now_unix_s
        self._changed = threading.Condition()
        self._woken = False
        self._closed = False
        self._stay_until_unix_s = 0.0
        self._tokens: list[str] = []
        self._calls: dict[str, _Call] = {}
        self._over: OrderedDict[str, _Over] = OrderedDict()
        self._weights: dict[str, bytes] = {}
        self._pullers: dict[str, Puller] = {}
        self._named: dict[str, set[str]] = {}
        self._delivered: list[OfferEnd] = []
        self._bells: list[Callable[[], None]] = []

    def new_token(self) -> str:
        token = secrets.token_urlsafe(32)
        self._tokens.append(token)
        return token

    def on_offer(self, bell: Callable[[], None]) -> None:
        """Call `bell` from now on, from any thread, when there may be a call to lease."""
        self._bells.append(bell)

    # The coordinator's side

    def publish(self, sha256: str, blob: bytes) -> None:
        with self._changed:
            if not self._closed:
                self._weights[sha256] = blob

    def drop(self, sha256s: Sequence[str]) -> None:
        with self._changed:
            for sha256 in sha256s:
                self._weights.pop(sha256, None)

    def offer(self, batch: Sequence[Offer]) -> None:
        with self._changed:
            now = self._now_unix_s()
            for one in batch:
                if not self._closed and one.call_id not in self._over:
                    self._calls.setdefault(one.call_id, _Call(one, now))
        self._ring()

    def withdraw(self, call_ids: Sequence[str]) -> None:
        with self._changed:
            for call in [self._calls[one] for one in call_ids if one in self._calls]:
                self._end(call, answered=False)

    def take(self, timeout_s: float) -> list[OfferEnd]:
        end_s = time.monotonic() + timeout_s
        with self._changed:
            while True:
                self._sweep()
                left_s = end_s - time.monotonic()
                if self._delivered or self._woken or left_s <= 0:
                    self._woken = False
                    taken, self._delivered = self._delivered, []
                    return taken
                # Leases and deadlines end without a bell.
                self._changed.wait(min(left_s, 0.25))

    def wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def stay(self, seconds: float) -> None:
        with self._changed:
            self._stay_until_unix_s = self._now_unix_s() + seconds

    def pullers(self) -> list[Puller]:
        with self._changed:
            return list(self._pullers.values())

    def dismiss(self, names: Sequence[str]) -> None:
        with self._changed:
            for name in names:
                if name in self._pullers:
                    self._pullers[name] = replace(self._pullers[name], leaving=True)
        self._ring()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._calls.clear()
            self._weights.clear()
            self._delivered.clear()
        self._ring()

    # The gateway's side

    def admitted(self, token: str) -> str | None:
        found = [hmac.compare_digest(token.encode(), one.encode()) for one in self._tokens]
        return self.box if any(found) else None

    def hand_out(self, box: str, callers: Sequence[WaitingPuller]) -> HandOut:
        with self._changed:
            if self._closed:
                return HandOut(open=False)
            self._sweep()
            now = self._now_unix_s()
            work: dict[str, LeasedCall] = {}
            refused = {caller.name for caller in callers if not self._seen(caller, now)}
            for caller in callers:
                if caller.name in refused:
                    continue
                call = None if self._pullers[caller.name].leaving else self._call_for(caller.name, now)
                if call is not None:
                    offer = call.offer
                    work[caller.name] = LeasedCall(
                        offer.call_id, offer.request, offer.lease_s, offer.most_bytes
                    )
            leave = frozenset(
                one.name
                for one in callers
                if one.name not in refused and self._pullers[one.name].leaving and one.name not in work
            )
            return HandOut(True, self._stay_until_unix_s, now, work, leave | refused)

    def beat(self, box: str, puller: str, call_id: str) -> Beat:
        with self._changed:
            if self._closed:
                return Beat(word="leave")
            now = self._now_unix_s()
            call = self._calls.get(call_id)
            if call is None or call.state != "leased" or call.puller != puller:
                self._freed(puller)
                return Beat(word="drop")
            longest_unix_s = call.leased_unix_s + call.offer.most_s
            call.lease_until_unix_s = min(now + call.offer.lease_s, longest_unix_s)
            self._pullers[puller] = replace(self._pullers[puller], last_seen_unix_s=now)
            return Beat(word="go_on", live_s=max(0.0, self._stay_until_unix_s - now))

    def room(self, box: str, puller: str, call_id: str) -> int:
        with self._changed:
            call = self._calls.get(call_id)
            return call.offer.most_bytes if call is not None and puller in call.began else 0

    def receive(self, box: str, puller: str, call_id: str, answer: bytes) -> Receipt:
        with self._changed:
            self._freed(puller)
            call = self._calls.get(call_id)
            if call is None:
                over = self._over.get(call_id)
                known = over is not None and over.answered and puller in over.began
                return Receipt(word="known" if known else "unwanted")
            if puller not in call.began:
                return Receipt(word="unwanted")
            # Also from a puller whose lease has ended: a call's result does not depend on who runs it.
            call.puller = puller
            self._deliver(call, answer)
            return Receipt(word="taken")

    def leave(self, box: str, puller: str) -> None:
        with self._changed:
            for call in self._calls.values():
                if call.state == "leased" and call.puller == puller:
                    call.lease_until_unix_s = 0.0
            self._sweep()
            if puller in self._pullers:
                self._pullers[puller] = replace(self._pullers[puller], leaving=True)

    def weights(self, box: str, sha256: str) -> bytes | None:
        with self._changed:
            return self._weights.get(sha256)

    # Both

    def _call_for(self, name: str, now: float) -> _Call | None:
        """Return the puller's own call, if the answer with its lease was lost, or else the first that waits."""
        calls = self._calls.values()
        call = next((one for one in calls if one.state == "leased" and one.puller == name), None)
        if call is None:
            call = next((one for one in calls if one.state == "waiting"), None)
            if call is None:
                return None
            call.state, call.puller = "leased", name
            call.starts += 1
            call.began.add(name)
            call.leased_unix_s = now
            call.lease_until_unix_s = now + call.offer.lease_s
        self._pullers[name] = replace(self._pullers[name], call_id=call.offer.call_id)
        return call

    def _sweep(self) -> None:
        """Take back calls whose lease has ended, and end calls whose time or starts are used up."""
        now = self._now_unix_s()
        for call in list(self._calls.values()):
            if call.state == "leased" and call.lease_until_unix_s <= now:
                self._freed(call.puller)
                call.state, call.puller = "waiting", ""
            used_up = call.starts >= call.offer.most_starts or call.offer.begin_by_unix_s < now
            if call.state == "waiting" and used_up:
                self._deliver(call, None)

    def _deliver(self, call: _Call, answer: bytes | None) -> None:
        self._end(call, answered=answer is not None)
        self._delivered.append(
            OfferEnd(
                call.offer.call_id,
                answer,
                call.starts,
                call.offered_unix_s,
                call.leased_unix_s,
                self._now_unix_s(),
                call.puller,
            )
        )
        self._changed.notify_all()

    def _end(self, call: _Call, *, answered: bool) -> None:
        self._freed(call.puller)
        del self._calls[call.offer.call_id]
        self._over[call.offer.call_id] = _Over(answered, frozenset(call.began))
        while len(self._over) > _OVER_REMEMBERED:
            self._over.popitem(last=False)

    def _freed(self, name: str) -> None:
        if name in self._pullers:
            self._pullers[name] = replace(self._pullers[name], call_id=None)

    def _seen(self, caller: WaitingPuller, now: float) -> bool:
        """Note the caller. Return False for a new name if its token already has as many as it may."""
        known = self._pullers.get(caller.name)
        if known is None:
            names = self._named.setdefault(caller.token, set())
            if len(names) >= store.NAMES_A_TOKEN:
                self._forget_silent(names, now)
            if len(names) >= store.NAMES_A_TOKEN:
                return False
            names.add(caller.name)
            self._pullers[caller.name] = Puller(caller.name, caller.unit, now, now)
        else:
            # A puller that requests a call knows of none that it has.
            self._pullers[caller.name] = replace(known, last_seen_unix_s=now, call_id=None)
        return True

    def _forget_silent(self, names: set[str], now: float) -> None:
        for one in [self._pullers[name] for name in names]:
            if one.call_id is None and one.last_seen_unix_s < now - store.FORGOTTEN_AFTER_S:
                names.discard(one.name)
                del self._pullers[one.name]

    def _ring(self) -> None:
        for bell in self._bells:
            bell()
